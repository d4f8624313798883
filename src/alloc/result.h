#pragma once
// The allocation that goes into a claim's status, from the devices that were picked.

#include <functional>
#include <string>
#include <vector>

#include "alloc/attempt.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::alloc {

/// Makes the id of a share of a device; ids must be unique in the cluster.
using ShareIds = std::function<std::string()>;

/// One status.allocation per claim, in their order. Errors: bad_request, devices whose places
/// cannot be expressed as one node selector.
Result<std::vector<json::Value>> make_allocations(Attempt& attempt, const ShareIds& share_ids);

}  // namespace dibs::alloc
