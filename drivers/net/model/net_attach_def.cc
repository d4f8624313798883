#include "base/strings.h"
#include "drivers/net/model/coordinator.h"
#include "drivers/net/model/multus_config.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::string_view kResourceName = "k8s.v1.cni.cncf.io/resourceName";
constexpr std::string_view kOvsResources = "ovs-cni.network.kubevirt.io";
/// What kubectl noted of the config is not true of what is made from it.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

Value texts(const std::vector<std::string>& items) {
  Value out = Value::array();
  for (const auto& item : items) out.push(item);
  return out;
}

void add_ipam(const MultusConfig& config, Value& plugin) {
  if (config.disable_ipam) return;
  Value ipam = Value::object({{"type", "spiderpool"}});
  if (!config.ipv4_pools.empty()) ipam.set("default_ipv4_ippool", texts(config.ipv4_pools));
  if (!config.ipv6_pools.empty()) ipam.set("default_ipv6_ippool", texts(config.ipv6_pools));
  if (config.match_master_subnet) ipam.set("match_master_subnet", true);
  plugin.set("ipam", std::move(ipam));
}

/// Makes the bond, and the VLAN on top of it, on the host.
Value ifacer(const MultusConfig& config, int vlan_id) {
  Value out = Value::object();
  if (vlan_id != 0) out.set("vlanID", vlan_id);
  out.set("type", "ifacer");
  out.set("interfaces", texts(config.masters));
  if (config.bond) {
    out.set("bond", Value::object({{"name", config.bond->name},
                                   {"mode", config.bond->mode},
                                   {"options", config.bond->options}}));
  }
  return out;
}

Value parent_plugin(const MultusConfig& config) {
  Value out = Value::object({{"type", config.cni_type}});
  if (config.cni_type == "vlan") {
    // This plugin makes the VLAN itself, in the pod.
    MultusConfig untagged = config;
    untagged.vlan_id = 0;
    out.set("master", traffic_device(untagged));
    out.set("vlanId", config.vlan_id);
  } else {
    out.set("master", traffic_device(config));
    if (config.cni_type == "macvlan") out.set("mode", "bridge");
  }
  if (config.mtu > 0) out.set("mtu", config.mtu);
  add_ipam(config, out);
  return out;
}

Value sriov_plugin(const MultusConfig& config) {
  Value out = Value::object({{"vlan", config.vlan_id},
                             {"min_tx_rate", config.min_tx_rate},
                             {"max_tx_rate", config.max_tx_rate},
                             {"type", "sriov"}});
  add_ipam(config, out);
  return out;
}

Value ib_sriov_plugin(const MultusConfig& config) {
  Value out = Value::object({{"type", "ib-sriov"},
                             {"pkey", config.pkey},
                             {"link_state", config.link_state},
                             {"rdmaIsolation", config.rdma_isolation},
                             {"ibKubernetesEnabled", config.ib_kubernetes}});
  add_ipam(config, out);
  return out;
}

Value ovs_plugin(const MultusConfig& config) {
  Value out = Value::object({{"vlan", config.vlan_id}, {"type", "ovs"}, {"bridge", config.bridge}});
  if (!config.device_id.empty()) out.set("deviceID", config.device_id);
  add_ipam(config, out);
  if (!config.trunk.empty()) out.set("trunk", config.trunk);
  return out;
}

Value plugins_of(const MultusConfig& config) {
  Value out = Value::array();
  const auto& type = config.cni_type;
  if (type == "macvlan" || type == "ipvlan" || type == "vlan") {
    const int vlan_id = type == "vlan" ? 0 : config.vlan_id;
    if (vlan_id != 0 || config.masters.size() > 1) out.push(ifacer(config, vlan_id));
    out.push(parent_plugin(config));
  } else if (type == "sriov") {
    out.push(sriov_plugin(config));
    if (config.rdma_isolation) out.push(Value::object({{"type", "rdma"}}));
    // This plugin does not know of an MTU.
    if (config.mtu > 0) out.push(Value::object({{"type", "tuning"}, {"mtu", config.mtu}}));
  } else if (type == "ib-sriov") {
    out.push(ib_sriov_plugin(config));
  } else if (type == "ipoib") {
    Value plugin = Value::object({{"type", "ipoib"}, {"master", config.masters.front()}});
    add_ipam(config, plugin);
    out.push(std::move(plugin));
  } else {
    out.push(ovs_plugin(config));
  }
  for (const auto& text : config.chain) {
    if (auto plugin = json::parse(text)) out.push(std::move(plugin).value());
  }
  if (config.enable_coordinator) out.push(coordinator_plugin(config.coordinator));
  return out;
}

std::string configuration_of(const MultusConfig& config) {
  if (config.cni_type == "custom") return config.custom_cni;
  return json::write(Value::object({{"cniVersion", config.cni_version},
                                    {"name", config.definition},
                                    {"plugins", plugins_of(config)}}),
                     true);
}

Value annotations_of(const MultusConfig& config, const Value& object) {
  Value out = Value::object();
  for (const auto& [key, value] : object["metadata"]["annotations"].members()) {
    if (key != kLastApplied) out.set(key, value);
  }
  if (!config.resource_name.empty()) out.set(kResourceName, config.resource_name);
  if (!config.device_id.empty()) out.set(kResourceName, cat(kOvsResources, "/", config.bridge));
  return out;
}

}  // namespace

Value net_attach_def_of(const MultusConfig& config, const Value& object) {
  const Value owner = Value::object({{"apiVersion", object["apiVersion"]},
                                     {"kind", object["kind"]},
                                     {"name", config.name},
                                     {"uid", object["metadata"]["uid"]},
                                     {"controller", true},
                                     {"blockOwnerDeletion", true}});
  Value metadata = Value::object({{"name", config.definition},
                                  {"namespace", config.name_space},
                                  {"ownerReferences", Value::array({owner})}});
  Value annotations = annotations_of(config, object);
  if (!annotations.empty()) metadata.set("annotations", std::move(annotations));
  Value spec = Value::object();
  if (std::string text = configuration_of(config); !text.empty()) spec.set("config", text);
  return Value::object({{"apiVersion", "k8s.cni.cncf.io/v1"},
                        {"kind", "NetworkAttachmentDefinition"},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(spec)}});
}

}  // namespace dibs::drivers::net
