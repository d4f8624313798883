#pragma once
// The decisions of a Deployment: which ReplicaSet is the new one, how the old ones give way to it,
// and what the status says about that.
//
// A function of what is known: the Deployment, its sets and the time. It gives the writes in the
// order in which they have to happen, each with what is told about it. It assumes that they
// succeed; a caller for whom one fails writes no status and asks again.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

inline constexpr std::string_view kRevisionAnnotation = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kHistoryAnnotation = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kDesiredAnnotation = "deployment.kubernetes.io/desired-replicas";
inline constexpr std::string_view kMaxAnnotation = "deployment.kubernetes.io/max-replicas";
inline constexpr std::string_view kTemplateHashLabel = "pod-template-hash";

struct RolloutInput {
  json::Value deployment = {};
  std::vector<json::Value> sets = {};  // those that it controls
  /// Pods of old sets are still there, also those on their way out. Only asked for Recreate.
  bool old_pods_left = false;
  Time now = {};
};

struct SetWrite {
  enum class Verb : std::uint8_t { create, update, remove };
  Verb verb = Verb::update;
  json::Value set = {};
  /// About scaling; what a Deployment's events say once the write is done.
  std::vector<std::string> notes = {};
};

struct RolloutPlan {
  std::vector<SetWrite> writes = {};
  /// With its new status, and with the revision among its annotations.
  json::Value deployment = {};
  /// When the deadline for progress has to be looked at.
  std::optional<Duration> again = {};
};

RolloutPlan plan_rollout(const RolloutInput& input);

/// The set of the Deployment's template, or null.
json::Value find_new_set(const json::Value& deployment, const std::vector<json::Value>& sets);
/// The same but for the label that tells sets apart.
bool same_template(const json::Value& a, const json::Value& b);
std::int64_t revision_of(const json::Value& object);

/// The status with a condition of Progressing that says why a set could not be made.
json::Value with_create_failure(const json::Value& status, const std::string& set_name,
                                const std::string& error, Time now);

}  // namespace dibs::controllers
