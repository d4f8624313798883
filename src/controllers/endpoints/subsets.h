#pragma once
// Subsets of Endpoints: addresses by the ports that they have in common.
//
// Pure functions.

#include <vector>

#include "controllers/controller.h"

namespace dibs::controllers {

inline constexpr std::size_t kEndpointsCapacity = 1000;

/// The one form of several that say the same: each address once, with all its ports, those with
/// equal ports together, everything in order. An address that is ready and not is not ready.
Value packed_subsets(const Value& subsets);
/// The subsets of a Service, for those of its pods that count.
Value subsets_of(const Value& service, const std::vector<Value>& pods);
/// Leaves out what is beyond kEndpointsCapacity, first of what is not ready, each subset in its
/// proportion. False: nothing.
bool truncate_subsets(Value& subsets);

}  // namespace dibs::controllers
