#pragma once
// The range of addresses that a cluster's Services have: for life, since Services keep theirs.
//
// It is a key of the store, so servers that share one agree. A store that was filled by others, or
// from a backup, has none: there the `kubernetes` Service tells, which has the first address.

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace dibs::server {

/// The range of the cluster in this store; "" where it has none yet. `asked`: the value of
/// --service-cluster-ip-range, "" where it was not given. Errors name that flag: the cluster has
/// another one.
Result<std::string> known_service_range(store::Store& store, const std::string& asked);
/// Notes it. Errors: another server was quicker, with another range.
Result<> keep_service_range(store::Store& store, const std::string& range);

}  // namespace dibs::server
