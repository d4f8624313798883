#pragma once
// A made-up /sys and /dev in a folder of its own, and links to go with it: nodes with
// hardware that this machine does not have.
//
//   FakeHost host;
//   host.pf({.name = "ens1f0np0", .pci = "0000:81:00.0", .vfs = 4});
//   host.gpu("0000:82:00.0");
//   HostFacts facts(host.links(), clock, host.options());

#include <memory>
#include <string>
#include <vector>

#include "drivers/net/host/facts.h"
#include "runtime/files.h"

namespace dibs::drivers::net::test {

class FakeHost {
 public:
  FakeHost();
  ~FakeHost();
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  struct Pf {
    std::string name = {};
    std::string pci = {};
    std::string root = "pci0000:80";
    std::string port = "0000:80:01.0";
    int total_vfs = 8;
    int vfs = 0;               // from <pci>.2 on, with netdevs <name>v0, …
    std::string rdma = {};     // "mlx5_0"; functions get the numbers after it
    std::string address = {};  // "172.18.0.11/16"
    std::string numa_node = "0";
    std::string speed = "100000";
    bool infiniband = false;
    int index = 0;  // of the link; 0: the next
  };
  void pf(const Pf& pf);
  void gpu(const std::string& pci, const std::string& root = "pci0000:80",
           const std::string& port = "0000:80:02.0", const std::string& numa_node = "0");
  /// A link without hardware, as `ip -j -d address` says it.
  void link(json::Value link);
  void rdma_netns_mode(std::string mode) { mode_ = std::move(mode); }

  // Paths are relative to `sys` or `dev` in front: "sys/class/net".
  void file(const std::string& path, const std::string& text);
  void symlink(const std::string& path, const std::string& target);
  void folder(const std::string& path);
  void remove(const std::string& path);
  /// Where a function's files are, from the folder of this host.
  static std::string folder_of(const Pf& pf) {
    return "sys/devices/" + pf.root + "/" + pf.port + "/" + pf.pci;
  }
  static std::string vf_address(const Pf& pf, int index);

  /// All that was added, until now.
  std::unique_ptr<Links> links();
  /// The file that links() reads, after another change.
  void record();
  FactsOptions options(std::string node = "node-a") const;
  const std::string& path() const { return path_; }

 private:
  void pci_function(const std::string& folder, const std::string& pci, const std::string& device);
  void rdma_device(const std::string& name, const std::string& netdev, const std::string& folder,
                   const std::string& guid, bool infiniband);

  std::string path_;
  json::Value links_ = json::Value::array();
  std::string mode_;
};

}  // namespace dibs::drivers::net::test
