#pragma once
// The objects that every cluster begins with.

#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/objects.h"
#include "server/options.h"
#include "server/resource.h"

namespace dibs::server {

/// The address of the kubernetes Service: the first one of the range (CIDR).
std::string api_service_address(std::string_view range);

/// Writes those that are missing, all in one transaction: namespaces, roles and bindings, priority
/// classes, the kubernetes Service and its range. What a user has changed stays.
Result<> write_bootstrap_objects(runtime::Runtime& runtime, Objects& objects,
                                 ResourceTable& resources, const Options& options);

/// Brings the ConfigMap of server/trust.h up to date.
Result<> write_trust(runtime::Runtime& runtime, Objects& objects, ResourceTable& resources,
                     const Options& options);

}  // namespace dibs::server
