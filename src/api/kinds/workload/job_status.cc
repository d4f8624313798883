#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/workload/job.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::api {
namespace {

bool is_true(const Value& job, std::string_view type) {
  return condition_is_true(job["status"]["conditions"], type);
}

bool is_finished(const Value& job) { return is_true(job, "Complete") || is_true(job, "Failed"); }

/// What a write of the status touches. Rules hold only for what changes, so that a status written
/// under older rules can still be updated.
struct Changes {
  bool finished, complete, failed, failure_target, criteria_met;
  bool completed_indexes, failed_indexes, active, ready, terminating, uncounted;
  bool start_time, completion_time;

  Changes(const Value& job, const Value& old) {
    auto turned = [&](std::string_view type) { return is_true(job, type) != is_true(old, type); };
    auto differs = [&](std::string_view key) {
      return !(job["status"][key] == old["status"][key]);
    };
    finished = is_finished(job) != is_finished(old);
    complete = turned("Complete");
    failed = turned("Failed");
    failure_target = turned("FailureTarget");
    criteria_met = turned("SuccessCriteriaMet");
    completed_indexes = differs("completedIndexes");
    failed_indexes = differs("failedIndexes");
    active = differs("active");
    ready = differs("ready");
    terminating = differs("terminating");
    uncounted = differs("uncountedTerminatedPods");
    start_time = differs("startTime");
    completion_time = differs("completionTime");
  }
};

void check_uncounted(const Value& uncounted, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  for (std::string_view list : {"succeeded", "failed"}) {
    Path list_path = path.child(list);
    std::size_t i = 0;
    for (const Value& uid : uncounted[list].items()) {
      Path at = list_path.index(i++);
      if (uid.as_string().empty()) {
        errors.invalid(at, uid, "must not be empty");
      } else if (!seen.insert(uid.as_string()).second) {
        errors.duplicate(at, uid);
      }
    }
  }
}

bool is_before(const Value& time, const Value& other) {
  Result<Time> a = parse_rfc3339(time.as_string());
  Result<Time> b = parse_rfc3339(other.as_string());
  return a.ok() && b.ok() && *a < *b;
}

struct Range {
  std::int64_t first;
  std::int64_t last;
};

/// Intervals that can be read; the others have been told of already.
std::vector<Range> ranges_of(std::string_view text, std::int64_t completions) {
  std::vector<Range> ranges;
  for (std::string_view piece : split(text, ',')) {
    if (!parse_job_indexes(piece, completions).ok() || piece.empty()) continue;
    std::vector<std::string_view> ends = split(piece, '-');
    ranges.push_back({std::stoll(std::string(ends.front())), std::stoll(std::string(ends.back()))});
  }
  return ranges;
}

void check_overlap(const Value& status, std::int64_t completions, const Path& path,
                   FieldErrors& errors) {
  for (const Range& failed : ranges_of(status["failedIndexes"].as_string(), completions)) {
    for (const Range& done : ranges_of(status["completedIndexes"].as_string(), completions)) {
      if (done.first > failed.last || failed.first > done.last) continue;
      errors.invalid(path.child("failedIndexes"), status["failedIndexes"],
                     cat("failedIndexes and completedIndexes overlap at index: ",
                         std::max(done.first, failed.first)));
      return;
    }
  }
}

void check_indexes(const Value& job, const Changes& changes, const Path& path,
                   FieldErrors& errors) {
  const Value& spec = job["spec"];
  const Value& status = job["status"];
  const Value& completions = spec["completions"];
  const Value& completed = status["completedIndexes"];
  const Value& failed = status["failedIndexes"];
  if (changes.completed_indexes && !completions.is_null()) {
    Result<std::int64_t> parsed = parse_job_indexes(completed.as_string(), completions.as_int());
    if (!parsed.ok()) {
      errors.invalid(path.child("completedIndexes"), completed,
                     cat("error parsing completedIndexes: ", parsed.error().message()));
    }
  }
  if (changes.failed_indexes && !completions.is_null() && !failed.is_null() &&
      is_set(spec, "backoffLimitPerIndex")) {
    Result<std::int64_t> parsed = parse_job_indexes(failed.as_string(), completions.as_int());
    if (!parsed.ok()) {
      errors.invalid(path.child("failedIndexes"), failed,
                     cat("error parsing failedIndexes: ", parsed.error().message()));
    }
  }
  bool is_indexed = spec["completionMode"].as_string() == "Indexed";
  if (changes.completed_indexes && !completed.as_string().empty() && !is_indexed) {
    errors.invalid(path.child("completedIndexes"), completed,
                   "cannot set non-empty completedIndexes when non-indexed completion mode");
  }
  if (changes.failed_indexes && !is_set(spec, "backoffLimitPerIndex") && !failed.is_null()) {
    errors.invalid(path.child("failedIndexes"), failed,
                   "cannot set non-null failedIndexes when backoffLimitPerIndex is null");
  }
  if ((changes.failed_indexes || changes.completed_indexes) && !completions.is_null() &&
      !failed.is_null()) {
    check_overlap(status, completions.as_int(), path, errors);
  }
}

void check_conditions_and_times(const Value& job, const Changes& changes, const Path& path,
                                FieldErrors& errors) {
  const Value& status = job["status"];
  bool complete = is_true(job, "Complete");
  bool failed = is_true(job, "Failed");
  Path conditions = path.child("conditions");
  const Value& start = status["startTime"];
  const Value& completion = status["completionTime"];
  if ((changes.complete || changes.failed) && complete && failed) {
    invalid_without_value(conditions, "cannot set Complete=True and Failed=true conditions",
                          errors);
  }
  if ((changes.complete || changes.failure_target) && complete && is_true(job, "FailureTarget")) {
    invalid_without_value(conditions, "cannot set Complete=True and FailureTarget=true conditions",
                          errors);
  }
  if (changes.complete || changes.completion_time) {
    if (!completion.is_null() && !complete) {
      errors.invalid(path.child("completionTime"), completion,
                     "cannot set completionTime when there is no Complete=True condition");
    }
    if (completion.is_null() && complete) {
      errors.required(path.child("completionTime"), "completionTime is required for Complete jobs");
    }
  }
  if ((changes.start_time || changes.completion_time) && is_before(completion, start)) {
    errors.invalid(path.child("completionTime"), completion,
                   "must be equal to or after `startTime`");
  }
  if ((changes.failed || changes.failed_indexes) && failed && !is_true(job, "FailureTarget")) {
    invalid_without_value(
        conditions, "cannot set Failed=True condition without the FailureTarget=true condition",
        errors);
  }
  if ((changes.complete || changes.criteria_met) && complete &&
      !is_true(job, "SuccessCriteriaMet")) {
    invalid_without_value(
        conditions,
        "cannot set Complete=True condition without the SuccessCriteriaMet=true condition", errors);
  }
}

void check_finished(const Value& job, const Changes& changes, const Path& path,
                    FieldErrors& errors) {
  const Value& status = job["status"];
  const Value& spec = job["spec"];
  if (!is_finished(job)) return;
  if ((changes.finished || changes.active) && status["active"].as_int() > 0) {
    errors.invalid(path.child("active"), status["active"], "active>0 is invalid for finished job");
  }
  bool never_ran =
      spec["suspend"].as_bool() && is_set(spec, "completions") && spec["completions"].as_int() == 0;
  if ((changes.finished || changes.start_time) && !never_ran && !is_set(status, "startTime")) {
    errors.required(path.child("startTime"), "startTime is required for finished job");
  }
  const Value& uncounted = status["uncountedTerminatedPods"];
  if ((changes.finished || changes.uncounted) &&
      uncounted["failed"].size() + uncounted["succeeded"].size() > 0) {
    errors.invalid(path.child("uncountedTerminatedPods"), uncounted,
                   "must be empty for finished job");
  }
}

void check_transition(const Value& job, const Value& old, const Changes& changes, const Path& path,
                      FieldErrors& errors) {
  const Value& status = job["status"];
  const Value& before = old["status"];
  const Value& spec = job["spec"];
  Path conditions = path.child("conditions");
  for (std::string_view type : {"Failed", "Complete", "FailureTarget"}) {
    if (is_true(old, type) && !is_true(job, type)) {
      invalid_without_value(conditions,
                            cat("cannot disable the terminal ", type, "=True condition"), errors);
    }
  }
  auto falls = [&](std::string_view key) { return status[key].as_int() < before[key].as_int(); };
  auto number = [&](std::string_view key) {
    return Value(static_cast<long>(status[key].as_int()));
  };
  if (falls("failed")) {
    errors.invalid(path.child("failed"), number("failed"), "cannot decrease the failed counter");
  }
  bool is_elastic =
      spec["completionMode"].as_string() == "Indexed" && spec["completions"] == spec["parallelism"];
  if (!is_elastic && falls("succeeded")) {
    errors.invalid(path.child("succeeded"), number("succeeded"),
                   "cannot decrease the succeeded counter");
  }
  if (is_set(status, "completionTime") && is_set(before, "completionTime") &&
      changes.completion_time) {
    errors.invalid(path.child("completionTime"), status["completionTime"], "field is immutable");
  }
  bool resumes = is_true(old, "Suspended") && !is_true(job, "Suspended");
  if (changes.start_time && !resumes && is_set(before, "startTime") && !spec["suspend"].as_bool()) {
    errors.invalid(path.child("startTime"), status["startTime"],
                   "field is immutable for unsuspended job once set");
  }
  bool criteria_met = is_true(job, "SuccessCriteriaMet");
  if (is_true(old, "SuccessCriteriaMet") && !criteria_met) {
    invalid_without_value(conditions, "cannot disable the SuccessCriteriaMet=True condition",
                          errors);
  }
  if (is_true(old, "Complete") && !is_true(old, "SuccessCriteriaMet") && criteria_met) {
    invalid_without_value(
        conditions,
        "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions", errors);
  }
}

}  // namespace

void validate_job_status(const Value& job, const Value& old, FieldErrors& errors) {
  const Value& status = job["status"];
  Path path("status");
  Path conditions = path.child("conditions");
  Changes changes(job, old);
  for (std::string_view key : {"active", "succeeded", "failed", "ready", "terminating"}) {
    check_nonnegative(status, key, path, errors);
  }
  check_uncounted(status["uncountedTerminatedPods"], path.child("uncountedTerminatedPods"), errors);
  check_conditions_and_times(job, changes, path, errors);
  check_finished(job, changes, path, errors);
  check_indexes(job, changes, path, errors);
  if ((changes.finished || changes.terminating) && is_finished(job) &&
      status["terminating"].as_int() > 0) {
    errors.invalid(path.child("terminating"), status["terminating"],
                   "terminating>0 is invalid for finished job");
  }
  if ((changes.ready || changes.active) && status["ready"].as_int() > status["active"].as_int()) {
    errors.invalid(path.child("ready"), status["ready"], "cannot set more ready pods than active");
  }
  bool criteria_met = is_true(job, "SuccessCriteriaMet");
  if (criteria_met && is_true(job, "Failed")) {
    invalid_without_value(conditions,
                          "cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
  }
  if (criteria_met && is_true(job, "FailureTarget")) {
    invalid_without_value(
        conditions, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors);
  }
  if (is_set(job["spec"], "successPolicy") && !criteria_met && is_true(job, "Complete")) {
    invalid_without_value(
        conditions,
        "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True",
        errors);
  }
  check_transition(job, old, changes, path, errors);
}

}  // namespace dibs::api
