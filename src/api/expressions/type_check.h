#pragma once
// Type checking of ValidatingAdmissionPolicies: what their expressions would get wrong about the
// kinds that they are for.
//
// When a policy is evaluated nothing is known of the types of objects and parameters. Here each
// validation is compiled once for each kind that the rules name without wildcards, against the
// schema of that kind. What comes out are warnings for status.typeChecking; they change nothing.

#include <string>
#include <vector>

#include "api/schema/kind.h"
#include "json/value.h"

namespace dibs::api {

/// A resource that rules name.
struct RuleResource {
  std::string group, version, resource;
};

/// Those that the rules of a policy name without wildcards and sub-resources, in the order of the
/// rules; sorted within each. A rule with a wildcard among its groups or versions names none.
std::vector<std::vector<RuleResource>> resources_to_check(const json::Value& policy);

/// The most kinds that one rule is checked for.
inline constexpr std::size_t kMostCheckedKinds = 10;

/// The schema of a kind in an OpenAPI v3 document, with what it refers to in place of references;
/// null where there is none. A type within itself is an empty object.
json::Value resolved_schema(const json::Value& document, const GroupVersionKind& kind);

struct CheckedKind {
  GroupVersionKind kind;
  json::Value schema;  // resolved; null: nothing is known
};

/// status.typeChecking.expressionWarnings. `kinds` are sorted; `params` is the schema of paramKind,
/// null where it is not known.
json::Value type_check(const json::Value& policy, const std::vector<CheckedKind>& kinds,
                       const json::Value& params);

}  // namespace dibs::api
