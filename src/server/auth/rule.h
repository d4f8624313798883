#pragma once
// A rule of a role: which verbs on which resources, or on which other paths.

#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"
#include "server/auth/attributes.h"

namespace dibs::server::auth {

using json::Value;

struct PolicyRule {
  std::vector<std::string> verbs;
  std::vector<std::string> groups;
  std::vector<std::string> resources;
  std::vector<std::string> names;
  std::vector<std::string> urls;

  friend bool operator==(const PolicyRule&, const PolicyRule&) = default;
};

PolicyRule rule_of(const Value& rule);
/// Of object["rules"].
std::vector<PolicyRule> rules_of(const Value& object);

bool matches(const PolicyRule& rule, const RequestAttributes& attributes);
/// Or would, were the object one of `rule.names`.
bool matches_but_for_name(const PolicyRule& rule, const RequestAttributes& attributes);

/// What of `asked` is in none of the `held` rules, in small pieces put together again by verb;
/// empty when all of it is held.
std::vector<PolicyRule> missing_rights(const std::vector<PolicyRule>& held,
                                       const std::vector<PolicyRule>& asked);

/// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`
std::string rule_text(const PolicyRule& rule);

/// `["a" "b"]`, as lists of texts are shown in messages.
std::string list_text(const std::vector<std::string>& texts);

}  // namespace dibs::server::auth
