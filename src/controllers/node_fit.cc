#include "controllers/node_fit.h"

#include <algorithm>
#include <map>

#include "api/merge/selectors.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

bool expression_holds(const Value& expression, const std::string_view* value) {
  using api::LabelOperator;
  static const std::map<std::string_view, LabelOperator> kOperators = {
      {"In", LabelOperator::in},           {"NotIn", LabelOperator::not_in},
      {"Exists", LabelOperator::exists},   {"DoesNotExist", LabelOperator::does_not_exist},
      {"Gt", LabelOperator::greater_than}, {"Lt", LabelOperator::less_than}};
  const auto found = kOperators.find(expression["operator"].as_string());
  if (found == kOperators.end()) return false;
  api::LabelRequirement requirement;
  requirement.key = expression["key"].str();
  requirement.op = found->second;
  for (const Value& item : expression["values"].items()) requirement.values.push_back(item.str());
  return requirement.matches(value);
}

bool term_holds(const Value& term, const Value& node) {
  const Value& expressions = term["matchExpressions"];
  const Value& fields = term["matchFields"];
  if (expressions.empty() && fields.empty()) return false;
  const Value& labels = node["metadata"]["labels"];
  for (const Value& expression : expressions.items()) {
    const Value* label = labels.find(expression["key"].as_string());
    const std::string_view text = label != nullptr ? label->as_string() : std::string_view();
    if (!expression_holds(expression, label != nullptr ? &text : nullptr)) return false;
  }
  for (const Value& expression : fields.items()) {
    const std::string_view name = name_of(node);
    const bool known = expression["key"].as_string() == "metadata.name";
    if (!expression_holds(expression, known ? &name : nullptr)) return false;
  }
  return true;
}

}  // namespace

bool node_selector_matches(const Value& selector, const Value& node) {
  const auto& terms = selector["nodeSelectorTerms"].items();
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Value& term) { return term_holds(term, node); });
}

bool node_selected(const Value& pod_spec, const Value& node) {
  for (const auto& [key, value] : pod_spec["nodeSelector"].members())
    if (!(node["metadata"]["labels"][key] == value)) return false;
  const Value& required =
      pod_spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  return required.is_null() || node_selector_matches(required, node);
}

bool tolerates(const Value& toleration, const Value& taint) {
  const std::string_view effect = toleration["effect"].as_string();
  if (!effect.empty() && effect != taint["effect"].as_string()) return false;
  const std::string_view key = toleration["key"].as_string();
  if (!key.empty() && key != taint["key"].as_string()) return false;
  if (toleration["operator"].as_string() == "Exists") return true;
  return !key.empty() && toleration["value"].as_string() == taint["value"].as_string();
}

bool tolerates_all(const Value& tolerations, const Value& taints, bool no_execute_only) {
  for (const Value& taint : taints.items()) {
    const std::string_view effect = taint["effect"].as_string();
    if (effect != "NoExecute" && (no_execute_only || effect != "NoSchedule")) continue;
    const auto& items = tolerations.items();
    if (std::none_of(items.begin(), items.end(),
                     [&](const Value& toleration) { return tolerates(toleration, taint); }))
      return false;
  }
  return true;
}

}  // namespace dibs::controllers
