#include "drivers/net/host/slice_devices.h"

#include <algorithm>

#include "base/names.h"
#include "base/strings.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/host/pools_config.h"

namespace dibs::drivers::net {
namespace {

using driver::Device;
using json::Value;

constexpr std::size_t kMaxText = 64;  // of an attribute
constexpr std::string_view kVfsCapacity = "capacity.spidernet.io/vfs";

bool has(const std::vector<std::string>& list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// Lower case, everything else but letters, digits and "-" as "-", none of them twice or at an end.
std::string as_label(std::string_view text) {
  std::string out;
  for (const char c : to_lower(text)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (plain) {
      out.push_back(c);
    } else if (!out.empty() && out.back() != '-') {
      out.push_back('-');
    }
  }
  if (out.size() > kDns1123LabelMaxLength) out.resize(kDns1123LabelMaxLength);
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

// -- Names: of all interfaces and pools of a node, offered or not, so that they stay
// ---------------

struct Named {
  std::string device;
  const Interface* nic = nullptr;
  const VirtualFunction* vf = nullptr;
  const ResourcePool* share = nullptr;
};

/// Two interfaces that would be called the same are told apart by number, in their order.
std::vector<Named> named_devices(const NodeState& state) {
  std::vector<Named> out;
  std::set<std::string> taken;
  const auto unique = [&](std::string name) {
    std::string candidate = name;
    for (int i = 2; !taken.insert(candidate).second; ++i) {
      const std::string suffix = cat("-", i);
      candidate = name.substr(0, kDns1123LabelMaxLength - suffix.size()) + suffix;
    }
    return candidate;
  };
  std::set<std::string> plain;  // those that are labels as they are keep their names
  for (const auto& nic : state.interfaces) {
    if (device_name(nic.name) == nic.name) plain.insert(nic.name);
  }
  taken = plain;
  for (const auto& nic : state.interfaces) {
    const bool keeps = plain.erase(nic.name) > 0;
    out.push_back({keeps ? nic.name : unique(device_name(nic.name)), &nic, nullptr, nullptr});
  }
  for (const auto& nic : state.interfaces) {
    if (!nic.sriov) continue;
    for (const auto& vf : nic.sriov->vfs) {
      out.push_back({unique(vf_device_name(vf.pci_address)), &nic, &vf, nullptr});
    }
  }
  for (const auto& pool : state.pools) {
    if (pool.kind != PoolKind::rdma_shared) continue;
    out.push_back({unique(share_device_name(pool.resource_name)), nullptr, nullptr, &pool});
  }
  return out;
}

/// The SR-IOV pool that owns the function; "": none.
std::string pool_of(const NodeState& state, const std::string& pci_address) {
  for (const auto& pool : state.pools) {
    if (pool.kind == PoolKind::sriov_vf && !pci_address.empty() && has(pool.devices, pci_address)) {
      return pool.resource_name;
    }
  }
  return {};
}

// -- Attributes
// ------------------------------------------------------------------------------------

/// Whole items, separated by commas.
void put_list(Device& device, const std::string& name, const std::vector<std::string>& items) {
  std::string text;
  bool truncated = false;
  for (const auto& item : items) {
    const std::size_t size = text.size() + (text.empty() ? 0 : 1) + item.size();
    truncated = truncated || size > kMaxText;
    if (truncated) break;
    append(text, text.empty() ? "" : ",", item);
  }
  device.attribute(name, text).attribute(name + "Truncated", truncated);
}

/// An address or a kind that is too long says nothing rather than spoil the whole slice.
std::string short_text(const std::string& text) { return text.size() > kMaxText ? "" : text; }

/// The network of the last address of a family; "": none.
std::string cidr(const Interface& nic, int version) {
  for (auto address = nic.addresses.rbegin(); address != nic.addresses.rend(); ++address) {
    const auto subnet = Subnet::parse_lenient(*address);
    if (subnet && subnet->version() == version) return subnet->str();
  }
  return {};
}

bool is_word_of(std::string_view word, std::string_view name) {
  for (const auto part : split(name, '-')) {
    if (part == word) return true;
  }
  return false;
}

bool serves(const MultusConfig& config, const Interface& nic, const NodeState& state) {
  if (has(config.masters, nic.name)) return true;
  if (!config.masters.empty()) return traffic_device(config) == nic.name;
  if (!config.bridge.empty()) return config.bridge == nic.name;
  if (!config.resource_name.empty()) {
    const ResourcePool* pool = state.pool(config.resource_name);
    if (pool == nullptr) return false;
    if (has(pool->devices, nic.pci_address)) return true;
    return nic.sriov &&
           std::any_of(nic.sriov->vfs.begin(), nic.sriov->vfs.end(),
                       [&](const auto& vf) { return has(pool->devices, vf.pci_address); });
  }
  return is_word_of(nic.name, config.name);
}

std::string link_type(const Interface& nic) {
  if (nic.kind != "device") return nic.kind;
  return nic.link_layer == "infiniband" ? nic.link_layer : "ethernet";
}

/// What a NIC and its functions have in common.
void describe(Device& device, const Interface& nic, bool rdma, const NodeState& state,
              const std::vector<MultusConfig>& configs, const SliceOptions& options) {
  std::vector<std::string> names;
  for (const auto& config : configs) {
    if (config.name_space == options.install_namespace && serves(config, nic, state)) {
      names.push_back(config.name);
    }
  }
  std::sort(names.begin(), names.end());
  device.attribute("linkType", short_text(link_type(nic)))
      .attribute("mtu", nic.mtu)
      .attribute("state", nic.oper_state.empty() ? "unknown" : short_text(nic.oper_state))
      .attribute("rdma", rdma)
      .attribute("ipv4CIDR", cidr(nic, 4))
      .attribute("ipv6CIDR", cidr(nic, 6))
      .attribute("topoZone", "")
      .attribute("bandwidthGbps", cat(nic.speed_mbps.value_or(0) / 1000));
  put_list(device, "gdrAffinityGpus", rdma ? nic.gpus : std::vector<std::string>());
  put_list(device, "cniConfigs", names);
}

void put_place(Device& device, const std::string& pci_address, const std::string& pcie_root,
               std::optional<int> numa_node) {
  if (!pci_address.empty()) device.attribute("resource.kubernetes.io/pciBusID", pci_address);
  if (!pcie_root.empty()) device.attribute("resource.kubernetes.io/pcieRoot", pcie_root);
  if (numa_node) device.attribute("resource.kubernetes.io/numaNode", *numa_node);
}

void put_binding(Device& device, const SliceOptions& options) {
  if (!options.binding_conditions) return;
  device.set("bindsToNode", true)
      .set("bindingConditions", Value::array({kAddressesAssigned}))
      .set("bindingFailureConditions", Value::array({kAddressesRefused}));
}

// -- Devices
// ---------------------------------------------------------------------------------------

bool is_offered(const Interface& nic, const std::vector<MultusConfig>& configs,
                const SliceOptions& options) {
  if (!nic.is_virtual || nic.kind == "vlan" || nic.kind == "bond") return true;
  if (matches_any(options.include_virtual, nic.name)) return true;
  return std::any_of(configs.begin(), configs.end(), [&](const MultusConfig& config) {
    return has(config.masters, nic.name) || traffic_device(config) == nic.name;
  });
}

Device nic_device(const Named& named, const NodeState& state,
                  const std::vector<MultusConfig>& configs, const SliceOptions& options) {
  const Interface& nic = *named.nic;
  Device device(named.device);
  const std::string pool = pool_of(state, nic.pci_address);
  device.attribute("type", "nic").attribute("name", nic.name).attribute("mac", short_text(nic.mac));
  describe(device, nic, nic.rdma.has_value(), state, configs, options);
  device.attribute("pciAddress", nic.pci_address)
      .attribute("isSriovPf", nic.sriov.has_value())
      .attribute("pf", "")
      .attribute("resourceName", pool);
  put_place(device, nic.pci_address, nic.pcie_root, nic.numa_node);
  const bool shared = pool.empty();
  device.set("allowMultipleAllocations", shared);
  device.capacity(
      kVfsCapacity, cat(nic.sriov ? nic.sriov->total_vfs : 0),
      shared ? Value::object({{"default", "0"}, {"validValues", Value::array({"0"})}}) : Value());
  put_binding(device, options);
  return device;
}

Device vf_device(const Named& named, const NodeState& state,
                 const std::vector<MultusConfig>& configs, const SliceOptions& options) {
  const Interface& pf = *named.nic;
  Device device(named.device);
  device.attribute("type", "vf").attribute("name", "").attribute("mac", "");
  describe(device, pf, !named.vf->rdma_device.empty(), state, configs, options);
  device.attribute("pciAddress", named.vf->pci_address)
      .attribute("isSriovPf", false)
      .attribute("pf", pf.name)
      .attribute("resourceName", pool_of(state, named.vf->pci_address));
  put_place(device, named.vf->pci_address, pf.pcie_root, pf.numa_node);
  put_binding(device, options);
  return device;
}

Device share_device(const Named& named, std::int64_t shares, const NodeState& state) {
  // One place that all devices of the pool have in common is the pool's.
  Interface common;
  bool first = true;
  for (const auto& name : named.share->devices) {
    const Interface* nic = state.find(name);
    if (nic == nullptr) continue;
    if (first) {
      common.pcie_root = nic->pcie_root;
      common.numa_node = nic->numa_node;
    }
    if (nic->pcie_root != common.pcie_root) common.pcie_root.clear();
    if (nic->numa_node != common.numa_node) common.numa_node.reset();
    first = false;
  }
  Device device(named.device);
  device.attribute("type", "rdmaShare").attribute("name", "").attribute("mac", "");
  common.kind = "rdma";
  describe(device, common, true, state, {}, {});
  device.attribute("pciAddress", "")
      .attribute("isSriovPf", false)
      .attribute("pf", "")
      .attribute("resourceName", named.share->resource_name);
  put_place(device, "", common.pcie_root, common.numa_node);
  Value range = Value::object({{"min", "1"}});
  if (shares > 1) range.set("step", "1");
  device.set("allowMultipleAllocations", true)
      .capacity(kSharesCapacity, cat(shares),
                Value::object({{"default", "1"}, {"validRange", std::move(range)}}));
  return device;
}

}  // namespace

std::string device_name(std::string_view interface) {
  std::string name = as_label(interface);
  if (name.empty()) return "iface";
  // A label may begin with a digit, but upstream's names never do.
  return name.front() >= '0' && name.front() <= '9' ? cat("iface-", name) : name;
}

std::string vf_device_name(std::string_view pci_address) {
  return as_label(cat("vf-", pci_address));
}

std::string share_device_name(std::string_view resource_name) {
  return as_label(cat("rdma-", resource_name));
}

std::vector<Device> slice_devices(const NodeState& state, const std::vector<MultusConfig>& configs,
                                  const Used& taken, const SliceOptions& options) {
  std::vector<Device> out;
  for (const auto& named : named_devices(state)) {
    if (named.share != nullptr) {
      const auto used = taken.shares.find(named.share->resource_name);
      const std::int64_t left =
          named.share->capacity - (used == taken.shares.end() ? 0 : used->second);
      if (left > 0) out.push_back(share_device(named, left, state));
    } else if (named.vf != nullptr) {
      const std::string& address = named.vf->pci_address;
      const bool ours = options.prepared.count(address) > 0;
      if (taken.vfs.count(address) == 0 && (named.vf->available || (named.vf->in_use && ours))) {
        out.push_back(vf_device(named, state, configs, options));
      }
    } else if (is_offered(*named.nic, configs, options) &&
               (named.nic->pci_address.empty() || taken.vfs.count(named.nic->pci_address) == 0)) {
      out.push_back(nic_device(named, state, configs, options));
    }
  }
  return out;
}

std::optional<OfferedDevice> find_device(const NodeState& state, std::string_view device) {
  for (const auto& named : named_devices(state)) {
    if (named.device != device) continue;
    if (named.share != nullptr) return OfferedDevice{"", "", named.share->resource_name, true};
    OfferedDevice out;
    out.interface = named.nic->name;
    const std::string& address =
        named.vf != nullptr ? named.vf->pci_address : named.nic->pci_address;
    out.resource_name = pool_of(state, address);
    if (named.vf != nullptr || !out.resource_name.empty()) out.vf = address;
    return out;
  }
  return std::nullopt;
}

}  // namespace dibs::drivers::net
