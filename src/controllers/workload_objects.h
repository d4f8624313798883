#pragma once
// What the workload controllers read from objects and build for their children: owners, readiness
// of pods, conditions, hashes of templates, shares of a number.
//
// Pure functions over values; the time comes as an argument.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "client/client.h"
#include "controllers/controller.h"
#include "json/value.h"

namespace dibs::controllers {

inline const Gvr kReplicationControllerResource{"", "v1", "replicationcontrollers"};
inline const Gvr kReplicaSetResource{"apps", "v1", "replicasets"};
inline const Gvr kDeploymentResource{"apps", "v1", "deployments"};
inline const Gvr kStatefulSetResource{"apps", "v1", "statefulsets"};
inline const Gvr kDaemonSetResource{"apps", "v1", "daemonsets"};
inline const Gvr kRevisionResource{"apps", "v1", "controllerrevisions"};
inline const Gvr kJobResource{"batch", "v1", "jobs"};
inline const Gvr kCronJobResource{"batch", "v1", "cronjobs"};

/// Whom the server sees writing.
inline constexpr std::string_view kFieldManager = "kube-controller-manager";

std::string_view label_of(const Value& object, std::string_view key);
std::string_view annotation_of(const Value& object, std::string_view key);
/// 1970 when unset or broken.
Time time_at(const Value& text);
Time created_at(const Value& object);

bool controlled_by(const Value& object, const Value& owner);
/// Patches (strategic) that take an orphan in, or let a child go.
Value adoption_patch(const Value& child, const Value& owner);
Value release_patch(const Value& child, const Value& owner);

/// A pod that counts: neither finished nor on its way out.
bool pod_active(const Value& pod);
/// On its way out, and still running.
bool pod_terminating(const Value& pod);
bool pod_ready(const Value& pod);
/// When the Ready condition last changed.
Time pod_ready_since(const Value& pod);
bool pod_available(const Value& pod, std::int64_t min_ready_seconds, Time now);
/// The earliest moment after `now` at which a ready pod that is not available yet becomes so.
std::optional<Duration> next_available(const std::vector<Value>& pods,
                                       std::int64_t min_ready_seconds, Time now);

/// A pod of the template that `owner` controls, with generateName "<owner>-".
Value pod_of_template(const Value& pod_template, const Value& owner);

/// The condition of that type, or null.
const Value& condition_in(const Value& conditions, std::string_view type);
/// The list without the condition of that type.
Value without_condition(const Value& conditions, std::string_view type);

/// A number, or "25%" of `total`; rounded up or down.
std::int64_t scaled_value(const Value& int_or_percent, std::int64_t total, bool round_up);

/// Members sorted by name at every level, so that equal objects give equal texts.
Value sorted_members(const Value& value);
/// A number in the letters of generated names.
std::string safe_encode(std::uint32_t number);
std::uint32_t fnv1_32(std::string_view bytes);
std::uint32_t fnv1a_32(std::string_view bytes, std::uint32_t basis = 2166136261U);
/// What distinguishes pods of one template from those of another.
std::string template_hash(const Value& pod_template, std::optional<std::int64_t> collisions);

/// By creation, then by name.
bool oldest_first(const Value& a, const Value& b);

}  // namespace dibs::controllers
