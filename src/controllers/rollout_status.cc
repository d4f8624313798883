#include "controllers/rollout_status.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "controllers/rollout.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

std::int64_t sum_of(const std::vector<Value>& sets, std::string_view field) {
  std::int64_t sum = 0;
  for (const Value& set : sets) sum += set["status"][field].as_int();
  return sum;
}

void put(Value& status, std::string_view field, std::int64_t count) {
  if (count != 0)
    status.set(field, count);
  else
    status.erase(field);
}

bool progressing(const Value& before, const Value& after) {
  const auto old_of = [](const Value& status) {
    return status["replicas"].as_int() - status["updatedReplicas"].as_int();
  };
  return after["updatedReplicas"].as_int() > before["updatedReplicas"].as_int() ||
         old_of(after) < old_of(before) ||
         after["readyReplicas"].as_int() > before["readyReplicas"].as_int() ||
         after["availableReplicas"].as_int() > before["availableReplicas"].as_int();
}

bool timed_out(const Value& deployment, const Value& before, const Value& status, Time now) {
  const Value& condition = condition_in(status["conditions"], "Progressing");
  if (condition.is_null()) return false;
  const std::string_view reason = condition["reason"].as_string();
  if (reason == "NewReplicaSetAvailable") return false;
  if (reason == "ProgressDeadlineExceeded") return true;
  if (deployment_complete(deployment, status) || progressing(before, status)) return false;
  const auto deadline =
      std::chrono::seconds(deployment["spec"]["progressDeadlineSeconds"].as_int());
  return time_at(condition["lastUpdateTime"]) + deadline < now;
}

}  // namespace

DeploymentSpec deployment_spec(const Value& deployment) {
  const Value& spec = deployment["spec"];
  DeploymentSpec wanted;
  wanted.replicas = spec["replicas"].as_int(1);
  wanted.min_ready = spec["minReadySeconds"].as_int();
  wanted.rolling = spec["strategy"]["type"].as_string() != "Recreate";
  if (!wanted.rolling) return wanted;
  const Value& rolling = spec["strategy"]["rollingUpdate"];
  wanted.max_surge = scaled_value(rolling["maxSurge"], wanted.replicas, true);
  wanted.max_unavailable = scaled_value(rolling["maxUnavailable"], wanted.replicas, false);
  // Shares may both round to nothing; then nothing would ever move.
  if (wanted.max_surge == 0 && wanted.max_unavailable == 0) wanted.max_unavailable = 1;
  wanted.max_unavailable = std::min(wanted.max_unavailable, wanted.replicas);
  return wanted;
}

std::int64_t replicas_of(const Value& set) { return set["spec"]["replicas"].as_int(); }

std::int64_t available_of(const Value& set) { return set["status"]["availableReplicas"].as_int(); }

bool has_progress_deadline(const Value& deployment) {
  const Value& deadline = deployment["spec"]["progressDeadlineSeconds"];
  return deadline.is_integer() && deadline.as_int() != std::numeric_limits<std::int32_t>::max();
}

void set_condition(Value& status, std::string_view type, std::string_view value,
                   std::string_view reason, const std::string& message, Time now) {
  const Value& current = condition_in(status["conditions"], type);
  if (current["status"].as_string() == value && current["reason"].as_string() == reason) return;
  const std::string time = format_rfc3339(now);
  Value condition = Value::object({{"type", type},
                                   {"status", value},
                                   {"lastUpdateTime", time},
                                   {"lastTransitionTime", time},
                                   {"reason", reason},
                                   {"message", message}});
  if (current["status"].as_string() == value)
    condition.set("lastTransitionTime", current["lastTransitionTime"]);
  Value conditions = without_condition(status["conditions"], type);
  conditions.push(std::move(condition));
  status.set("conditions", std::move(conditions));
}

Value calculate_status(const Value& deployment, const Value& before, const std::vector<Value>& sets,
                       const Value& new_set, Time now) {
  const DeploymentSpec wanted = deployment_spec(deployment);
  const std::int64_t available = sum_of(sets, "availableReplicas");
  std::int64_t total = 0;
  for (const Value& set : sets) total += replicas_of(set);

  Value status = Value::object();
  put(status, "observedGeneration", deployment["metadata"]["generation"].as_int());
  put(status, "replicas", sum_of(sets, "replicas"));
  put(status, "updatedReplicas", new_set["status"]["replicas"].as_int());
  put(status, "readyReplicas", sum_of(sets, "readyReplicas"));
  put(status, "availableReplicas", available);
  put(status, "unavailableReplicas", std::max<std::int64_t>(0, total - available));
  status.set("terminatingReplicas", sum_of(sets, "terminatingReplicas"));
  if (before["collisionCount"].is_integer()) status.set("collisionCount", before["collisionCount"]);
  if (!before["conditions"].empty()) status.set("conditions", before["conditions"]);
  if (available >= wanted.replicas - wanted.max_unavailable)
    set_condition(status, "Available", "True", "MinimumReplicasAvailable",
                  "Deployment has minimum availability.", now);
  else
    set_condition(status, "Available", "False", "MinimumReplicasUnavailable",
                  "Deployment does not have minimum availability.", now);
  return status;
}

bool deployment_complete(const Value& deployment, const Value& status) {
  const std::int64_t replicas = deployment["spec"]["replicas"].as_int(1);
  return status["updatedReplicas"].as_int() == replicas &&
         status["replicas"].as_int() == replicas &&
         status["availableReplicas"].as_int() == replicas &&
         status["observedGeneration"].as_int() >= deployment["metadata"]["generation"].as_int();
}

Value judge_progress(const Value& deployment, const Value& before, Value status,
                     const std::vector<Value>& sets, const Value& new_set, Time now) {
  const Value current = condition_in(before["conditions"], "Progressing");
  if (!has_progress_deadline(deployment))
    status.set("conditions", without_condition(status["conditions"], "Progressing"));
  const bool over = status["replicas"].as_int() == status["updatedReplicas"].as_int() &&
                    current["reason"].as_string() == "NewReplicaSetAvailable";
  if (has_progress_deadline(deployment) && !over) {
    const std::string subject = new_set.is_null() ? cat("Deployment ", quoted(name_of(deployment)))
                                                  : cat("ReplicaSet ", quoted(name_of(new_set)));
    if (deployment_complete(deployment, status)) {
      set_condition(status, "Progressing", "True", "NewReplicaSetAvailable",
                    cat(subject, " has successfully progressed."), now);
    } else if (progressing(before, status)) {
      // Written anew even when it says the same: its time is what the deadline counts from.
      status.set("conditions", without_condition(status["conditions"], "Progressing"));
      set_condition(status, "Progressing", "True", "ReplicaSetUpdated",
                    cat(subject, " is progressing."), now);
      if (current["status"].as_string() == "True") {
        Value& conditions = status.mut("conditions");
        conditions.mut(conditions.size() - 1)
            .set("lastTransitionTime", current["lastTransitionTime"]);
      }
    } else if (timed_out(deployment, before, status, now)) {
      set_condition(status, "Progressing", "False", "ProgressDeadlineExceeded",
                    cat(subject, " has timed out progressing."), now);
    }
  }

  // Failures of the new set count before those of older ones.
  Value failure = condition_in(new_set["status"]["conditions"], "ReplicaFailure");
  for (const Value& set : sets)
    if (failure.is_null()) failure = condition_in(set["status"]["conditions"], "ReplicaFailure");
  if (failure.is_null()) {
    const Value kept = without_condition(status["conditions"], "ReplicaFailure");
    status.set("conditions", kept);
  } else {
    set_condition(status, "ReplicaFailure", failure["status"].as_string(),
                  failure["reason"].as_string(), failure["message"].str(),
                  time_at(failure["lastTransitionTime"]));
  }
  return status;
}

std::optional<Duration> progress_check_after(const Value& deployment, const Value& status,
                                             Time now) {
  if (!has_progress_deadline(deployment)) return {};
  const Value& condition = condition_in(status["conditions"], "Progressing");
  const std::string_view reason = condition["reason"].as_string();
  if (condition.is_null() || reason == "ProgressDeadlineExceeded" ||
      reason == "NewReplicaSetAvailable" || deployment["spec"]["paused"].as_bool() ||
      deployment_complete(deployment, status))
    return {};
  const auto deadline =
      std::chrono::seconds(deployment["spec"]["progressDeadlineSeconds"].as_int());
  const Duration left = time_at(condition["lastUpdateTime"]) + deadline - now;
  // One second more: times in objects are cut to whole seconds.
  return std::max<Duration>(left, Duration(0)) + std::chrono::seconds(1);
}

Value with_create_failure(const Value& status, const std::string& set_name,
                          const std::string& error, Time now) {
  Value failed = status;
  set_condition(failed, "Progressing", "False", "ReplicaSetCreateError",
                cat("Failed to create new replica set ", quoted(set_name), ": ", error), now);
  return failed;
}

}  // namespace dibs::controllers
