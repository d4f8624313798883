#include "drivers/net/objects/coordinator_status.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "drivers/net/model/coordinator.h"
#include "json/yaml.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

const client::Gvr kConfigMaps = {"", "v1", "configmaps"};
const client::Gvr kNodes = {"", "v1", "nodes"};
const client::Gvr kCalicoPools = {"crd.projectcalico.org", "v1", "ippools"};

void add(Value& list, std::string_view cidr) {
  cidr = trim(cidr);
  const auto items = list.items();
  if (cidr.empty() || std::find(items.begin(), items.end(), Value(cidr)) != items.end()) return;
  list.push(cidr);
}

void add_all(Value& list, std::string_view comma_separated) {
  for (const auto& cidr : split(comma_separated, ',')) add(list, cidr);
}

/// What there is not is as good as what one may not see.
std::vector<Value> list(client::Client& api, const client::Gvr& gvr) {
  auto found = api.list(gvr, "");
  return found ? std::move(found->items) : std::vector<Value>();
}

Value data_of(client::Client& api, std::string_view config_map) {
  auto found = api.get(kConfigMaps, "kube-system", config_map);
  return found ? (*found)["data"] : Value();
}

/// `networking` of kubeadm's ClusterConfiguration; null where the cluster is not of kubeadm.
Value kubeadm_networking(client::Client& api) {
  const auto parsed =
      json::parse_yaml(data_of(api, "kubeadm-config")["ClusterConfiguration"].as_string());
  return parsed ? (*parsed)["networking"] : Value();
}

Value calico(client::Client& api) {
  Value out = Value::array();
  for (const auto& pool : list(api, kCalicoPools)) {
    if (!pool["spec"]["disabled"].as_bool()) add(out, pool["spec"]["cidr"].as_string());
  }
  return out;
}

Value cilium(client::Client& api) {
  Value out = Value::array();
  const Value data = data_of(api, "cilium-config");
  for (const char* key : {"cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr"}) {
    add_all(out, data[key].as_string());
  }
  return out;
}

Value cluster(client::Client& api) {
  Value out = Value::array();
  add_all(out, kubeadm_networking(api)["podSubnet"].as_string());
  if (!out.empty()) return out;
  for (const auto& node : list(api, kNodes)) {
    for (const auto& cidr : node["spec"]["podCIDRs"].items()) add(out, cidr.as_string());
  }
  return out;
}

Value services(client::Client& api) {
  Value out = Value::array();
  for (const char* version : {"v1", "v1beta1"}) {
    for (const auto& range : list(api, {"networking.k8s.io", version, "servicecidrs"})) {
      for (const auto& cidr : range["spec"]["cidrs"].items()) add(out, cidr.as_string());
    }
    if (!out.empty()) return out;
  }
  add_all(out, kubeadm_networking(api)["serviceSubnet"].as_string());
  return out;
}

Value pods(std::string_view type, client::Client& api) {
  if (type == "calico") return calico(api);
  if (type == "cilium") return cilium(api);
  if (type == "cluster") return cluster(api);
  if (type == "none") return Value::array();
  for (const auto& find : {calico, cilium, cluster}) {
    if (Value found = find(api); !found.empty()) return found;
  }
  return Value::array();
}

}  // namespace

Value coordinator_status(const Value& object, client::Client& api) {
  const Value& spec = object["spec"];
  if (const auto judged = check_coordinator(spec, "spec"); !judged) {
    return Value::object({{"phase", "NotReady"}, {"reason", judged.error().message()}});
  }
  const std::string_view type = spec["podCIDRType"].as_string();
  Value overlay = pods(type, api);
  Value service = services(api);
  // Where nothing in particular is asked for, a cluster without such a network is fine.
  const bool missing = overlay.empty() && type != "auto" && type != "none";
  Value out = Value::object({{"phase", missing ? "NotReady" : "Synced"}});
  if (missing) {
    out.set("reason", cat("no subnets of pods found by podCIDRType ", quoted(type)));
  }
  if (!overlay.empty()) out.set("overlayPodCIDR", std::move(overlay));
  if (!service.empty()) out.set("serviceCIDR", std::move(service));
  return out;
}

}  // namespace dibs::drivers::net
