#include "drivers/net/host/hardware.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

constexpr std::string_view kVirtualFolder = "devices/virtual/";
constexpr int kInfiniband = 32;
constexpr int kMaxNumaNode = 1023;
constexpr std::int64_t kMaxFunctions = 65'535;

/// `pattern` has x where any hexadecimal digit stands.
bool looks_like(std::string_view pattern, std::string_view text) {
  if (text.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (pattern[i] == 'x' ? !digit : c != pattern[i]) return false;
  }
  return true;
}

/// "pci0000:80" of "devices/pci0000:80/0000:80:01.0/…", wherever it stands.
std::string pcie_root_of(std::string_view folder) {
  for (const auto part : split(folder, '/')) {
    if (looks_like("pcixxxx:xx", part) || looks_like("pcixxxxx:xx", part)) return std::string(part);
  }
  return {};
}

std::string digits_only(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ':') out.push_back(c);
  }
  return to_lower(out);
}

std::optional<int> number_after(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (name.empty() || parsed.ec != std::errc() || parsed.ptr != name.data() + name.size()) {
    return std::nullopt;
  }
  return number >= 0 ? std::optional(number) : std::nullopt;
}

}  // namespace

bool is_pci_address(std::string_view text) {
  return looks_like("xxxx:xx:xx.x", text) || looks_like("xxxxx:xx:xx.x", text);
}

Hardware::Hardware(const std::string& sysfs_root, const std::string& dev_root)
    : sysfs_(sysfs_root), dev_(dev_root) {
  find_gpus();
  find_rdma_devices();
}

void Hardware::find_gpus() {
  for (const auto& address : sysfs_.list("bus/pci/devices")) {
    const auto folder = sysfs_.resolve(cat("bus/pci/devices/", address));
    if (!folder || !is_pci_address(address)) continue;
    // 3D controllers, and what is for displays but none of the known kinds.
    const auto kind = sysfs_.read(cat(*folder, "/class"));
    if (kind != "0x030200" && kind != "0x038000") continue;
    gpus_.push_back({address, pcie_root_of(*folder), numa_node(*folder)});
  }
}

void Hardware::find_rdma_devices() {
  for (const auto& name : sysfs_.list("class/infiniband")) {
    const std::string path = cat("class/infiniband/", name);
    if (!sysfs_.is_link(path) || !sysfs_.exists(path)) continue;
    RdmaDevice device{name, {}, digits_only(sysfs_.read(cat(path, "/node_guid")).value_or(""))};
    for (const auto& port : sysfs_.list(cat(path, "/ports"))) {
      const std::string ndevs = cat(path, "/ports/", port, "/gid_attrs/ndevs");
      for (const auto& index : sysfs_.list(ndevs)) {
        if (auto netdev = sysfs_.read(cat(ndevs, "/", index)); netdev && !netdev->empty()) {
          device.netdevs.push_back(*std::move(netdev));
        }
      }
    }
    rdma_devices_.push_back(std::move(device));
  }
}

std::optional<std::string> Hardware::link_folder(const Link& link) const {
  auto folder = sysfs_.resolve(cat("class/net/", link.name));
  if (!folder) return std::nullopt;
  // A /sys that was mounted in another network namespace shows other links under the same names.
  const auto index = sysfs_.read_number(cat(*folder, "/ifindex"));
  const auto mac = sysfs_.read(cat(*folder, "/address"));
  if (index && (*index != link.index || (mac && *mac != link.mac))) return std::nullopt;
  return folder;
}

std::optional<std::string> Hardware::pci_folder(const Link& link) const {
  const auto folder = link_folder(link);
  if (!folder) return std::nullopt;
  auto device = sysfs_.resolve(cat(*folder, "/device"));
  // Of a virtio device it is the folder above.
  while (device && !is_pci_address(last_part(*device))) {
    const std::size_t slash = device->rfind('/');
    if (slash == std::string::npos) return std::nullopt;
    device->resize(slash);
  }
  return device;
}

std::optional<int> Hardware::numa_node(const std::string& folder) const {
  const auto node = sysfs_.read_number(cat(folder, "/numa_node"));
  if (!node || *node < 0 || *node > kMaxNumaNode) return std::nullopt;
  return static_cast<int>(*node);
}

std::string Hardware::pci_id(const std::string& path) const {
  const std::string text = to_lower(sysfs_.read(path).value_or(""));
  const bool is_id = text.starts_with("0x") && looks_like("xxxx", text.substr(2));
  return is_id ? text.substr(2) : "";
}

std::string Hardware::driver_of(const std::string& pci_folder) const {
  const auto driver = sysfs_.resolve(cat(pci_folder, "/driver"));
  return driver ? std::string(last_part(*driver)) : "";
}

bool Hardware::is_virtual_function(const Link& link) const {
  const auto folder = pci_folder(link);
  return folder && sysfs_.exists(cat(*folder, "/physfn"));
}

std::optional<VirtualFunction> Hardware::virtual_function(const std::string& pci_folder,
                                                          int index) const {
  const auto folder = sysfs_.resolve(cat(pci_folder, "/virtfn", index));
  if (!folder || !is_pci_address(last_part(*folder))) return std::nullopt;
  VirtualFunction vf;
  vf.index = index;
  vf.pci_address = last_part(*folder);
  const auto netdevs = sysfs_.list(cat(*folder, "/net"));
  if (!netdevs.empty()) vf.netdev = netdevs.front();
  const auto rdma = sysfs_.list(cat(*folder, "/infiniband"));
  if (!rdma.empty()) vf.rdma_device = rdma.front();
  vf.vendor = pci_id(cat(*folder, "/vendor"));
  vf.device = pci_id(cat(*folder, "/device"));
  vf.driver = driver_of(*folder);
  vf.available = !vf.netdev.empty();
  vf.in_use = netdevs.empty() && sysfs_.exists(cat(*folder, "/net"));
  return vf;
}

std::optional<Sriov> Hardware::sriov(const std::string& pci_folder) const {
  const auto total = sysfs_.read_number(cat(pci_folder, "/sriov_totalvfs"));
  if (!total || *total < 0 || *total > kMaxFunctions) return std::nullopt;
  Sriov out;
  out.total_vfs = static_cast<int>(*total);
  const auto configured = sysfs_.read_number(cat(pci_folder, "/sriov_numvfs"));
  if (configured && *configured >= 0 && *configured <= kMaxFunctions) {
    out.num_vfs = static_cast<int>(*configured);
  }
  for (const auto& name : sysfs_.list(pci_folder)) {
    const auto index = number_after("virtfn", name);
    if (!index) continue;
    if (auto vf = virtual_function(pci_folder, *index)) out.vfs.push_back(*std::move(vf));
  }
  std::sort(out.vfs.begin(), out.vfs.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return out;
}

std::string Hardware::rdma_device_of(const Link& link, const std::string& pci_folder) const {
  for (const auto& device : rdma_devices_) {
    for (const auto& netdev : device.netdevs) {
      if (netdev == link.name) return device.name;
    }
  }
  // The last eight of an InfiniBand address's twenty bytes are the port's, and mostly the node's.
  const std::string address = digits_only(link.mac);
  if (link.hardware_type == kInfiniband && address.size() == 40) {
    for (const auto& device : rdma_devices_) {
      if (!device.guid.empty() && device.guid == address.substr(24)) return device.name;
    }
  }
  if (pci_folder.empty()) return {};
  // A function with one of each: they belong together though no address has shown it yet.
  const auto own = sysfs_.list(cat(pci_folder, "/infiniband"));
  const bool single = own.size() == 1 && sysfs_.list(cat(pci_folder, "/net")).size() == 1;
  return single ? own.front() : "";
}

void Hardware::describe(const Link& link, Interface& out) const {
  out.is_virtual = !link.kind.empty();
  const auto folder = link_folder(link);
  if (folder) {
    out.is_virtual = folder->starts_with(kVirtualFolder);
    const auto speed = sysfs_.read_number(cat(*folder, "/speed"));
    if (speed && *speed > 0 && *speed < std::numeric_limits<int>::max()) out.speed_mbps = *speed;
  }
  const std::string pci = pci_folder(link).value_or("");
  if (!pci.empty()) {
    out.pci_address = last_part(pci);
    out.pcie_root = pcie_root_of(pci);
    out.vendor = pci_id(cat(pci, "/vendor"));
    out.device = pci_id(cat(pci, "/device"));
    out.driver = driver_of(pci);
    out.numa_node = numa_node(pci);
    out.sriov = sriov(pci);
    for (const auto& gpu : gpus_) {
      if (!gpu.root.empty() && gpu.root == out.pcie_root && gpu.numa_node == out.numa_node) {
        out.gpus.push_back(gpu.pci_address);
      }
    }
  }
  if (std::string device = rdma_device_of(link, pci); !device.empty()) {
    auto files = char_devices(device);
    out.rdma = Rdma{std::move(device), std::move(files)};
  }
}

std::vector<std::string> Hardware::char_devices(std::string_view rdma_device) const {
  std::vector<std::string> out;
  const auto add = [&](std::string_view name) {
    if (dev_.exists(cat("infiniband/", name))) out.push_back(cat("/dev/infiniband/", name));
  };
  for (const char* kind : {"infiniband_verbs", "infiniband_mad", "infiniband_cm"}) {
    for (const auto& name : sysfs_.list(cat("class/", kind))) {
      if (sysfs_.read(cat("class/", kind, "/", name, "/ibdev")) == rdma_device) add(name);
    }
  }
  if (!out.empty()) add("rdma_cm");
  return out;
}

}  // namespace dibs::drivers::net
