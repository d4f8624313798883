#pragma once
// The settings of the coordinator plugin, which SpiderCoordinator has for the whole cluster and a
// SpiderMultusConfig for its pods. Pure.

#include <string>

#include "base/result.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// `path` is where the settings stand: "spec", "spec.coordinator". Errors (invalid) are those of
/// the original's webhook.
Result<> check_coordinator(const json::Value& settings, const std::string& path);

/// The plugin's part of a CNI configuration, with the defaults of what is not said; `settings` may
/// be null.
json::Value coordinator_plugin(const json::Value& settings);

}  // namespace dibs::drivers::net
