#pragma once
// Values in the notation of the definition's Go types, which some messages show.

#include <string>

#include "json/value.h"

namespace dibs::api {

/// spec.versions of a definition as the JSON of upstream's internal type:
/// [{"Name":"v1","Served":true,…,"Schema":null,…}].
std::string go_versions(const json::Value& versions);
/// One entry of x-kubernetes-validations likewise: {"Rule":"self.a","Message":"",…}.
std::string go_rule(const json::Value& rule);
/// A schema likewise.
std::string go_schema(const json::Value& schema);

}  // namespace dibs::api
