#pragma once
// The decisions of a Job: which pods to start and to stop, which finished ones to count, and when
// it is over.
//
// Every pod carries a finalizer until it is counted, so that none is lost. Counting takes two
// steps, each safe to repeat: first the uid of a finished pod is written into
// status.uncountedTerminatedPods, then the pod loses its finalizer; once that shows, the uid
// becomes part of a number.
//
// A function of the Job, its pods, the time, and the memory of past failures (JobBackoff).

#include <optional>
#include <string>
#include <vector>

#include "base/finalizers.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

inline constexpr std::string_view kIndexAnnotation = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailuresAnnotation =
    "batch.kubernetes.io/job-index-failure-count";

/// Failures since the last success. A new pod waits longer after each.
struct JobBackoff {
  int failures = 0;
  Time last = {};
  /// How long a new pod has to wait still.
  Duration wait(Time now) const;
};

struct JobInput {
  json::Value job = {};
  std::vector<json::Value> pods = {};  // all that it controls
  JobBackoff backoff = {};
  Time now = {};
};

struct JobEvent {
  bool warning = false;
  std::string reason = {};
  std::string message = {};
};

struct JobPlan {
  std::vector<json::Value> create = {};
  /// Removed with their finalizer: the end of the Job counts them as failed.
  std::vector<json::Value> remove = {};
  /// Not needed now, which is no failure: they lose the finalizer first and are never counted.
  std::vector<json::Value> dismiss = {};
  json::Value status = {};
  /// Pods that lose their finalizer, after the status is written.
  std::vector<json::Value> untrack = {};
  std::vector<JobEvent> events = {};  // after the status is written
  JobBackoff backoff = {};
  std::optional<Duration> again = {};
};

JobPlan plan_job(const JobInput& input);

/// Complete or Failed.
bool job_finished(const json::Value& job);
/// How long until a finished Job is to be removed; none when it stays.
std::optional<Duration> job_time_left(const json::Value& job, Time now);
bool has_job_finalizer(const json::Value& pod);
/// -1 when it has none.
std::int64_t completion_index(const json::Value& pod);
/// A pod of the Job; `index` -1 for one without. `failures`: of this index, -1 when not counted.
json::Value job_pod(const json::Value& job, std::int64_t index, std::int64_t failures);

/// What spec.podFailurePolicy says about a failed pod.
struct FailureVerdict {
  std::string action = {};  // "": no rule matches; Ignore, Count, FailIndex, FailJob
  std::string message = {};
};
FailureVerdict judge_failure(const json::Value& policy, const json::Value& pod);

}  // namespace dibs::controllers
