// What the server makes of a Service before it is judged: defaults, families of addresses, what
// stays of the old one and what goes with its type.
#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service_type.h"

namespace dibs::api {
namespace {

// On a single-stack IPv4 network; only a headless service that selects nothing itself is both.
void set_families(Value& spec) {
  if (!is_reachable_type(spec["type"].as_string())) return;
  bool headless = spec["clusterIP"].as_string() == "None";
  bool selects = !spec["selector"].empty();
  if (!is_set(spec, "ipFamilyPolicy")) {
    bool two = spec["ipFamilies"].size() == 2 || spec["clusterIPs"].size() == 2;
    spec.set("ipFamilyPolicy",
             (headless && !selects) || two ? Value("RequireDualStack") : Value("SingleStack"));
    if (headless && !selects && !spec["ipFamilies"].empty()) {
      spec.set("ipFamilyPolicy",
               spec["ipFamilies"].size() == 2 ? "RequireDualStack" : "SingleStack");
    }
  }
  if (!spec["ipFamilies"].empty()) return;
  Value families = Value::array();
  for (const Value& ip : spec["clusterIPs"].items()) {
    if (ip.as_string() != "None" && is_ip(ip.as_string())) families.push(family_of(ip.as_string()));
  }
  if (families.empty()) {
    families.push("IPv4");
    if (headless && !selects && spec["ipFamilyPolicy"].as_string() != "SingleStack") {
      families.push("IPv6");
    }
  }
  spec.set("ipFamilies", families);
}

// clusterIP is the first of clusterIPs.
void unite_cluster_ips(Value& spec, const Value* old) {
  std::string one = spec["clusterIP"].str();
  if (old == nullptr) {
    if (!one.empty() && spec["clusterIPs"].empty()) {
      spec.set("clusterIPs", Value::array({Value(one)}));
    }
    return;
  }
  bool same_one = spec["clusterIP"].as_string() == (*old)["clusterIP"].as_string();
  bool same_list = spec["clusterIPs"] == (*old)["clusterIPs"];
  if (!same_one && same_list) {
    if (one.empty()) {
      spec.erase("clusterIPs");
    } else if (spec["clusterIPs"].empty()) {
      spec.set("clusterIPs", Value::array({Value(one)}));
    } else {
      spec.mut("clusterIPs").mut(std::size_t{0}) = Value(one);
    }
  } else if (same_one && !same_list && !one.empty()) {
    if (spec["clusterIPs"].empty()) spec.erase("clusterIP");
  } else if (!one.empty() && spec["clusterIPs"].empty()) {
    spec.set("clusterIPs", Value::array({Value(one)}));
  }
}

void copy_if_unset(Value& spec, const Value& old, std::string_view key) {
  const Value& value = spec[key];
  bool unset = value.is_null() || (value.is_string() && value.as_string().empty()) ||
               (value.is_array() && value.empty());
  if (unset && is_set(old, key)) spec.set(key, Value(old[key]));
}

// What the server allocated stays when a client leaves it out.
void keep_allocated(Value& service, const Value& old) {
  if (needs_cluster_ip(old) && needs_cluster_ip(service)) {
    copy_if_unset(service.mut("spec"), old["spec"], "clusterIP");
    copy_if_unset(service.mut("spec"), old["spec"], "clusterIPs");
  }
  if (needs_node_ports(old) && needs_node_ports(service)) {
    const Value& before = old["spec"]["ports"];
    for (std::size_t i = 0; i < service["spec"]["ports"].size(); ++i) {
      const Value& port = service["spec"]["ports"][i];
      if (port["nodePort"].as_int() != 0) continue;
      for (const Value& other : before.items()) {
        if (other["port"] == port["port"] && other["protocol"] == port["protocol"] &&
            other["nodePort"].as_int() != 0) {
          service.mut("spec").mut("ports").mut(i).set("nodePort", Value(other["nodePort"]));
          break;
        }
      }
    }
  }
  if (needs_health_check_port(old) && needs_health_check_port(service) &&
      service["spec"]["healthCheckNodePort"].as_int() == 0) {
    copy_if_unset(service.mut("spec"), old["spec"], "healthCheckNodePort");
  }
}

// A change of type leaves behind what only the old type has, unless the client has set it anew.
void drop_foreign_fields(Value& service, const Value& old) {
  const Value& before = old["spec"];
  auto drop_same = [&](const char* key) {
    if (service["spec"].contains(key) && service["spec"][key] == before[key]) {
      service.mut("spec").erase(key);
    }
  };
  if (is_reachable_type(type_of(old)) && !is_reachable_type(type_of(service))) {
    for (const char* key :
         {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"}) {
      drop_same(key);
    }
  }
  if (needs_node_ports(old) && !needs_node_ports(service)) {
    for (std::size_t i = 0; i < service["spec"]["ports"].size(); ++i) {
      const Value& port = service["spec"]["ports"][i];
      bool same = false;
      for (const Value& other : before["ports"].items()) {
        same = same || (other["nodePort"] == port["nodePort"] && other["port"] == port["port"]);
      }
      if (same && port.contains("nodePort"))
        service.mut("spec").mut("ports").mut(i).erase("nodePort");
    }
  }
  if (needs_health_check_port(old) && !needs_health_check_port(service)) {
    drop_same("healthCheckNodePort");
  }
  if (type_of(old) == "LoadBalancer" && type_of(service) != "LoadBalancer") {
    drop_same("allocateLoadBalancerNodePorts");
    drop_same("loadBalancerClass");
  }
  if (is_external(before) && !is_external(service["spec"])) drop_same("externalTrafficPolicy");
}

}  // namespace

void set_service_defaults(Value& service) {
  Value spec = service["spec"];
  set_default_text(spec, "sessionAffinity", "None");
  set_default_text(spec, "type", "ClusterIP");
  std::string affinity = spec["sessionAffinity"].str();
  if (affinity == "None") {
    spec.erase("sessionAffinityConfig");
  } else if (affinity == "ClientIP") {
    set_default(spec.mut("sessionAffinityConfig").mut("clientIP"), "timeoutSeconds", 10800);
  }
  for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
    Value port = spec["ports"][i];
    set_default_text(port, "protocol", "TCP");
    const Value& target = port["targetPort"];
    bool unset = target.is_null() || (target.is_string() && target.as_string().empty()) ||
                 (target.is_integer() && target.as_int() == 0);
    if (unset) port.set("targetPort", Value(port["port"].as_int()));
    spec.mut("ports").mut(i) = port;
  }
  std::string type = spec["type"].str();
  if (is_external(spec)) set_default_text(spec, "externalTrafficPolicy", "Cluster");
  if (is_reachable_type(type)) set_default(spec, "internalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") set_default(spec, "allocateLoadBalancerNodePorts", true);
  service.set("spec", spec);
  for (std::size_t i = 0; i < service["status"]["loadBalancer"]["ingress"].size(); ++i) {
    const Value& ingress = service["status"]["loadBalancer"]["ingress"][i];
    if (ingress["ip"].as_string().empty() || is_set(ingress, "ipMode")) continue;
    service.mut("status").mut("loadBalancer").mut("ingress").mut(i).set("ipMode", "VIP");
  }
}

void prepare_service(Value& service, const RuleContext&) {
  service.set("status", Value::object({{"loadBalancer", Value::object()}}));
  Value& spec = service.mut("spec");
  unite_cluster_ips(spec, nullptr);
  set_families(spec);
}

void prepare_service_update(Value& service, const Value& old, const RuleContext&) {
  unite_cluster_ips(service.mut("spec"), &old["spec"]);
  drop_foreign_fields(service, old);
  keep_allocated(service, old);
  Value& spec = service.mut("spec");
  if (is_reachable_type(spec["type"].as_string()) && is_reachable_type(type_of(old))) {
    copy_if_unset(spec, old["spec"], "ipFamilyPolicy");
    copy_if_unset(spec, old["spec"], "ipFamilies");
  }
  set_families(spec);
}

}  // namespace dibs::api
