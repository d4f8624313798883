#include "api/expressions/policy_match.h"

namespace dibs::api {
namespace {

bool holds(const std::vector<std::string>& items, std::string_view wanted) {
  for (const std::string& item : items) {
    if (item == "*" || item == wanted) return true;
  }
  return false;
}

std::vector<std::string> texts(const Value& list) {
  std::vector<std::string> out;
  for (const Value& item : list.items()) out.push_back(item.str());
  return out;
}

bool is_namespaces(const ServedAs& served) {
  return served.group.empty() && served.version == "v1" && served.resource == "namespaces";
}

bool selected(const LabelSelector& selector, const Value* object) {
  return object != nullptr && !object->is_null() &&
         selector.matches((*object)["metadata"]["labels"]);
}

}  // namespace

std::vector<MatchResources::Rule> MatchResources::parse_rules(const Value& rules) {
  std::vector<Rule> out;
  for (const Value& rule : rules.items()) {
    Rule one;
    one.operations = texts(rule["operations"]);
    one.groups = texts(rule["apiGroups"]);
    one.versions = texts(rule["apiVersions"]);
    one.resources = texts(rule["resources"]);
    one.names = texts(rule["resourceNames"]);
    one.scope = rule["scope"].as_string("*");
    out.push_back(std::move(one));
  }
  return out;
}

MatchResources MatchResources::parse(const Value& resources) {
  MatchResources made;
  if (resources.is_null()) {
    made.always_ = true;
    return made;
  }
  made.exact_ = resources["matchPolicy"].as_string("Exact") == "Exact";
  auto take = [&](std::string_view key, LabelSelector& selector) {
    if (resources[key].is_null()) return;
    auto parsed = to_label_selector(resources[key]);
    if (parsed.ok()) {
      selector = std::move(parsed).value();
    } else {
      made.fault_ = parsed.error().message();
    }
  };
  take("namespaceSelector", made.namespaces_);
  take("objectSelector", made.objects_);
  made.rules_ = parse_rules(resources["resourceRules"]);
  made.excluded_ = parse_rules(resources["excludeResourceRules"]);
  return made;
}

bool MatchResources::Rule::concerns(const MatchQuestion& question) const {
  return holds(operations, question.operation);
}

bool MatchResources::Rule::covers(const ServedAs& served, std::string_view subresource) const {
  if (!holds(groups, served.group) || !holds(versions, served.version)) return false;
  for (std::string_view item : resources) {
    std::size_t slash = item.find('/');
    std::string_view resource = item.substr(0, slash);
    std::string_view sub =
        slash == std::string_view::npos ? std::string_view() : item.substr(slash + 1);
    if ((resource == "*" || resource == served.resource) && (sub == "*" || sub == subresource)) {
      return true;
    }
  }
  return false;
}

bool MatchResources::Rule::in_scope(const ServedAs& served, std::string_view name_space) const {
  // A Namespace is of the cluster, although it is asked about with its own name.
  bool of_cluster = is_namespaces(served) || name_space.empty();
  if (scope == "Namespaced") return !of_cluster;
  if (scope == "Cluster") return of_cluster;
  return scope == "*";
}

bool MatchResources::Rule::names_it(std::string_view name) const {
  if (names.empty()) return true;
  for (const std::string& one : names) {
    if (one == name) return true;
  }
  return false;
}

const ServedAs* MatchResources::find(const std::vector<Rule>& rules,
                                     const MatchQuestion& question) const {
  auto matches = [&](const Rule& rule, const ServedAs& served) {
    return rule.covers(served, question.subresource) &&
           rule.in_scope(served, question.name_space) && rule.names_it(question.name);
  };
  bool any = false;
  for (const Rule& rule : rules) {
    if (!rule.concerns(question)) continue;
    any = true;
    if (matches(rule, question.served)) return &question.served;
  }
  if (!any || exact_ || !question.equivalents) return nullptr;
  const std::vector<ServedAs>& equivalents = question.equivalents();
  if (equivalents.empty()) return nullptr;
  for (const Rule& rule : rules) {
    if (!rule.concerns(question)) continue;
    for (const ServedAs& served : equivalents) {
      if (matches(rule, served)) return &served;
    }
  }
  return nullptr;
}

Result<MatchResources::Outcome> MatchResources::match(const MatchQuestion& question) const {
  Outcome none;
  if (always_) return Outcome{true, question.served};
  // What selectors cannot say is told only where everything else matches.
  std::string fault = fault_;
  bool in_namespace = !question.name_space.empty() || question.served.resource == "namespaces";
  if (fault.empty() && in_namespace && !namespaces_.empty()) {
    auto labels = question.namespace_labels();
    if (!labels.ok()) {
      fault = labels.error().message();
    } else if (!namespaces_.matches(*labels)) {
      return none;
    }
  }
  if (fault.empty() && !objects_.empty() && !selected(objects_, question.object) &&
      !selected(objects_, question.old)) {
    return none;
  }
  if (find(excluded_, question) != nullptr) return none;
  const ServedAs* served = rules_.empty() ? &question.served : find(rules_, question);
  if (served == nullptr) return none;
  if (!fault.empty()) return Error::internal(fault);
  return Outcome{true, *served};
}

}  // namespace dibs::api
