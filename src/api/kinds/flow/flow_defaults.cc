#include "api/kinds/flow/flow_defaults.h"

#include <algorithm>

namespace dibs::api {
namespace {

using json::Value;

Value named(std::string_view name, Value spec) {
  return Value::object(
      {{"metadata", Value::object({{"name", name},
                                   {"generation", 1},
                                   {"annotations", Value::object({{kFlowAutoUpdate, "true"}})}})},
       {"spec", std::move(spec)},
       {"status", Value::object()}});
}

/// `queues` 0: what finds no seat is refused.
Value level(std::string_view name, int shares, int lendable, int queues, int hand = 6) {
  Value response = Value::object({{"type", queues == 0 ? "Reject" : "Queue"}});
  if (queues > 0) {
    response.set("queuing",
                 Value::object({{"queues", queues}, {"handSize", hand}, {"queueLengthLimit", 50}}));
  }
  return named(name, Value::object({{"type", "Limited"},
                                    {"limited", Value::object({{"nominalConcurrencyShares", shares},
                                                               {"limitResponse", response},
                                                               {"lendablePercent", lendable}})}}));
}

Value strings(std::initializer_list<std::string_view> texts) {
  Value out = Value::array();
  for (const std::string_view text : texts) out.push(Value(text));
  return out;
}

using Texts = std::initializer_list<std::string_view>;

Value resource_rule(Texts verbs, Texts groups, Texts resources, bool cluster) {
  Value out = Value::object({{"verbs", strings(verbs)},
                             {"apiGroups", strings(groups)},
                             {"resources", strings(resources)}});
  if (cluster) out.set("clusterScope", true);
  out.set("namespaces", strings({"*"}));
  return out;
}

Value url_rule(Texts verbs, Texts urls) {
  return Value::object({{"verbs", strings(verbs)}, {"nonResourceURLs", strings(urls)}});
}

Value group(std::string_view name) {
  return Value::object({{"kind", "Group"}, {"group", Value::object({{"name", name}})}});
}
Value user(std::string_view name) {
  return Value::object({{"kind", "User"}, {"user", Value::object({{"name", name}})}});
}
Value kube_system_accounts() {
  return Value::object(
      {{"kind", "ServiceAccount"},
       {"serviceAccount", Value::object({{"namespace", "kube-system"}, {"name", "*"}})}});
}

Value schema(std::string_view name, std::string_view level, int precedence, std::string_view by,
             Value subjects, Value resources, Value urls) {
  Value rule = Value::object({{"subjects", std::move(subjects)}});
  if (!resources.empty()) rule.set("resourceRules", std::move(resources));
  if (!urls.empty()) rule.set("nonResourceRules", std::move(urls));
  Value spec = Value::object({{"priorityLevelConfiguration", Value::object({{"name", level}})},
                              {"matchingPrecedence", precedence}});
  if (!by.empty()) spec.set("distinguisherMethod", Value::object({{"type", by}}));
  spec.set("rules", Value::array({std::move(rule)}));
  return named(name, std::move(spec));
}

/// Of all that the subjects ask for.
Value schema(std::string_view name, std::string_view level, int precedence, std::string_view by,
             Value subjects) {
  return schema(name, level, precedence, by, std::move(subjects),
                Value::array({resource_rule({"*"}, {"*"}, {"*"}, true)}),
                Value::array({url_rule({"*"}, {"*"})}));
}

Value exempt_level() {
  return named("exempt", Value::object({{"type", "Exempt"},
                                        {"exempt", Value::object({{"nominalConcurrencyShares", 0},
                                                                  {"lendablePercent", 0}})}}));
}

}  // namespace

const std::vector<Value>& default_priority_levels() {
  static const std::vector<Value> levels = {
      exempt_level(),
      level("catch-all", 5, 0, 0),
      level("system", 30, 33, 64),
      level("node-high", 40, 25, 64),
      level("leader-election", 10, 0, 16, 4),
      level("workload-high", 40, 50, 128),
      level("workload-low", 100, 90, 128),
      level("global-default", 20, 50, 128),
  };
  return levels;
}

const std::vector<Value>& default_flow_schemas() {
  const auto everybody = [] {
    return Value::array({group("system:unauthenticated"), group("system:authenticated")});
  };
  const auto one = [](Value subject) { return Value::array({std::move(subject)}); };
  constexpr std::string_view kByUser = "ByUser";
  constexpr std::string_view kByNamespace = "ByNamespace";
  static const std::vector<Value> schemas = {
      schema("exempt", "exempt", 1, "", one(group("system:masters"))),
      schema("probes", "exempt", 2, "", everybody(), Value::array(),
             Value::array({url_rule({"get"}, {"/healthz", "/readyz", "/livez"})})),
      schema("system-leader-election", "leader-election", 100, kByUser,
             Value::array({user("system:kube-controller-manager"), user("system:kube-scheduler"),
                           kube_system_accounts()}),
             Value::array({resource_rule({"get", "create", "update"}, {"coordination.k8s.io"},
                                         {"leases"}, false)}),
             Value::array()),
      schema("system-node-high", "node-high", 400, kByUser, one(group("system:nodes")),
             Value::array({resource_rule({"*"}, {""}, {"nodes", "nodes/status"}, true),
                           resource_rule({"*"}, {"coordination.k8s.io"}, {"leases"}, false)}),
             Value::array()),
      schema("system-nodes", "system", 500, kByUser, one(group("system:nodes"))),
      schema("kube-controller-manager", "workload-high", 800, kByNamespace,
             one(user("system:kube-controller-manager"))),
      schema("kube-scheduler", "workload-high", 800, kByNamespace,
             one(user("system:kube-scheduler"))),
      schema("kube-system-service-accounts", "workload-high", 900, kByNamespace,
             one(kube_system_accounts())),
      schema("service-accounts", "workload-low", 9000, kByUser,
             one(group("system:serviceaccounts"))),
      schema("global-default", "global-default", 9900, kByUser, everybody()),
      schema("catch-all", "catch-all", 10000, kByUser, everybody()),
  };
  return schemas;
}

bool is_mandatory_flow(std::string_view name) { return name == "exempt" || name == "catch-all"; }

Value flow_kept_as(const Value& existing, const Value& wanted) {
  const std::string_view name = wanted["metadata"]["name"].as_string();
  const Value& metadata = existing["metadata"];
  const std::string_view said = metadata["annotations"][kFlowAutoUpdate].as_string();
  bool keep = is_mandatory_flow(name);
  if (!keep) {
    // Without a word about it, one that nobody has changed is kept.
    keep = said == "true" || (said != "false" && metadata["generation"].as_int() <= 1);
  }
  const std::string_view right = keep ? "true" : "false";
  // Of the exempt level a user may say how many seats it lends.
  const bool is_level = !wanted["spec"]["type"].is_null();
  const bool differs = !(existing["spec"] == wanted["spec"]) &&
                       !(is_level && name == "exempt" && !existing["spec"]["exempt"].is_null());
  if (said == right && !(keep && differs)) return {};
  Value out = existing;
  if (keep && differs) {
    out.set("spec", wanted["spec"]);
    out.mut("metadata").set("generation", metadata["generation"].as_int() + 1);
  }
  if (metadata["annotations"].is_null()) out.mut("metadata").set("annotations", Value::object());
  out.mut("metadata").mut("annotations").set(kFlowAutoUpdate, right);
  return out;
}

}  // namespace dibs::api
