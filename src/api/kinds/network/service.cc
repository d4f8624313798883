#include "api/kinds/network/service.h"

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/network/service_type.h"
#include "api/kinds/pod/probes.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

bool is_known_type(std::string_view type) {
  return is_one_of(type, {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
}

void validate_port(const Value& port, bool require_name, std::set<std::string>& names,
                   const Path& path, FieldErrors& errors) {
  std::string name = port["name"].str();
  if (name.empty()) {
    if (require_name) errors.required(path.child("name"));
  } else {
    add_invalid(is_dns1123_label(name), port["name"], path.child("name"), errors);
    if (!names.insert(name).second) errors.duplicate(path.child("name"), port["name"]);
  }
  add_invalid(is_port_number(port["port"].as_int()), Value(port["port"].as_int()),
              path.child("port"), errors);
  std::string_view protocol = port["protocol"].as_string();
  if (protocol.empty()) {
    errors.required(path.child("protocol"));
  } else if (!is_one_of(protocol, {"SCTP", "TCP", "UDP"})) {
    errors.not_supported(path.child("protocol"), port["protocol"], {"SCTP", "TCP", "UDP"});
  }
  validate_port_reference(port["targetPort"], path.child("targetPort"), errors);
  if (is_set(port, "appProtocol")) {
    add_invalid(is_qualified_name(port["appProtocol"].as_string()), port["appProtocol"],
                path.child("appProtocol"), errors);
  }
}

void validate_by_type(const Value& service, const Path& path, FieldErrors& errors) {
  const Value& spec = service["spec"];
  std::string_view type = type_of(service);
  Path ips = path.child("clusterIPs");
  if (type == "LoadBalancer" || type == "NodePort") {
    Path ports_at = path.child("ports");
    for (std::size_t i = 0; type == "LoadBalancer" && i < spec["ports"].size(); ++i) {
      if (spec["ports"][i]["port"].as_int() != 10250) continue;
      errors.invalid(ports_at.index(i), spec["ports"][i]["port"],
                     "may not expose port 10250 externally since it is used by kubelet");
    }
    if (is_headless(service)) {
      errors.invalid(ips.index(0), "None", cat("may not be set to 'None' for ", type, " services"));
    }
  } else if (type == "ExternalName") {
    constexpr std::string_view text = "may not be set for ExternalName services";
    if (!spec["clusterIPs"].empty()) errors.forbidden(ips, text);
    if (!spec["ipFamilies"].empty()) errors.forbidden(path.child("ipFamilies"), text);
    if (is_set(spec, "ipFamilyPolicy")) errors.forbidden(path.child("ipFamilyPolicy"), text);
    std::string_view name = spec["externalName"].as_string();
    if (!name.empty() && name.back() == '.') name.remove_suffix(1);
    if (name.empty()) {
      errors.required(path.child("externalName"));
    } else {
      add_invalid(is_dns1123_subdomain(name), Value(name), path.child("externalName"), errors);
    }
  }
}

void validate_affinity_config(const Value& spec, const Path& path, FieldErrors& errors) {
  std::string_view affinity = spec["sessionAffinity"].as_string();
  Path config_at = path.child("sessionAffinityConfig");
  if (affinity.empty()) {
    errors.required(path.child("sessionAffinity"));
  } else if (!is_one_of(affinity, {"ClientIP", "None"})) {
    errors.not_supported(path.child("sessionAffinity"), Value(affinity), {"ClientIP", "None"});
  }
  if (affinity == "ClientIP") {
    const Value& seconds = spec["sessionAffinityConfig"]["clientIP"]["timeoutSeconds"];
    if (seconds.is_null()) {
      errors.required(config_at, "when session affinity type is ClientIP");
    } else if (seconds.as_int() <= 0 || seconds.as_int() > 86400) {
      Path client = config_at.child("clientIP");
      errors.invalid(client.child("timeoutSeconds"), seconds,
                     "must be greater than 0 and less than 86400");
    }
  } else if (affinity == "None" && is_set(spec, "sessionAffinityConfig")) {
    errors.forbidden(config_at, "must not be set when session affinity is None");
  }
}

void validate_cluster_ips(const Value& service, const Path& path, FieldErrors& errors) {
  const Value& spec = service["spec"];
  if (type_of(service) == "ExternalName") return;
  const Value& ips = spec["clusterIPs"];
  const Value& families = spec["ipFamilies"];
  Path ips_at = path.child("clusterIPs");
  Path families_at = path.child("ipFamilies");
  std::string_view one = spec["clusterIP"].as_string();
  if (!one.empty()) {
    if (ips.empty()) {
      errors.required(ips_at);
    } else if (ips[0].as_string() != one) {
      errors.invalid(ips_at, ips, "first value must match `clusterIP`");
    }
  } else if (!ips.empty()) {
    errors.invalid(ips_at, ips, "must be empty when `clusterIP` is not specified");
  }
  for (std::size_t i = 0; i < families.size(); ++i) {
    if (!is_one_of(families[i].as_string(), {"IPv4", "IPv6"})) {
      errors.not_supported(families_at.index(i), families[i], {"IPv4", "IPv6"});
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (families[before] == families[i]) errors.duplicate(families_at.index(i), families[i]);
    }
  }
  if (is_set(spec, "ipFamilyPolicy") &&
      !is_one_of(spec["ipFamilyPolicy"].as_string(),
                 {"PreferDualStack", "RequireDualStack", "SingleStack"})) {
    errors.not_supported(path.child("ipFamilyPolicy"), spec["ipFamilyPolicy"],
                         {"PreferDualStack", "RequireDualStack", "SingleStack"});
  }
  std::size_t before = errors.size();
  for (std::size_t i = 0; i < ips.size(); ++i) {
    std::string_view ip = ips[i].as_string();
    if (ip == "None") {
      if (ips.size() > 1) errors.invalid(ips_at, ips, "'None' must be the first and only value");
      continue;
    }
    validate_ip(ip, ips_at.index(i), errors);
  }
  if (ips.size() > 2) errors.invalid(ips_at, ips, "may only hold up to 2 values");
  if (errors.size() != before) return;
  if (ips.size() == 2 && family_of(ips[0].as_string()) == family_of(ips[1].as_string())) {
    errors.invalid(ips_at, ips, "may specify no more than one IP for each IP family");
  }
  for (std::size_t i = 0; i < ips.size() && i < families.size(); ++i) {
    std::string_view ip = ips[i].as_string();
    if (ip == "None" || family_of(ip) == families[i].as_string()) continue;
    errors.invalid(ips_at.index(i), ips[i],
                   cat("expected an ", families[i].as_string(),
                       " value as indicated by `ipFamilies[", i, "]`"));
  }
}

void validate_port_duplicates(const Value& spec, const Path& path, FieldErrors& errors) {
  Path list = path.child("ports");
  const Value& ports = spec["ports"];
  if (spec["type"].as_string() == "ClusterIP") {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (ports[i]["nodePort"].as_int() == 0) continue;
      Path at = list.index(i);
      errors.forbidden(at.child("nodePort"), "may not be used when `type` is 'ClusterIP'");
    }
  }
  std::set<std::string> node_ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (ports[i]["nodePort"].as_int() == 0) continue;
    Path at = list.index(i);
    if (!node_ports.insert(cat(ports[i]["protocol"].as_string(), ports[i]["nodePort"].as_int()))
             .second) {
      errors.duplicate(at.child("nodePort"), ports[i]["nodePort"]);
    }
  }
  std::set<std::string> own_ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    std::string_view protocol = ports[i]["protocol"].as_string();
    std::int64_t number = ports[i]["port"].as_int();
    if (own_ports.insert(cat(protocol, number)).second) continue;
    errors.duplicate(list.index(i), Value::object({{"Name", ""},
                                                   {"Protocol", Value(protocol)},
                                                   {"AppProtocol", Value()},
                                                   {"Port", Value(number)},
                                                   {"TargetPort", 0},
                                                   {"NodePort", 0}}));
  }
}

void validate_load_balancer_fields(const Value& spec, const Path& path, FieldErrors& errors) {
  bool balanced = spec["type"].as_string() == "LoadBalancer";
  constexpr std::string_view text = "may only be used when `type` is 'LoadBalancer'";
  const Value& ranges = spec["loadBalancerSourceRanges"];
  // The API's own spelling of this path.
  Path ranges_at = path.child("LoadBalancerSourceRanges");
  if (!ranges.empty()) {
    if (!balanced) errors.forbidden(ranges_at, text);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      validate_cidr(trim(ranges[i].as_string()), ranges_at.index(i), errors);
    }
  }
  if (is_set(spec, "allocateLoadBalancerNodePorts") && !balanced) {
    errors.forbidden(path.child("allocateLoadBalancerNodePorts"), text);
  }
  if (is_set(spec, "loadBalancerClass")) {
    if (!balanced) errors.forbidden(path.child("loadBalancerClass"), text);
    add_invalid(is_qualified_name(spec["loadBalancerClass"].as_string()), spec["loadBalancerClass"],
                path.child("loadBalancerClass"), errors);
  }
}

void validate_traffic(const Value& service, const Path& path, FieldErrors& errors) {
  const Value& spec = service["spec"];
  std::string_view external = spec["externalTrafficPolicy"].as_string();
  Path external_at = path.child("externalTrafficPolicy");
  if (is_external(spec)) {
    if (external.empty()) {
      errors.required(external_at);
    } else if (!is_one_of(external, {"Cluster", "Local"})) {
      errors.not_supported(external_at, Value(external), {"Cluster", "Local"});
    }
  } else if (!external.empty()) {
    errors.invalid(external_at, Value(external),
                   "may only be set for externally-accessible services");
  }
  std::int64_t health = spec["healthCheckNodePort"].as_int();
  if (health != 0 && !needs_health_check_port(service)) {
    errors.invalid(path.child("healthCheckNodePort"), spec["healthCheckNodePort"],
                   "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                   "'Local'");
  }
  const Value& internal = spec["internalTrafficPolicy"];
  if (internal.is_null()) {
    if (is_reachable_type(spec["type"].as_string())) {
      errors.required(path.child("internalTrafficPolicy"));
    }
  } else if (!is_one_of(internal.as_string(), {"Cluster", "Local"})) {
    errors.not_supported(path.child("internalTrafficPolicy"), internal, {"Cluster", "Local"});
  }
  const Value& distribution = spec["trafficDistribution"];
  if (!distribution.is_null() &&
      !is_one_of(distribution.as_string(), {"PreferClose", "PreferSameNode", "PreferSameZone"})) {
    errors.not_supported(path.child("trafficDistribution"), distribution,
                         {"PreferClose", "PreferSameZone", "PreferSameNode"});
  }
}

void validate_service(const Value& service, FieldErrors& errors) {
  const Value& spec = service["spec"];
  Path path("spec");
  std::string_view type = type_of(service);
  if (spec["ports"].empty() && !is_headless(service) && type != "ExternalName") {
    errors.required(path.child("ports"));
  }
  validate_by_type(service, path, errors);
  std::set<std::string> names;
  Path ports_at = path.child("ports");
  for (std::size_t i = 0; i < spec["ports"].size(); ++i) {
    validate_port(spec["ports"][i], spec["ports"].size() > 1, names, ports_at.index(i), errors);
  }
  validate_labels(spec["selector"], path.child("selector"), errors);
  validate_affinity_config(spec, path, errors);
  validate_cluster_ips(service, path, errors);
  Path external_at = path.child("externalIPs");
  for (std::size_t i = 0; i < spec["externalIPs"].size(); ++i) {
    std::string_view ip = spec["externalIPs"][i].as_string();
    if (is_ip(ip))
      validate_non_special_ip(ip, external_at.index(i), errors);
    else
      validate_ip(ip, external_at.index(i), errors);
  }
  if (type.empty()) {
    errors.required(path.child("type"));
  } else if (!is_known_type(type)) {
    errors.not_supported(path.child("type"), spec["type"],
                         {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"});
  }
  validate_port_duplicates(spec, path, errors);
  validate_load_balancer_fields(spec, path, errors);
  validate_traffic(service, path, errors);
}

void validate_kept_ips(const Value& service, const Value& old, FieldErrors& errors) {
  if (type_of(service) == "ExternalName" || type_of(old) == "ExternalName") return;
  if (is_headless(service) && is_headless(old)) return;
  const Value& ips = service["spec"]["clusterIPs"];
  const Value& before = old["spec"]["clusterIPs"];
  // What does not fit together, or is no type at all, is told as that alone.
  if (!is_known_type(type_of(service))) return;
  if (!ips.empty() && !(ips[0] == service["spec"]["clusterIP"])) return;
  Path path("spec");
  Path ips_at = path.child("clusterIPs");
  if (before.size() > ips.size() && ips.empty()) {
    errors.invalid(ips_at.index(0), ips, "primary clusterIP can not be unset");
    return;
  }
  std::size_t count = before.size() == ips.size() ? ips.size() : std::size_t{1};
  for (std::size_t i = 0; i < count && i < before.size(); ++i) {
    if (!(ips[i] == before[i])) errors.invalid(ips_at.index(i), ips, "may not change once set");
  }
}

void validate_service_update(const Value& service, const Value& old, FieldErrors& errors) {
  validate_kept_ips(service, old, errors);
  const Value& load_balancer_class = old["spec"]["loadBalancerClass"];
  if (type_of(old) == "LoadBalancer" && type_of(service) == "LoadBalancer" &&
      !(load_balancer_class == service["spec"]["loadBalancerClass"])) {
    Path path("spec");
    errors.invalid(path.child("loadBalancerClass"), service["spec"]["loadBalancerClass"],
                   "may not change once set");
  }
  if (needs_health_check_port(old) && needs_health_check_port(service) &&
      !(old["spec"]["healthCheckNodePort"] == service["spec"]["healthCheckNodePort"])) {
    Path path("spec");
    errors.forbidden(path.child("healthCheckNodePort"), "field is immutable");
  }
  validate_service(service, errors);
}

void validate_service_status(const Value& service, const Value&, FieldErrors& errors) {
  Path status("status");
  Path balancer = status.child("loadBalancer");
  Path list = balancer.child("ingress");
  const Value& ingress = service["status"]["loadBalancer"]["ingress"];
  if (type_of(service) != "LoadBalancer" && !ingress.empty()) {
    return errors.forbidden(list, "may only be used when `spec.type` is 'LoadBalancer'");
  }
  for (std::size_t i = 0; i < ingress.size(); ++i) {
    Path at = list.index(i);
    std::string_view ip = ingress[i]["ip"].as_string();
    std::string_view name = ingress[i]["hostname"].as_string();
    if (!ip.empty()) validate_ip(ip, at.child("ip"), errors);
    if (ip.empty() && is_set(ingress[i], "ipMode")) {
      errors.forbidden(at.child("ipMode"), "may not be specified when `ip` is not set");
    }
    if (!name.empty()) {
      add_invalid(is_dns1123_subdomain(name), ingress[i]["hostname"], at.child("hostname"), errors);
      if (is_ip(name)) {
        errors.invalid(at.child("hostname"), ingress[i]["hostname"],
                       "must be a DNS name, not an IP address");
      }
    }
  }
}

/// In the order in which Kubernetes gives them.
std::vector<std::string> service_warnings(const Value& service, const Value*) {
  std::vector<std::string> texts;
  const Value& spec = service["spec"];
  const auto warn_if = [&](bool it_is, std::string_view text) {
    if (it_is) texts.emplace_back(text);
  };
  const std::string_view type = type_of(service);
  const bool headless = is_headless(service) && type == "ClusterIP";
  const bool outside = type == "ExternalName";
  const Value& external = spec["externalIPs"];
  warn_if(service["metadata"]["annotations"].contains("service.kubernetes.io/topology-aware-hints"),
          "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use "
          "service.kubernetes.io/topology-mode instead");
  if (!is_headless(service)) {
    for (std::size_t i = 0; i < spec["clusterIPs"].size(); ++i)
      add_spelling(spec["clusterIPs"][i].as_string(), cat("spec.clusterIPs[", i, "]"), texts);
  }
  warn_if(headless && !spec["loadBalancerIP"].as_string().empty(),
          "spec.loadBalancerIP is ignored for headless services");
  warn_if(headless && !external.empty(), "spec.externalIPs is ignored for headless services");
  warn_if(headless && spec["sessionAffinity"].as_string() != "None",
          "spec.SessionAffinity is ignored for headless services");
  for (std::size_t i = 0; i < external.size(); ++i)
    add_spelling(external[i].as_string(), cat("spec.externalIPs[", i, "]"), texts);
  warn_if(!external.empty() && !headless && !outside,
          "spec.externalIPs is deprecated and may no longer be implemented in some clusters");
  add_spelling(spec["loadBalancerIP"].as_string(), "spec.loadBalancerIP", texts);
  warn_if(outside && !external.empty(),
          "spec.externalIPs is ignored when spec.type is \"ExternalName\"");
  warn_if(!outside && !spec["externalName"].as_string().empty(),
          "spec.externalName is ignored when spec.type is not \"ExternalName\"");
  warn_if(spec["trafficDistribution"].as_string() == "PreferClose",
          "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"");
  return texts;
}

}  // namespace

void add_service_rules(RuleTable& table) {
  KindRules rules;
  rules.set_defaults = set_service_defaults;
  rules.prepare_create = prepare_service;
  rules.prepare_update = prepare_service_update;
  rules.validate = validate_service;
  rules.validate_update = validate_service_update;
  rules.validate_status = validate_service_status;
  rules.warnings = service_warnings;
  rules.name_rule = NameRule::label;
  rules.has_status = true;
  rules.selectable = {
      {"spec.clusterIP", [](const Value& object) { return object["spec"]["clusterIP"].str(); }},
      {"spec.type", [](const Value& object) { return object["spec"]["type"].str(); }}};
  rules.allow_create_on_update = true;
  rules.returns_deleted = true;
  rules.proxied = ProxyTarget::service;
  table[{"", "Service"}] = std::move(rules);
  table[{"", "Endpoints"}] = endpoints_rules();
  table[{"discovery.k8s.io", "EndpointSlice"}] = endpoint_slice_rules();
  table[{"networking.k8s.io", "NetworkPolicy"}] = network_policy_rules();
  table[{"networking.k8s.io", "Ingress"}] = ingress_rules();
  table[{"networking.k8s.io", "IngressClass"}] = ingress_class_rules();
  table[{"networking.k8s.io", "ServiceCIDR"}] = service_cidr_rules();
  table[{"networking.k8s.io", "IPAddress"}] = ip_address_rules();
}

}  // namespace dibs::api
