#include "drivers/net/host/facts.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/host/hardware.h"

namespace dibs::drivers::net {
namespace {

constexpr int kEthernet = 1;
constexpr int kInfiniband = 32;
constexpr int kLoopback = 772;
/// What makes up the network of pods has such names.
constexpr std::string_view kPlumbing[] = {"cni",   "flannel", "veth", "docker", "br-",
                                          "virbr", "tun",     "tap",  "dibs-"};
/// Open vSwitch's datapath itself, which is no bridge.
constexpr std::string_view kOvsDatapath = "ovs-system";

bool is_skipped(const Link& link, const FactsOptions& options) {
  if (link.hardware_type == kLoopback || link.name == kOvsDatapath) return true;
  if (matches_any(options.exclude_interfaces, link.name)) return true;
  if (matches_any(options.include_interfaces, link.name)) return false;
  return std::any_of(std::begin(kPlumbing), std::end(kPlumbing),
                     [&](std::string_view prefix) { return link.name.starts_with(prefix); });
}

bool is_usual(const Ip& ip) {
  const auto in = [&](const char* subnet) { return Subnet::parse(subnet)->contains(ip); };
  if (ip.v6) return !in("fe80::/10") && !in("ff00::/8");
  return !in("169.254.0.0/16") && !in("224.0.0.0/4");
}

void add_addresses(const Link& link, Interface& out) {
  for (const auto& address : link.addresses) {
    const auto ip = Ip::parse(address.ip);
    if (!ip || address.link_local || !is_usual(*ip)) continue;
    std::string text = cat(address.ip, "/", address.prefix);
    const auto subnet = Subnet::parse_lenient(text);
    if (!subnet) continue;
    out.addresses.push_back(std::move(text));
    std::string network = subnet->str();
    if (std::find(out.subnets.begin(), out.subnets.end(), network) == out.subnets.end()) {
      out.subnets.push_back(std::move(network));
    }
  }
}

Interface interface_of(const Link& link, const LinkFacts& facts) {
  Interface out;
  out.name = link.name;
  out.index = link.index;
  out.kind = link.kind.empty() ? "device" : link.kind;
  out.mac = link.mac;
  out.mtu = link.mtu;
  out.admin_up = link.up;
  out.oper_state = link.oper_state;
  out.vlan_id = link.vlan_id;
  if (link.hardware_type == kEthernet) out.link_layer = "ethernet";
  if (link.hardware_type == kInfiniband) out.link_layer = "infiniband";
  add_addresses(link, out);
  for (const auto& other : facts.links) {
    if (link.parent != 0 && other.index == link.parent) out.parent = other.name;
    if (link.kind == "bond" && other.master == link.index) out.bond_members.push_back(other.name);
  }
  std::sort(out.bond_members.begin(), out.bond_members.end());
  return out;
}

/// Ports of one function share its virtual functions; the first one lists them.
void list_functions_once(std::vector<Interface>& interfaces) {
  std::set<std::string> seen;
  for (auto& interface : interfaces) {
    if (interface.sriov && !seen.insert(interface.pci_address).second) {
      interface.sriov->vfs.clear();
    }
  }
}

}  // namespace

HostFacts::HostFacts(std::unique_ptr<Links> links, runtime::Clock& clock, FactsOptions options)
    : links_(std::move(links)), clock_(clock), options_(std::move(options)) {}

bool HostFacts::changed() { return links_->changed(); }

Result<NodeState> HostFacts::read() {
  DIBS_TRY(const LinkFacts facts, links_->read());
  const Hardware hardware(options_.roots.sysfs, options_.roots.dev);
  NodeState state;
  state.node = options_.node_name;
  state.observed = clock_.now();
  state.rdma_netns_mode = facts.rdma_netns_mode;
  for (const auto& link : facts.links) {
    // A bridge of Open vSwitch has a port of its own name. Other such ports cannot be told from it.
    if (link.kind == "openvswitch" && link.name != kOvsDatapath) {
      state.ovs_bridges.push_back(link.name);
    }
    if (is_skipped(link, options_) || hardware.is_virtual_function(link)) continue;
    Interface interface = interface_of(link, facts);
    hardware.describe(link, interface);
    state.interfaces.push_back(std::move(interface));
  }
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::stable_sort(state.interfaces.begin(), state.interfaces.end(), by_name);
  // Links that are renamed while they are listed may come twice.
  state.interfaces.erase(std::unique(state.interfaces.begin(), state.interfaces.end(),
                                     [](const auto& a, const auto& b) { return a.name == b.name; }),
                         state.interfaces.end());
  std::sort(state.ovs_bridges.begin(), state.ovs_bridges.end());
  list_functions_once(state.interfaces);
  state.pools = pools_of(options_.pools, state.interfaces);
  return state;
}

std::vector<std::string> rdma_char_devices(const HostRoots& roots, std::string_view rdma_device) {
  return Hardware(roots.sysfs, roots.dev).char_devices(rdma_device);
}

}  // namespace dibs::drivers::net
