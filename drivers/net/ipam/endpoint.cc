#include "drivers/net/ipam/endpoint.h"

#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

Assigned parse_nic(const Value& entry) {
  Assigned nic;
  nic.interface = entry["interface"].str();
  nic.ipv4 = entry["ipv4"].str();
  nic.ipv4_pool = entry["ipv4Pool"].str();
  nic.ipv4_gateway = entry["ipv4Gateway"].str();
  nic.ipv6 = entry["ipv6"].str();
  nic.ipv6_pool = entry["ipv6Pool"].str();
  nic.ipv6_gateway = entry["ipv6Gateway"].str();
  nic.clean_gateway = entry["cleanGateway"].as_bool();
  for (const auto& route : entry["routes"].items()) {
    auto dst = Subnet::parse(route["dst"].as_string());
    auto gw = Ip::parse(route["gw"].as_string());
    if (dst && gw) nic.routes.push_back({*dst, *gw});
  }
  return nic;
}

Value nic_entry(const Assigned& nic) {
  Value entry = Value::object({{"interface", nic.interface}});
  const auto set = [&entry](std::string_view key, const std::string& text) {
    if (!text.empty()) entry.set(key, text);
  };
  set("ipv4", nic.ipv4);
  set("ipv4Pool", nic.ipv4_pool);
  set("ipv4Gateway", nic.ipv4_gateway);
  set("ipv6", nic.ipv6);
  set("ipv6Pool", nic.ipv6_pool);
  set("ipv6Gateway", nic.ipv6_gateway);
  entry.set("vlan", 0);
  entry.set("cleanGateway", nic.clean_gateway);
  for (const auto& route : nic.routes) {
    entry.mut("routes").push(Value::object({{"dst", route.dst.str()}, {"gw", route.gw.str()}}));
  }
  return entry;
}

void add_held(std::vector<Held>& out, const std::string& pool, std::string_view address) {
  if (pool.empty() || address.empty()) return;
  if (auto ip = Ip::parse(address.substr(0, address.find('/')))) out.push_back({pool, *ip});
}

Value new_object(const Endpoint& endpoint, const Value& pod, const Application& application) {
  Value object = Value::object(
      {{"apiVersion", cat(kGroup, "/", kVersion)},
       {"kind", "SpiderEndpoint"},
       {"metadata", Value::object({{"name", endpoint.name}, {"namespace", endpoint.name_space}})}});
  Value& metadata = object.mut("metadata");
  // The endpoint of a StatefulSet's pod outlives the pod: it is what the next one gets back.
  if (application.kind != "StatefulSet") {
    metadata.set("ownerReferences", Value::array({Value::object({{"apiVersion", "v1"},
                                                                 {"kind", "Pod"},
                                                                 {"name", pod["metadata"]["name"]},
                                                                 {"uid", pod["metadata"]["uid"]},
                                                                 {"controller", true},
                                                                 {"blockOwnerDeletion", false}})}));
  }
  metadata.set("finalizers", Value::array({Value(kFinalizer)}));
  return object;
}

}  // namespace

bool Endpoint::terminating() const { return object["metadata"].contains("deletionTimestamp"); }

const Assigned* Endpoint::nic(std::string_view interface) const {
  for (const auto& nic : nics) {
    if (nic.interface == interface) return &nic;
  }
  return nullptr;
}

Endpoint parse_endpoint(const Value& object) {
  Endpoint out;
  out.object = object;
  out.name_space = object["metadata"]["namespace"].str();
  out.name = object["metadata"]["name"].str();
  const Value& status = object["status"];
  out.owner_kind = status["ownerControllerType"].str();
  out.owner_name = status["ownerControllerName"].str();
  out.pod_uid = status["current"]["uid"].str();
  out.node = status["current"]["node"].str();
  for (const auto& entry : status["current"]["ips"].items()) out.nics.push_back(parse_nic(entry));
  return out;
}

Value to_object(const Endpoint& endpoint, const Value& pod, const Application& application) {
  Value object =
      endpoint.object.is_object() ? endpoint.object : new_object(endpoint, pod, application);
  Value ips = Value::array();
  for (const auto& nic : endpoint.nics) ips.push(nic_entry(nic));
  Value& status = object.mut("status");
  status.set(
      "current",
      Value::object({{"uid", endpoint.pod_uid}, {"node", endpoint.node}, {"ips", std::move(ips)}}));
  status.set("ownerControllerType", application.orphan() ? Value("Pod") : Value(application.kind));
  status.set("ownerControllerName",
             application.orphan() ? Value(endpoint.name) : Value(application.name));
  return object;
}

std::vector<Held> held_by(const Assigned& nic) {
  std::vector<Held> out;
  add_held(out, nic.ipv4_pool, nic.ipv4);
  add_held(out, nic.ipv6_pool, nic.ipv6);
  return out;
}

std::vector<Held> held_by(const std::vector<Assigned>& nics) {
  std::vector<Held> out;
  for (const auto& nic : nics) {
    for (auto& held : held_by(nic)) out.push_back(std::move(held));
  }
  return out;
}

bool has_ended(const Value& pod) {
  const Value& status = pod["status"];
  const auto phase = status["phase"].as_string();
  const auto restart = pod["spec"]["restartPolicy"].as_string();
  if (phase == "Failed") return restart == "Never" || status["reason"].as_string() == "Evicted";
  return phase == "Succeeded" && restart != "Always";
}

bool is_alive(const Value& pod) {
  return !pod["metadata"].contains("deletionTimestamp") && !has_ended(pod);
}

}  // namespace dibs::drivers::net
