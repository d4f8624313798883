#pragma once
// The parts of reading a KubeSchedulerConfiguration. Of this library alone; callers have
// Configuration::parse().

#include "api/schema/features.h"
#include "api/schema/field_error.h"
#include "base/result.h"
#include "json/value.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

/// Sets what plugins a profile has at which points, and its scores, from `plugins` of a profile;
/// null for the default. Errors: bad_request, why kube-scheduler would not make such a profile.
Result<> set_plugins(const json::Value& plugins, const api::Path& path, Profile& profile,
                     api::FieldErrors& found);

/// Takes in `pluginConfig` of a profile, whose arguments are decoded.
void set_plugin_args(const json::Value& plugin_config, const api::Path& path,
                     const api::Features& gates, Profile& profile, api::FieldErrors& found);

/// A name that v1 does not have any more is told; true if it is one.
bool is_removed_plugin(const json::Value& name, const api::Path& path, api::FieldErrors& found);

}  // namespace dibs::scheduler
