#include "node/pods/pod_admission.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/strings.h"
#include "node/pods/pod_resources.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

using json::Value;

bool is_number_above(std::string_view text, std::string_view bound, bool above) {
  std::int64_t a = 0;
  std::int64_t b = 0;
  const auto first = std::from_chars(text.data(), text.data() + text.size(), a);
  const auto second = std::from_chars(bound.data(), bound.data() + bound.size(), b);
  if (first.ec != std::errc() || second.ec != std::errc()) return false;
  return above ? a > b : a < b;
}

bool requirement_holds(const Value& requirement, const Value* value) {
  const std::string_view op = requirement["operator"].as_string();
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  const Value& values = requirement["values"];
  bool named = false;
  for (const Value& item : values.items()) named = named || (value != nullptr && item == *value);
  if (op == "In") return named;
  if (op == "NotIn") return !named;
  if (value == nullptr) return false;
  return is_number_above(value->as_string(), values[0].as_string(), op == "Gt");
}

bool term_holds(const Value& term, const Value& node) {
  const Value& labels = node["metadata"]["labels"];
  if (term["matchExpressions"].empty() && term["matchFields"].empty()) return false;
  for (const Value& requirement : term["matchExpressions"].items()) {
    if (!requirement_holds(requirement, labels.find(requirement["key"].as_string()))) return false;
  }
  for (const Value& requirement : term["matchFields"].items()) {
    const bool known = requirement["key"].as_string() == "metadata.name";
    if (!requirement_holds(requirement, known ? node["metadata"].find("name") : nullptr)) {
      return false;
    }
  }
  return true;
}

bool node_selected(const Value& pod, const Value& node) {
  const Value& labels = node["metadata"]["labels"];
  for (const auto& [key, value] : pod["spec"]["nodeSelector"].members()) {
    if (!(labels[key] == value)) return false;
  }
  const Value& required =
      pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  return required.is_null() || node_selector_holds(required, node);
}

/// Resources that devices stand for: their claim was checked when it was allocated.
bool is_claimed(const Value& pod, std::string_view resource) {
  for (const Value& mapping :
       pod["status"]["extendedResourceClaimStatus"]["requestMappings"].items()) {
    if (mapping["resourceName"].as_string() == resource) return true;
  }
  return false;
}

bool is_tolerated(const Value& pod, const Value& taint) {
  for (const Value& one : pod["spec"]["tolerations"].items()) {
    const auto same = [&](const char* field) { return one[field].str() == taint[field].str(); };
    if (!one["effect"].as_string().empty() && !same("effect")) continue;
    if (!one["key"].as_string().empty() && !same("key")) continue;
    const std::string_view op = one["operator"].as_string();
    const std::string_view value = taint["value"].as_string();
    const bool holds = op == "Exists" || ((op.empty() || op == "Equal") && same("value")) ||
                       ((op == "Gt" || op == "Lt") &&
                        is_number_above(value, one["value"].as_string(), op == "Gt"));
    if (holds) return true;
  }
  return false;
}

struct HostPort {
  std::string_view protocol;
  std::string_view address;
  std::int64_t port;
};

/// What the pod takes of the machine's own ports, also on the machine's network.
std::vector<HostPort> host_ports(const Value& pod) {
  std::vector<HostPort> out;
  const auto add = [&](const Value& container) {
    for (const Value& port : container["ports"].items()) {
      if (port["hostPort"].as_int() <= 0) continue;
      const std::string_view protocol = port["protocol"].as_string();
      out.push_back({protocol.empty() ? std::string_view("TCP") : protocol,
                     port["hostIP"].as_string(), port["hostPort"].as_int()});
    }
  };
  for (const Value& container : pod["spec"]["containers"].items()) add(container);
  for (const Value& container : pod["spec"]["initContainers"].items()) {
    if (container["restartPolicy"].as_string() == "Always") add(container);
  }
  return out;
}

bool collide(const HostPort& a, const HostPort& b) {
  const auto any = [](std::string_view address) { return address.empty() || address == "0.0.0.0"; };
  return a.port == b.port && a.protocol == b.protocol &&
         (a.address == b.address || any(a.address) || any(b.address));
}

bool ports_free(const Value& pod, const std::vector<Value>& others) {
  const std::vector<HostPort> wanted = host_ports(pod);
  if (wanted.empty()) return true;
  for (const Value& other : others) {
    for (const HostPort& taken : host_ports(other)) {
      const auto hits = [&](const HostPort& one) { return collide(one, taken); };
      if (std::any_of(wanted.begin(), wanted.end(), hits)) return false;
    }
  }
  return true;
}

void collect_names(const Value& containers, std::set<std::string>& out) {
  for (const Value& container : containers.items()) {
    for (const auto& [name, quantity] : container["resources"]["requests"].members()) {
      out.emplace(name);
    }
  }
}

}  // namespace

bool node_selector_holds(const Value& selector, const Value& node) {
  for (const Value& term : selector["nodeSelectorTerms"].items()) {
    if (term_holds(term, node)) return true;
  }
  return false;
}

std::optional<Rejection> admit_pod(const Value& pod, const Value& node,
                                   const std::vector<Value>& others,
                                   const std::set<std::string>& held) {
  if (const std::string_view os = pod["spec"]["os"]["name"].as_string(); os == "windows") {
    return Rejection{"PodOSNotSupported",
                     "Failed to admit pod as the OS field doesn't match node OS"};
  }
  if (node.is_null()) return std::nullopt;
  if (!node_selected(pod, node)) {
    return Rejection{
        kNodeAffinity,
        "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"};
  }
  if (!ports_free(pod, others)) {
    return Rejection{"NodePorts",
                     "Predicate NodePorts failed: node(s) didn't have free ports for the requested "
                     "pod ports"};
  }
  const Value& allocatable = node["status"]["allocatable"];
  const auto no_room = [](std::string_view resource, std::int64_t wanted, std::int64_t used,
                          std::int64_t capacity) {
    return Rejection{cat("OutOf", resource),
                     cat("Node didn't have enough resource: ", resource, ", requested: ", wanted,
                         ", used: ", used, ", capacity: ", capacity)};
  };
  if (const std::int64_t pods = amount_of(allocatable["pods"], "pods");
      allocatable.contains("pods") && static_cast<std::int64_t>(others.size()) + 1 > pods) {
    return no_room("pods", 1, static_cast<std::int64_t>(others.size()), pods);
  }
  std::set<std::string> names;
  collect_names(pod["spec"]["containers"], names);
  collect_names(pod["spec"]["initContainers"], names);
  for (const auto& [name, quantity] : pod["spec"]["resources"]["requests"].members()) {
    names.emplace(name);
  }
  for (const auto& [name, quantity] : allocatable.members()) {
    if (claimed(pod, name) > 0) names.emplace(name);
  }
  for (const auto& name : names) {
    if (!allocatable.contains(name) || is_claimed(pod, name) || held.contains(name)) continue;
    const std::int64_t wanted = requested(pod, name);
    if (wanted == 0) continue;
    std::int64_t used = 0;
    for (const Value& other : others) {
      if (!is_claimed(other, name)) used = sum_of(used, requested(other, name));
    }
    const std::int64_t capacity = amount_of(allocatable[name], name);
    if (wanted + used > capacity) return no_room(name, wanted, used, capacity);
  }
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (taint["effect"].as_string() != "NoExecute" || is_tolerated(pod, taint)) continue;
    return Rejection{
        "TaintToleration",
        "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"};
  }
  return std::nullopt;
}

}  // namespace dibs::node
