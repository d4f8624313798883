#include <algorithm>
#include <map>

#include "api/merge/selectors.h"

namespace dibs::api {
namespace {

bool expression_holds(const Value& expression, const std::string_view* value) {
  static const std::map<std::string_view, LabelOperator> kOperators = {
      {"In", LabelOperator::in},           {"NotIn", LabelOperator::not_in},
      {"Exists", LabelOperator::exists},   {"DoesNotExist", LabelOperator::does_not_exist},
      {"Gt", LabelOperator::greater_than}, {"Lt", LabelOperator::less_than}};
  const auto found = kOperators.find(expression["operator"].as_string());
  if (found == kOperators.end()) return false;
  LabelRequirement requirement;
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
    const std::string_view name = node["metadata"]["name"].as_string();
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

}  // namespace dibs::api
