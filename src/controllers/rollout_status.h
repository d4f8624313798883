#pragma once
// What a Deployment says about its rollout: counts, the conditions Available and Progressing, and
// when the rollout counts as stuck. Functions of the sets' own statuses.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

/// The numbers of a spec, with shares of a hundred worked out.
struct DeploymentSpec {
  std::int64_t replicas = 0;
  std::int64_t max_surge = 0;
  std::int64_t max_unavailable = 0;
  std::int64_t min_ready = 0;
  bool rolling = true;
};
DeploymentSpec deployment_spec(const json::Value& deployment);

/// Of a ReplicaSet; null counts as 0.
std::int64_t replicas_of(const json::Value& set);
std::int64_t available_of(const json::Value& set);

bool has_progress_deadline(const json::Value& deployment);

/// A condition that says the same already stays as it is, with its times.
void set_condition(json::Value& status, std::string_view type, std::string_view value,
                   std::string_view reason, const std::string& message, Time now);

/// Counts and availability. `before`: the status with conditions set so far.
json::Value calculate_status(const json::Value& deployment, const json::Value& before,
                             const std::vector<json::Value>& sets, const json::Value& new_set,
                             Time now);
/// Everything asked for is there and available.
bool deployment_complete(const json::Value& deployment, const json::Value& status);
/// `status` with its verdict on progress and with failures of the sets.
json::Value judge_progress(const json::Value& deployment, const json::Value& before,
                           json::Value status, const std::vector<json::Value>& sets,
                           const json::Value& new_set, Time now);
/// When the deadline may have passed; none for a rollout that is over.
std::optional<Duration> progress_check_after(const json::Value& deployment,
                                             const json::Value& status, Time now);

}  // namespace dibs::controllers
