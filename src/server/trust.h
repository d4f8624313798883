#pragma once
// The ConfigMap kube-system/extension-apiserver-authentication: what API servers that this one
// hands requests on to must know to believe it, and its clients' certificates.
//
// Servers of one cluster may have different authorities and headers, and each adds its own: lists
// are united, and an authority goes when it has expired.

#include "base/time.h"
#include "json/value.h"
#include "server/options.h"

namespace dibs::server {

json::Value trust_object(const Options& options);
/// `there` with what `wanted` has besides; null where there is nothing to write.
json::Value trust_brought_up_to_date(const json::Value& there, const json::Value& wanted, Time now);

}  // namespace dibs::server
