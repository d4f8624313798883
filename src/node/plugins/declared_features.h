#pragma once
// What a node says it can do that older ones cannot (status.declaredFeatures): schedulers and the
// API server keep away from it what needs more.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::node {

/// Sorted. `release` "" is the newest; before 1.36 nodes declared nothing. Errors name the gate.
Result<std::vector<std::string>> declared_features(std::string_view release,
                                                   std::string_view feature_gates);

}  // namespace dibs::node
