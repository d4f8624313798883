#include "drivers/net/host/testing/fake_host.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::drivers::net::test {
namespace {

using json::Value;
namespace fs = std::filesystem;

/// Up from a folder below "sys" to "sys" itself.
std::string up(const std::string& folder) {
  std::string out;
  for (std::size_t i = 1; i < split(folder, '/').size(); ++i) out += "../";
  return out;
}

Value link_of(const FakeHost::Pf& pf, int index) {
  Value addresses = Value::array();
  if (const std::size_t slash = pf.address.find('/'); slash != std::string::npos) {
    addresses.push(Value::object({{"local", pf.address.substr(0, slash)},
                                  {"prefixlen", std::stoi(pf.address.substr(slash + 1))},
                                  {"scope", "global"}}));
  }
  const std::string mac =
      pf.infiniband ? cat("80:00:00:28:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:", 10 + index)
                    : cat("02:00:00:00:00:", 10 + index);
  return Value::object({{"ifindex", index},
                        {"ifname", pf.name},
                        {"flags", Value::array({"UP"})},
                        {"mtu", 1500},
                        {"operstate", "UP"},
                        {"link_type", pf.infiniband ? "infiniband" : "ether"},
                        {"address", mac},
                        {"addr_info", std::move(addresses)}});
}

}  // namespace

FakeHost::FakeHost() {
  char name[] = "/tmp/dibs-host-XXXXXX";
  path_ = ::mkdtemp(name);
  for (const char* one : {"sys/class/net", "sys/bus/pci/devices", "dev"}) folder(one);
}

FakeHost::~FakeHost() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void FakeHost::folder(const std::string& path) { fs::create_directories(cat(path_, "/", path)); }

void FakeHost::file(const std::string& path, const std::string& text) {
  const fs::path whole = cat(path_, "/", path);
  fs::create_directories(whole.parent_path());
  std::ofstream(whole) << text << "\n";
}

void FakeHost::symlink(const std::string& path, const std::string& target) {
  const fs::path whole = cat(path_, "/", path);
  fs::create_directories(whole.parent_path());
  fs::create_symlink(target, whole);
}

void FakeHost::remove(const std::string& path) { fs::remove_all(cat(path_, "/", path)); }

void FakeHost::pci_function(const std::string& folder, const std::string& pci,
                            const std::string& device) {
  file(cat(folder, "/vendor"), "0x15b3");
  file(cat(folder, "/device"), device);
  file(cat(folder, "/class"), "0x020000");
  this->folder("sys/bus/pci/drivers/mlx5_core");
  symlink(cat(folder, "/driver"), cat(up(folder), "bus/pci/drivers/mlx5_core"));
  symlink(cat("sys/bus/pci/devices/", pci), cat("../../../", folder.substr(4)));
}

void FakeHost::rdma_device(const std::string& name, const std::string& netdev,
                           const std::string& folder, const std::string& guid, bool infiniband) {
  const std::string own = cat(folder, "/infiniband/", name);
  file(cat(own, "/node_guid"), guid);
  if (!infiniband) file(cat(own, "/ports/1/gid_attrs/ndevs/0"), netdev);
  symlink(cat("sys/class/infiniband/", name), cat("../../", own.substr(4)));
  const std::string number = name.substr(name.rfind('_') + 1);
  file(cat("sys/class/infiniband_verbs/uverbs", number, "/ibdev"), name);
  file(cat("sys/class/infiniband_mad/umad", number, "/ibdev"), name);
  file(cat("dev/infiniband/uverbs", number), "");
  file(cat("dev/infiniband/umad", number), "");
  file("dev/infiniband/rdma_cm", "");
}

std::string FakeHost::vf_address(const Pf& pf, int index) {
  return cat(pf.pci.substr(0, pf.pci.size() - 1), 2 + index);
}

void FakeHost::pf(const Pf& pf) {
  const int index = pf.index != 0 ? pf.index : static_cast<int>(links_.size()) + 2;
  const Value link = link_of(pf, index);
  const std::string own = folder_of(pf);
  const int rdma = pf.rdma.empty() ? 0 : std::stoi(pf.rdma.substr(pf.rdma.rfind('_') + 1));
  pci_function(own, pf.pci, "0x1017");
  file(cat(own, "/numa_node"), pf.numa_node);
  if (pf.total_vfs >= 0) {
    file(cat(own, "/sriov_totalvfs"), cat(pf.total_vfs));
    file(cat(own, "/sriov_numvfs"), cat(pf.vfs));
  }
  const std::string net = cat(own, "/net/", pf.name);
  if (!pf.speed.empty()) file(cat(net, "/speed"), pf.speed);
  file(cat(net, "/address"), link["address"].str());
  symlink(cat(net, "/device"), "../..");
  symlink(cat("sys/class/net/", pf.name), cat("../../", net.substr(4)));
  // The last eight bytes of the hardware address.
  const std::string guid = cat("0000:0000:0000:00", 10 + index);
  if (!pf.rdma.empty()) rdma_device(pf.rdma, pf.name, own, guid, pf.infiniband);
  for (int i = 0; i < pf.vfs; ++i) {
    const std::string address = vf_address(pf, i);
    const std::string vf = cat("sys/devices/", pf.root, "/", pf.port, "/", address);
    pci_function(vf, address, "0x1018");
    file(cat(vf, "/numa_node"), pf.numa_node);
    symlink(cat(vf, "/physfn"), cat("../", pf.pci));
    symlink(cat(own, "/virtfn", i), cat("../", address));
    const std::string netdev = cat(pf.name, "v", i);
    folder(cat(vf, "/net/", netdev));
    symlink(cat(vf, "/net/", netdev, "/device"), "../..");
    symlink(cat("sys/class/net/", netdev), cat("../../", vf.substr(4), "/net/", netdev));
    if (!pf.rdma.empty()) {
      rdma_device(cat("mlx5_", rdma + 1 + i), netdev, vf, "", pf.infiniband);
    }
  }
  this->link(link);
}

void FakeHost::gpu(const std::string& pci, const std::string& root, const std::string& port,
                   const std::string& numa_node) {
  const std::string own = cat("sys/devices/", root, "/", port, "/", pci);
  file(cat(own, "/class"), "0x030200");
  file(cat(own, "/numa_node"), numa_node);
  symlink(cat("sys/bus/pci/devices/", pci), cat("../../../", own.substr(4)));
}

void FakeHost::link(Value link) {
  links_.push(std::move(link));
  record();
}

void FakeHost::record() {
  Value file = Value::object({{"links", links_}});
  if (!mode_.empty()) file.set("rdmaNetnsMode", mode_);
  this->file("links.json", json::write(file));
}

std::unique_ptr<Links> FakeHost::links() {
  record();
  return recorded_links(runtime::system_files(), cat(path_, "/links.json"));
}

FactsOptions FakeHost::options(std::string node) const {
  FactsOptions options;
  options.node_name = std::move(node);
  options.roots = {path_ + "/sys", path_ + "/dev"};
  return options;
}

}  // namespace dibs::drivers::net::test
