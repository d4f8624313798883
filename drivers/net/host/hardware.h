#pragma once
// What files of /sys and /dev say of the hardware behind links.
//
// Made for one scan: it remembers what it listed (GPUs, RDMA devices). Nothing fails; what cannot
// be read is unknown.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/net/host/links.h"
#include "drivers/net/host/tree.h"
#include "drivers/net/model/node_state.h"

namespace dibs::drivers::net {

class Hardware {
 public:
  Hardware(const std::string& sysfs_root, const std::string& dev_root);

  /// Fills in what there is of the link: PCI, SR-IOV, RDMA, speed, GPUs.
  void describe(const Link& link, Interface& out) const;
  /// It is a virtual function, which its physical one lists.
  bool is_virtual_function(const Link& link) const;

  std::vector<std::string> char_devices(std::string_view rdma_device) const;

 private:
  struct Gpu {
    std::string pci_address;
    std::string root;
    std::optional<int> numa_node;
  };
  struct RdmaDevice {
    std::string name;
    std::vector<std::string> netdevs;
    std::string guid;  // hexadecimal digits
  };

  std::optional<std::string> link_folder(const Link& link) const;
  std::optional<std::string> pci_folder(const Link& link) const;
  std::optional<int> numa_node(const std::string& folder) const;
  std::string pci_id(const std::string& path) const;
  std::string driver_of(const std::string& pci_folder) const;
  std::optional<Sriov> sriov(const std::string& pci_folder) const;
  std::optional<VirtualFunction> virtual_function(const std::string& pci_folder, int index) const;
  std::string rdma_device_of(const Link& link, const std::string& pci_folder) const;
  void find_gpus();
  void find_rdma_devices();

  Tree sysfs_;
  Tree dev_;
  std::vector<Gpu> gpus_;
  std::vector<RdmaDevice> rdma_devices_;
};

bool is_pci_address(std::string_view text);  // "0000:81:00.0"

}  // namespace dibs::drivers::net
