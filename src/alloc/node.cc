#include "alloc/node.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

using api::LabelOperator;
using api::LabelRequirement;

constexpr std::array<std::pair<std::string_view, LabelOperator>, 6> kOperators = {{
    {"In", LabelOperator::in},
    {"NotIn", LabelOperator::not_in},
    {"Exists", LabelOperator::exists},
    {"DoesNotExist", LabelOperator::does_not_exist},
    {"Gt", LabelOperator::greater_than},
    {"Lt", LabelOperator::less_than},
}};

void read_requirements(const json::Value& list, std::vector<LabelRequirement>& out,
                       std::string& error) {
  for (const json::Value& item : list.items()) {
    LabelRequirement made;
    made.key = item["key"].str();
    const std::string_view name = item["operator"].as_string();
    const auto* found = std::find_if(kOperators.begin(), kOperators.end(),
                                     [&](const auto& known) { return known.first == name; });
    if (found == kOperators.end()) {
      if (error.empty()) error = cat(quoted(name), " is not a valid node selector operator");
      continue;
    }
    made.op = found->second;
    for (const json::Value& value : item["values"].items()) made.values.push_back(value.str());
    out.push_back(std::move(made));
  }
}

}  // namespace

Node Node::read(const json::Value& node) {
  Node made;
  made.name = node["metadata"]["name"].str();
  made.labels = node["metadata"]["labels"];
  for (const json::Value& feature : node["status"]["declaredFeatures"].items()) {
    if (feature.as_string() == "DRAOptionalNodeOperations") made.optional_node_operations = true;
  }
  return made;
}

NodeSelector NodeSelector::read(const json::Value& selector) {
  NodeSelector made;
  made.source = selector;
  for (const json::Value& term : selector["nodeSelectorTerms"].items()) {
    Term read;
    read_requirements(term["matchExpressions"], read.expressions, made.error);
    read_requirements(term["matchFields"], read.fields, made.error);
    made.terms.push_back(std::move(read));
  }
  return made;
}

bool NodeSelector::matches(const Node& node) const {
  const auto holds = [&](const Term& term) {
    if (term.expressions.empty() && term.fields.empty()) return false;
    for (const LabelRequirement& requirement : term.expressions) {
      const json::Value* found = node.labels.find(requirement.key);
      const std::string_view value = found != nullptr ? found->as_string() : std::string_view();
      if (!requirement.matches(found != nullptr ? &value : nullptr)) return false;
    }
    for (const LabelRequirement& requirement : term.fields) {
      const std::string_view value = node.name;
      if (!requirement.matches(requirement.key == "metadata.name" ? &value : nullptr)) return false;
    }
    return true;
  };
  return std::any_of(terms.begin(), terms.end(), holds);
}

NodeSelection NodeSelection::read(const json::Value& spec) {
  NodeSelection made;
  made.node_name = spec["nodeName"].str();
  made.all_nodes = spec["allNodes"].as_bool();
  made.has_selector = spec["nodeSelector"].is_object();
  if (made.has_selector) made.selector = NodeSelector::read(spec["nodeSelector"]);
  return made;
}

Result<bool> NodeSelection::matches(const Node& node) const {
  if (!node_name.empty()) return node_name == node.name;
  if (all_nodes) return true;
  if (!has_selector) return false;
  if (!selector.error.empty()) {
    return Error::bad_request(cat("failed to parse node selector: ", selector.error));
  }
  return selector.matches(node);
}

}  // namespace dibs::alloc
