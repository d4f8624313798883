#include "api/kinds/pod/scheduling.h"

#include <algorithm>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
constexpr const char* kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";

void validate_node_expression(const Value& expression, const Path& path, FieldErrors& errors) {
  std::string_view op = expression["operator"].as_string();
  const Value& values = expression["values"];
  if (op == "In" || op == "NotIn") {
    if (values.empty()) {
      errors.required(path.child("values"), "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (!values.empty()) {
      errors.forbidden(path.child("values"),
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (op == "Gt" || op == "Lt") {
    if (values.size() != 1) {
      errors.required(path.child("values"),
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    errors.invalid(path.child("operator"), Value(op), "not a valid selector operator");
  }
  validate_label_key(expression["key"].as_string(), path.child("key"), errors);
  Path values_at = path.child("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    add_invalid(is_label_value(values[i].as_string()), values[i], values_at.index(i), errors);
  }
}

void validate_node_field(const Value& expression, const Path& path, FieldErrors& errors) {
  std::string_view op = expression["operator"].as_string();
  const Value& values = expression["values"];
  if (op == "In" || op == "NotIn") {
    if (values.size() != 1) {
      errors.required(path.child("values"),
                      "must be only one value when `operator` is 'In' or 'NotIn' for node field "
                      "selector");
    }
  } else {
    errors.invalid(path.child("operator"), Value(op), "not a valid selector operator");
  }
  if (expression["key"].as_string() != "metadata.name") {
    errors.invalid(path.child("key"), Value(expression["key"].as_string()),
                   "not a valid field selector key");
    return;
  }
  Path values_at = path.child("values");
  for (std::size_t i = 0; i < values.size(); ++i) {
    add_invalid(is_dns1123_subdomain(values[i].as_string()), values[i], values_at.index(i), errors);
  }
}

void check_weight(const Value& term, const Path& path, FieldErrors& errors) {
  std::int64_t weight = term["weight"].as_int();
  if (weight < 1 || weight > 100) {
    errors.invalid(path.child("weight"), Value(weight), "must be in the range 1-100");
  }
}

void validate_label_keys(const Value& keys, bool has_selector, const Path& path,
                         FieldErrors& errors) {
  if (keys.empty()) return;
  if (!has_selector) {
    errors.forbidden(path, "must not be specified when labelSelector is not set");
    return;
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    validate_label_key(keys[i].as_string(), path.index(i), errors);
  }
}

bool lists(const Value& list, const Value& item) {
  for (const Value& entry : list.items()) {
    if (entry == item) return true;
  }
  return false;
}

void validate_affinity_term(const Value& term, const Path& path, FieldErrors& errors) {
  validate_label_selector(term["labelSelector"], path.child("labelSelector"), errors);
  validate_label_selector(term["namespaceSelector"], path.child("namespaceSelector"), errors);
  for (const Value& name : term["namespaces"].items()) {
    add_invalid(is_dns1123_label(name.as_string()), name, path.child("namespace"), errors);
  }
  bool has_selector = is_set(term, "labelSelector");
  Path match_at = path.child("matchLabelKeys");
  validate_label_keys(term["matchLabelKeys"], has_selector, match_at, errors);
  validate_label_keys(term["mismatchLabelKeys"], has_selector, path.child("mismatchLabelKeys"),
                      errors);
  const Value& match = term["matchLabelKeys"];
  for (std::size_t i = 0; i < match.size(); ++i) {
    if (lists(term["mismatchLabelKeys"], match[i])) {
      errors.invalid(match_at.index(i), match[i],
                     "exists in both matchLabelKeys and mismatchLabelKeys");
    }
  }
  std::string_view topology = term["topologyKey"].as_string();
  if (topology.empty()) errors.required(path.child("topologyKey"), "can not be empty");
  validate_label_key(topology, path.child("topologyKey"), errors);
}

void validate_pod_affinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  Path required_at = path.child(kRequired);
  const Value& required = affinity[kRequired];
  for (std::size_t i = 0; i < required.size(); ++i) {
    validate_affinity_term(required[i], required_at.index(i), errors);
  }
  Path preferred_at = path.child(kPreferred);
  const Value& preferred = affinity[kPreferred];
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    Path at = preferred_at.index(i);
    check_weight(preferred[i], at, errors);
    validate_affinity_term(preferred[i]["podAffinityTerm"], at.child("podAffinityTerm"), errors);
  }
}

bool selector_names(const Value& selector, std::string_view key) {
  if (selector["matchLabels"].contains(key)) return true;
  for (const Value& expression : selector["matchExpressions"].items()) {
    if (expression["key"].as_string() != key) continue;
    // What merge_match_label_keys() has put there.
    if (expression["operator"].as_string() == "In" && expression["values"].size() == 1) continue;
    return true;
  }
  return false;
}

void check_policy(const Value& constraint, std::string_view key, const Path& path,
                  FieldErrors& errors) {
  if (is_set(constraint, key) && !is_one_of(constraint[key].as_string(), {"Honor", "Ignore"})) {
    errors.not_supported(path.child(key), constraint[key], {"Honor", "Ignore"});
  }
}

void validate_claim_source(const Value& claim, bool nested, const Path& path, FieldErrors& errors) {
  bool by_name = is_set(claim, "resourceClaimName");
  bool by_template = is_set(claim, "resourceClaimTemplateName");
  auto shown = [&](const Value& name) {
    Value value = Value::object();
    if (!nested) value.set("Name", name);
    value.set("ResourceClaimName", Value(claim["resourceClaimName"]));
    value.set("ResourceClaimTemplateName", Value(claim["resourceClaimTemplateName"]));
    return value;
  };
  if (by_name && by_template) {
    errors.invalid(path, shown(claim["name"]),
                   "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be "
                   "specified");
  }
  if (!by_name && !by_template) {
    // Before 1.31 the source was a struct of its own, shown as Go prints it.
    constexpr std::string_view text =
        "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`";
    if (nested) {
      errors.add(Fault::invalid, path,
                 cat("Invalid value: core.ClaimSource{ResourceClaimName:(*string)(nil), "
                     "ResourceClaimTemplateName:(*string)(nil)}: ",
                     text));
    } else {
      errors.invalid(path, shown(claim["name"]), text);
    }
  }
  for (const char* key : {"resourceClaimName", "resourceClaimTemplateName"}) {
    if (!is_set(claim, key)) continue;
    add_invalid(is_dns1123_subdomain(claim[key].as_string()), claim[key], path.child(key), errors);
  }
}

void add_requirements(Value& selector, const Value& keys, const Value& labels,
                      std::string_view op) {
  for (const Value& key : keys.items()) {
    const Value* value = labels.find(key.as_string());
    if (value == nullptr) continue;
    selector.mut("matchExpressions")
        .push(Value::object(
            {{"key", key}, {"operator", Value(op)}, {"values", Value::array({*value})}}));
  }
}

void merge_into(Value& term, const Value& labels) {
  if (!is_set(term, "labelSelector")) return;
  Value match = term["matchLabelKeys"];
  Value mismatch = term["mismatchLabelKeys"];
  if (match.empty() && mismatch.empty()) return;
  Value& selector = term.mut("labelSelector");
  add_requirements(selector, match, labels, "In");
  add_requirements(selector, mismatch, labels, "NotIn");
}

}  // namespace

void validate_node_selector_term(const Value& term, const Path& path, FieldErrors& errors) {
  Path expressions_at = path.child("matchExpressions");
  const Value& expressions = term["matchExpressions"];
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    Path at = expressions_at.index(i);
    validate_node_expression(expressions[i], at, errors);
  }
  Path fields_at = path.child("matchFields");
  const Value& fields = term["matchFields"];
  for (std::size_t i = 0; i < fields.size(); ++i) {
    Path at = fields_at.index(i);
    validate_node_field(fields[i], at, errors);
  }
}

void validate_node_selector(const Value& selector, const Path& path, FieldErrors& errors) {
  const Value& terms = selector["nodeSelectorTerms"];
  Path terms_at = path.child("nodeSelectorTerms");
  if (terms.empty()) errors.required(terms_at, "must have at least one node selector term");
  for (std::size_t i = 0; i < terms.size(); ++i) {
    validate_node_selector_term(terms[i], terms_at.index(i), errors);
  }
}

void validate_taint_effect(const Value& effect, const Path& path, FieldErrors& errors) {
  std::string_view text = effect.as_string();
  if (text.empty()) {
    errors.required(path);
  } else if (!is_one_of(text, {"NoSchedule", "PreferNoSchedule", "NoExecute"})) {
    errors.not_supported(path, effect, {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void validate_tolerations(const Value& tolerations, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const Value& toleration = tolerations[i];
    Path at = path.index(i);
    std::string_view key = toleration["key"].as_string();
    std::string_view op = toleration["operator"].as_string();
    std::string_view effect = toleration["effect"].as_string();
    if (!key.empty()) validate_label_key(key, at.child("key"), errors);
    if (key.empty() && op != "Exists") {
      errors.invalid(
          at.child("operator"), Value(op),
          "operator must be Exists when `key` is empty, which means \"match all values and "
          "all keys\"");
    }
    if (is_set(toleration, "tolerationSeconds") && effect != "NoExecute") {
      errors.invalid(at.child("effect"), Value(effect),
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
    if (op.empty() || op == "Equal") {
      Faults faults = is_label_value(toleration["value"].as_string());
      if (!faults.empty()) {
        errors.invalid(at.child("operator"), toleration["value"], join(faults, ";"));
      }
    } else if (op == "Exists") {
      if (!toleration["value"].as_string().empty()) {
        errors.invalid(at.child("operator"), toleration["value"],
                       "value must be empty when `operator` is 'Exists'");
      }
    } else {
      errors.not_supported(at.child("operator"), Value(op), {"Equal", "Exists"});
    }
    if (!effect.empty()) validate_taint_effect(toleration["effect"], at.child("effect"), errors);
  }
}

void validate_affinity(const Value& affinity, const Path& path, FieldErrors& errors) {
  const Value& node = affinity["nodeAffinity"];
  Path node_at = path.child("nodeAffinity");
  if (is_set(node, kRequired)) {
    validate_node_selector(node[kRequired], node_at.child(kRequired), errors);
  }
  Path preferred_at = node_at.child(kPreferred);
  const Value& preferred = node[kPreferred];
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    Path at = preferred_at.index(i);
    check_weight(preferred[i], at, errors);
    validate_node_selector_term(preferred[i]["preference"], at.child("preference"), errors);
  }
  for (const char* key : {"podAffinity", "podAntiAffinity"}) {
    if (is_set(affinity, key)) validate_pod_affinity(affinity[key], path.child(key), errors);
  }
}

void validate_topology_spread(const Value& constraints, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const Value& constraint = constraints[i];
    Path at = path.index(i);
    if (constraint["maxSkew"].as_int() <= 0) {
      errors.invalid(at.child("maxSkew"), Value(constraint["maxSkew"].as_int()),
                     "must be greater than zero");
    }
    std::string_view key = constraint["topologyKey"].as_string();
    if (key.empty()) {
      errors.required(at.child("topologyKey"), "can not be empty");
    } else {
      validate_label_key(key, at.child("topologyKey"), errors);
    }
    std::string_view when = constraint["whenUnsatisfiable"].as_string();
    if (!is_one_of(when, {"DoNotSchedule", "ScheduleAnyway"})) {
      errors.not_supported(at.child("whenUnsatisfiable"), Value(when),
                           {"DoNotSchedule", "ScheduleAnyway"});
    }
    for (std::size_t other = i + 1; other < constraints.size(); ++other) {
      if (constraints[other]["topologyKey"].as_string() == key &&
          constraints[other]["whenUnsatisfiable"].as_string() == when) {
        errors.duplicate(at.child("{topologyKey, whenUnsatisfiable}"),
                         Value(cat("{", key, ", ", when, "}")));
        break;
      }
    }
    if (is_set(constraint, "minDomains")) {
      if (constraint["minDomains"].as_int() <= 0) {
        errors.invalid(at.child("minDomains"), constraint["minDomains"],
                       "must be greater than zero");
      }
      if (when != "DoNotSchedule") {
        errors.invalid(
            at.child("minDomains"), constraint["minDomains"],
            cat("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ", when));
      }
    }
    check_policy(constraint, "nodeAffinityPolicy", at, errors);
    check_policy(constraint, "nodeTaintsPolicy", at, errors);
    const Value& keys = constraint["matchLabelKeys"];
    Path keys_at = at.child("matchLabelKeys");
    validate_label_keys(keys, is_set(constraint, "labelSelector"), keys_at, errors);
    for (std::size_t k = 0; k < keys.size(); ++k) {
      if (selector_names(constraint["labelSelector"], keys[k].as_string())) {
        errors.invalid(keys_at.index(k), keys[k],
                       "exists in both matchLabelKeys and labelSelector");
      }
    }
    validate_label_selector(constraint["labelSelector"], at.child("labelSelector"), errors);
  }
}

void validate_scheduling_gates(const Value& gates, const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < gates.size(); ++i) {
    std::string name = gates[i]["name"].str();
    add_invalid(is_qualified_name(name), Value(name), path.index(i), errors);
    if (!seen.insert(name).second) errors.duplicate(path.index(i), Value(name));
  }
}

void validate_scheduling_group(const Value& group, const Path& path, FieldErrors& errors) {
  if (group.is_null()) return;
  const Value& name = group["podGroupName"];
  if (name.is_null()) {
    errors.invalid(path.child("podGroupName"), name, "must specify one of: `podGroupName`");
  } else {
    add_invalid(is_dns1123_subdomain(name.as_string()), name, path.child("podGroupName"), errors);
  }
}

void validate_readiness_gates(const Value& gates, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < gates.size(); ++i) {
    Path at = path.index(i);
    std::string_view type = gates[i]["conditionType"].as_string();
    add_invalid(is_qualified_name(type), Value(type), at.child("conditionType"), errors);
  }
}

void validate_pod_claims(const Value& claims, const Value& metadata, const Path& path,
                         FieldErrors& errors) {
  if (!claims.empty() && metadata["annotations"].contains("kubernetes.io/config.mirror")) {
    errors.forbidden(Path(""), "static pods do not support resource claims");
  }
  std::set<std::string> seen;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const Value& claim = claims[i];
    Path at = path.index(i);
    std::string name = claim["name"].str();
    if (name.empty()) {
      errors.required(at.child("name"));
    } else if (seen.count(name) != 0) {
      errors.duplicate(at.child("name"), Value(name));
    } else {
      add_invalid(is_dns1123_label(name), Value(name), at.child("name"), errors);
      seen.insert(name);
    }
    if (is_set(claim, "source")) {
      validate_claim_source(claim["source"], true, at.child("source"), errors);
    } else {
      validate_claim_source(claim, false, at, errors);
    }
  }
}

std::vector<std::string> pod_claim_names(const Value& spec) {
  std::set<std::string> names;
  for (const Value& claim : spec["resourceClaims"].items()) {
    if (!claim["name"].as_string().empty()) names.insert(claim["name"].str());
  }
  return {names.begin(), names.end()};
}

void merge_match_label_keys(Value& pod) {
  Value labels = pod["metadata"]["labels"];
  if (labels.empty()) return;
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    for (std::size_t i = 0; i < pod["spec"]["affinity"][kind][kPreferred].size(); ++i) {
      merge_into(
          pod.mut("spec").mut("affinity").mut(kind).mut(kPreferred).mut(i).mut("podAffinityTerm"),
          labels);
    }
    for (std::size_t i = 0; i < pod["spec"]["affinity"][kind][kRequired].size(); ++i) {
      merge_into(pod.mut("spec").mut("affinity").mut(kind).mut(kRequired).mut(i), labels);
    }
  }
  for (std::size_t i = 0; i < pod["spec"]["topologySpreadConstraints"].size(); ++i) {
    merge_into(pod.mut("spec").mut("topologySpreadConstraints").mut(i), labels);
  }
}

}  // namespace dibs::api
