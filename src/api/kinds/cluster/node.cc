// Nodes: taints, pod networks, capacity.

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";

void set_node_defaults(Value& node) {
  // podCIDR is the first of podCIDRs; when they differ the single one is right.
  const Value& spec = node["spec"];
  std::string_view one = spec["podCIDR"].as_string();
  std::string_view first = spec["podCIDRs"][0].as_string();
  if (!one.empty() && one != first) {
    Value cidr(one);
    node.mut("spec").set("podCIDRs", Value::array({cidr}));
  } else if (one.empty() && !first.empty()) {
    Value cidr(first);
    node.mut("spec").set("podCIDR", cidr);
  }
  const Value& status = node["status"];
  if (!is_set(status, "allocatable") && is_set(status, "capacity")) {
    Value capacity = status["capacity"];
    node.mut("status").set("allocatable", capacity);
  }
}

void prepare_node(Value& node, const RuleContext&) {
  // Nothing is scheduled to a node before it has said that it is ready.
  for (const Value& taint : node["spec"]["taints"].items()) {
    if (taint["key"].as_string() == kNotReady && taint["effect"].as_string() == "NoSchedule")
      return;
  }
  node.mut("spec").mut("taints").push(
      Value::object({{"key", Value(kNotReady)}, {"effect", "NoSchedule"}}));
}

void validate_taints(const Value& taints, const Path& path, FieldErrors& errors) {
  std::set<std::pair<std::string, std::string>> seen;
  for (std::size_t i = 0; i < taints.size(); ++i) {
    const Value& taint = taints[i];
    Path at = path.index(i);
    validate_label_key(taint["key"].as_string(), at.child("key"), errors);
    Faults faults = is_label_value(taint["value"].as_string());
    if (!faults.empty()) errors.invalid(at.child("value"), taint["value"], join(faults, ";"));
    validate_taint_effect(taint["effect"], at.child("effect"), errors);
    if (!seen.emplace(taint["effect"].str(), taint["key"].str()).second) {
      Value shown = Value::object({{"Key", Value(taint["key"].as_string())},
                                   {"Value", Value(taint["value"].as_string())},
                                   {"Effect", Value(taint["effect"].as_string())},
                                   {"TimeAdded", taint["timeAdded"]}});
      FieldErrors text;
      text.duplicate(at, shown);
      errors.add(Fault::duplicate, at,
                 cat(text.errors()[0].text, ": taints must be unique by key and effect pair"));
    }
  }
}

void validate_node_resources(const Value& node, FieldErrors& errors) {
  Path status("status");
  for (const char* list : {"capacity"}) {
    Path at = status.child(list);
    for (const std::string& name : sorted_keys(node["status"][list])) {
      validate_resource_amount(name, node["status"][list][name], at.child(name), errors);
    }
  }
}

void validate_pod_cidrs(const Value& cidrs, const Path& path, FieldErrors& errors) {
  std::size_t before = errors.size();
  for (std::size_t i = 0; i < cidrs.size(); ++i) {
    validate_cidr(cidrs[i].as_string(), path.index(i), errors);
  }
  if (cidrs.size() < 2 || errors.size() != before) return;
  bool dual = cidrs.size() == 2 && (cidrs[0].as_string().find(':') == std::string_view::npos) !=
                                       (cidrs[1].as_string().find(':') == std::string_view::npos);
  if (!dual) {
    errors.invalid(path, cidrs, "may specify no more than one CIDR for each IP family");
  }
}

void validate_node(const Value& node, FieldErrors& errors) {
  Path metadata("metadata");
  Path spec("spec");
  // The API reports taints under metadata.
  validate_taints(node["spec"]["taints"], metadata.child("taints"), errors);
  validate_node_resources(node, errors);
  validate_pod_cidrs(node["spec"]["podCIDRs"], spec.child("podCIDRs"), errors);
}

void validate_node_update(const Value& node, const Value& old, FieldErrors& errors) {
  Path metadata("metadata");
  Path spec("spec");
  Path status("status");
  validate_node_resources(node, errors);
  Path addresses_at = status.child("addresses");
  const Value& addresses = node["status"]["addresses"];
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (!(addresses[before] == addresses[i])) continue;
      errors.duplicate(
          addresses_at.index(i),
          Value::object({{"Type", addresses[i]["type"]}, {"Address", addresses[i]["address"]}}));
      break;
    }
  }
  if (!old["spec"]["podCIDRs"].empty() && !(old["spec"]["podCIDRs"] == node["spec"]["podCIDRs"])) {
    errors.forbidden(spec.child("podCIDRs"),
                     "node updates may not change podCIDR except from \"\" to valid");
  }
  if (!old["spec"]["providerID"].as_string().empty() &&
      !(old["spec"]["providerID"] == node["spec"]["providerID"])) {
    errors.invalid(spec.child("providerID"), Value(), "field cannot be modified once set");
  }
  validate_taints(node["spec"]["taints"], metadata.child("taints"), errors);
}

}  // namespace

void add_node_rules(RuleTable& table) {
  KindRules rules;
  rules.set_defaults = set_node_defaults;
  rules.prepare_create = prepare_node;
  rules.validate = validate_node;
  rules.validate_update = validate_node_update;
  rules.validate_status = validate_node_update;
  rules.has_status = true;
  rules.proxied = ProxyTarget::node;
  rules.selectable = {{"spec.unschedulable", [](const Value& node) {
                         return std::string(node["spec"]["unschedulable"].as_bool() ? "true"
                                                                                    : "false");
                       }}};
  table[{"", "Node"}] = std::move(rules);
}

}  // namespace dibs::api
