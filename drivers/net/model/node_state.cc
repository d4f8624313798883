#include "drivers/net/model/node_state.h"

#include "base/strings.h"
#include "drivers/net/model/field_reader.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr PoolKind kPoolKinds[] = {PoolKind::sriov_vf, PoolKind::rdma_shared, PoolKind::master_nic};

void put(Value& object, std::string_view key, const std::string& text) {
  if (!text.empty()) object.set(key, text);
}

void put(Value& object, std::string_view key, const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  Value list = Value::array();
  for (const auto& text : texts) list.push(text);
  object.set(key, std::move(list));
}

Value write(const VirtualFunction& vf) {
  Value out = Value::object({{"index", vf.index}, {"pciAddress", vf.pci_address}});
  put(out, "netdev", vf.netdev);
  put(out, "rdmaDevice", vf.rdma_device);
  put(out, "vendor", vf.vendor);
  put(out, "device", vf.device);
  put(out, "driver", vf.driver);
  out.set("available", vf.available);
  if (vf.in_use) out.set("inUse", true);
  return out;
}

Value write(const Sriov& sriov) {
  Value vfs = Value::array();
  for (const auto& vf : sriov.vfs) vfs.push(write(vf));
  return Value::object(
      {{"totalVFs", sriov.total_vfs}, {"numVFs", sriov.num_vfs}, {"vfs", std::move(vfs)}});
}

Value write(const Rdma& rdma) {
  Value out = Value::object({{"device", rdma.device}});
  put(out, "charDevices", rdma.char_devices);
  return out;
}

void write_hardware(Value& out, const Interface& interface) {
  if (interface.is_virtual) out.set("virtual", true);
  put(out, "pciAddress", interface.pci_address);
  put(out, "pcieRoot", interface.pcie_root);
  put(out, "vendor", interface.vendor);
  put(out, "device", interface.device);
  put(out, "driver", interface.driver);
  if (interface.numa_node) out.set("numaNode", *interface.numa_node);
  if (interface.sriov) out.set("sriov", write(*interface.sriov));
  if (interface.rdma) out.set("rdma", write(*interface.rdma));
  put(out, "gpus", interface.gpus);
}

Value write(const Interface& interface) {
  Value out = Value::object({{"name", interface.name},
                             {"index", interface.index},
                             {"kind", interface.kind},
                             {"mtu", interface.mtu},
                             {"adminUp", interface.admin_up}});
  put(out, "mac", interface.mac);
  put(out, "operState", interface.oper_state);
  if (interface.speed_mbps) out.set("speedMbps", *interface.speed_mbps);
  put(out, "linkLayer", interface.link_layer);
  put(out, "addresses", interface.addresses);
  put(out, "subnets", interface.subnets);
  put(out, "parent", interface.parent);
  if (interface.vlan_id != 0) out.set("vlanID", interface.vlan_id);
  put(out, "bondMembers", interface.bond_members);
  write_hardware(out, interface);
  return out;
}

Value write(const ResourcePool& pool) {
  Value out = Value::object({{"resourceName", pool.resource_name},
                             {"kind", pool_kind_name(pool.kind)},
                             {"capacity", pool.capacity}});
  put(out, "devices", pool.devices);
  return out;
}

VirtualFunction read_vf(const FieldReader& in) {
  VirtualFunction vf;
  vf.index = in.small_number("index");
  vf.pci_address = in.text("pciAddress");
  vf.netdev = in.text("netdev");
  vf.rdma_device = in.text("rdmaDevice");
  vf.vendor = in.text("vendor");
  vf.device = in.text("device");
  vf.driver = in.text("driver");
  vf.available = in.flag("available");
  vf.in_use = in.flag("inUse");
  return vf;
}

Sriov read_sriov(const FieldReader& in) {
  Sriov sriov;
  sriov.total_vfs = in.small_number("totalVFs");
  sriov.num_vfs = in.small_number("numVFs");
  for (std::size_t i = 0; i < in.list("vfs").size(); ++i) {
    sriov.vfs.push_back(read_vf(in.item("vfs", i)));
  }
  return sriov;
}

void read_hardware(const FieldReader& in, Interface& out) {
  out.is_virtual = in.flag("virtual");
  out.pci_address = in.text("pciAddress");
  out.pcie_root = in.text("pcieRoot");
  out.vendor = in.text("vendor");
  out.device = in.text("device");
  out.driver = in.text("driver");
  if (in.has("numaNode")) out.numa_node = in.small_number("numaNode");
  if (in.has("sriov")) out.sriov = read_sriov(in.in("sriov"));
  if (in.has("rdma")) {
    out.rdma = Rdma{in.in("rdma").text("device"), in.in("rdma").texts("charDevices")};
  }
  out.gpus = in.texts("gpus");
}

Interface read_interface(const FieldReader& in) {
  Interface out;
  out.name = in.text("name");
  if (out.name.empty()) in.fail("name", "must not be empty");
  out.index = in.small_number("index");
  out.kind = in.text("kind");
  out.mac = in.text("mac");
  out.mtu = in.small_number("mtu");
  out.admin_up = in.flag("adminUp");
  out.oper_state = in.text("operState");
  if (in.has("speedMbps")) out.speed_mbps = in.number("speedMbps");
  out.link_layer = in.text("linkLayer");
  out.addresses = in.texts("addresses");
  out.subnets = in.texts("subnets");
  out.parent = in.text("parent");
  out.vlan_id = in.small_number("vlanID");
  out.bond_members = in.texts("bondMembers");
  read_hardware(in, out);
  return out;
}

ResourcePool read_pool(const FieldReader& in) {
  ResourcePool pool;
  pool.resource_name = in.text("resourceName");
  if (pool.resource_name.empty()) in.fail("resourceName", "must not be empty");
  const std::string kind = in.text("kind");
  bool known = false;
  for (const PoolKind one : kPoolKinds) {
    if (kind != pool_kind_name(one)) continue;
    pool.kind = one;
    known = true;
  }
  if (!known) in.fail("kind", cat("unknown kind of pool ", quoted(kind)));
  pool.capacity = in.number("capacity");
  pool.devices = in.texts("devices");
  return pool;
}

struct Counts {
  int vfs_free = 0;
  int rdma = 0;
};

Counts count(const NodeState& state) {
  Counts counts;
  for (const auto& interface : state.interfaces) {
    if (interface.rdma) ++counts.rdma;
    if (!interface.sriov) continue;
    for (const auto& vf : interface.sriov->vfs) counts.vfs_free += vf.available ? 1 : 0;
  }
  return counts;
}

}  // namespace

std::string_view pool_kind_name(PoolKind kind) {
  switch (kind) {
    case PoolKind::sriov_vf:
      return "sriovVF";
    case PoolKind::rdma_shared:
      return "rdmaShared";
    case PoolKind::master_nic:
      return "masterNIC";
  }
  return "";
}

const Interface* NodeState::find(std::string_view interface) const {
  for (const auto& one : interfaces) {
    if (one.name == interface) return &one;
  }
  return nullptr;
}

const ResourcePool* NodeState::pool(std::string_view resource_name) const {
  for (const auto& one : pools) {
    if (one.resource_name == resource_name) return &one;
  }
  return nullptr;
}

std::optional<NodeState::FoundVf> NodeState::vf(std::string_view pci_address) const {
  for (const auto& interface : interfaces) {
    if (!interface.sriov) continue;
    for (const auto& vf : interface.sriov->vfs) {
      if (vf.pci_address == pci_address) return FoundVf{&interface, &vf};
    }
  }
  return std::nullopt;
}

bool same_facts(const NodeState& a, const NodeState& b) {
  return a.node == b.node && a.interfaces == b.interfaces && a.ovs_bridges == b.ovs_bridges &&
         a.rdma_netns_mode == b.rdma_netns_mode && a.pools == b.pools && a.problem == b.problem;
}

Result<NodeState> parse_node_state(const Value& object) {
  std::optional<Error> error;
  const FieldReader whole(object, "", error);
  const FieldReader status = whole.in("status");
  NodeState state;
  state.node = whole.in("metadata").text("name");
  for (std::size_t i = 0; i < status.list("interfaces").size(); ++i) {
    state.interfaces.push_back(read_interface(status.item("interfaces", i)));
  }
  state.ovs_bridges = status.texts("ovsBridges");
  state.rdma_netns_mode = status.text("rdmaNetnsMode");
  for (std::size_t i = 0; i < status.list("pools").size(); ++i) {
    state.pools.push_back(read_pool(status.item("pools", i)));
  }
  state.problem = status.text("message");
  if (const std::string text = status.text("observedTime"); !text.empty()) {
    const auto time = parse_rfc3339(text);
    if (time) state.observed = *time;
    if (!time) status.fail("observedTime", time.error().message());
  }
  if (error) return *std::move(error);
  return state;
}

Value to_object(const NodeState& state, std::string_view node_uid) {
  Value metadata = Value::object({{"name", state.node}});
  if (!node_uid.empty()) {
    metadata.set(
        "ownerReferences",
        Value::array({Value::object(
            {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", state.node}, {"uid", node_uid}})}));
  }
  const Counts counts = count(state);
  Value interfaces = Value::array();
  for (const auto& interface : state.interfaces) interfaces.push(write(interface));
  Value pools = Value::array();
  for (const auto& pool : state.pools) pools.push(write(pool));
  Value status = Value::object({{"ready", state.problem.empty()},
                                {"observedTime", format_rfc3339(state.observed)},
                                {"nics", state.interfaces.size()},
                                {"vfsFree", counts.vfs_free},
                                {"rdmaDevices", counts.rdma},
                                {"interfaces", std::move(interfaces)},
                                {"pools", std::move(pools)}});
  put(status, "message", state.problem);
  put(status, "ovsBridges", state.ovs_bridges);
  put(status, "rdmaNetnsMode", state.rdma_netns_mode);
  return Value::object({{"apiVersion", "spiderpool.spidernet.io/v2beta1"},
                        {"kind", "SpiderNodeState"},
                        {"metadata", std::move(metadata)},
                        {"status", std::move(status)}});
}

}  // namespace dibs::drivers::net
