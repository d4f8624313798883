#pragma once
// The rules of an aggregated ClusterRole, as a function. make_cluster_role_controller() in
// controllers.h writes them.

#include <vector>

#include "json/value.h"

namespace dibs::controllers {

/// Those of the roles among `all` that the aggregationRule selects: by selector, then by name, each
/// once.
json::Value aggregated_rules(const json::Value& role, std::vector<json::Value> all);

}  // namespace dibs::controllers
