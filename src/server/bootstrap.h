#pragma once
// The objects that every cluster begins with.

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/objects.h"
#include "server/options.h"
#include "server/resource.h"

namespace dibs::server {

/// Writes those that are missing, all in one transaction: namespaces, roles and bindings, priority
/// classes, the kubernetes Service. What a user has changed stays.
Result<> write_bootstrap_objects(runtime::Runtime& runtime, Objects& objects,
                                 ResourceTable& resources, const Options& options);

}  // namespace dibs::server
