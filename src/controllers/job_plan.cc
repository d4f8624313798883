#include "controllers/job_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/span.h"
#include "base/strings.h"
#include "controllers/job_indexes.h"
#include "controllers/replica_set.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

// What one step counts at most: the list stands in the status until the next step.
constexpr std::size_t kMaxUncounted = 500;
constexpr std::int64_t kMaxCreate = 500;

struct Verdict {
  std::string reason = {};  // "": not over
  std::string message = {};
};

class Planner {
 public:
  explicit Planner(const JobInput& input)
      : input_(input),
        job_(input.job),
        spec_(job_["spec"]),
        indexed_(spec_["completionMode"].as_string() == "Indexed"),
        completions_(spec_["completions"].as_int(-1)),
        status_(job_["status"].is_object() ? job_["status"] : Value::object()) {
    plan_.backoff = input.backoff;
    const std::int64_t indexes = indexed_ ? completions_ : 0;
    succeeded_indexes_ = IndexSet::parse(status_["completedIndexes"].as_string(), indexes);
    failed_indexes_ = IndexSet::parse(status_["failedIndexes"].as_string(), indexes);
  }

  JobPlan run() {
    if (job_finished(job_) || is_deleting(job_)) {
      for (const Value& pod : input_.pods)
        if (has_job_finalizer(pod)) plan_.untrack.push_back(pod);
      plan_.status = job_["status"];
      return std::move(plan_);
    }
    begin();
    settle();
    count_finished();
    sort_pods();
    const bool over = judge();
    if (!over) {
      if (spec_["suspend"].as_bool())
        suspend();
      else
        go_on();
    }
    write_numbers();
    if (over) finish();
    plan_.status = std::move(status_);
    return std::move(plan_);
  }

 private:
  std::string text_of_now() const { return format_rfc3339(input_.now); }

  bool replaces_only_failed() const {
    return spec_["podReplacementPolicy"].as_string() == "Failed" ||
           spec_["podFailurePolicy"].is_object();
  }

  /// A pod that will not succeed any more. One that is being deleted counts at once, unless the Job
  /// wants to see the end of it.
  bool pod_failed(const Value& pod) const {
    const std::string_view phase = pod["status"]["phase"].as_string();
    if (phase == "Failed") return true;
    return !replaces_only_failed() && is_deleting(pod) && phase != "Succeeded";
  }

  void begin() {
    if (status_["startTime"].is_null() && !spec_["suspend"].as_bool())
      status_.set("startTime", text_of_now());
  }

  /// Uncounted pods whose finalizer is gone become part of the numbers.
  void settle() {
    std::set<std::string, std::less<>> tracked;
    for (const Value& pod : input_.pods)
      if (has_job_finalizer(pod)) tracked.emplace(uid_of(pod));
    const Value uncounted = status_["uncountedTerminatedPods"];
    for (const char* kind : {"succeeded", "failed"}) {
      for (const Value& uid : uncounted[kind].items()) {
        const bool still = tracked.count(uid.as_string()) > 0;
        if (still) {
          uncounted_.emplace(uid.as_string());
          (kind[0] == 's' ? uncounted_succeeded_ : uncounted_failed_).push(uid);
        } else if (kind[0] == 'f' || !indexed_) {
          status_.set(kind, status_[kind].as_int() + 1);
        }
      }
    }
    for (const Value& pod : input_.pods)
      if (has_job_finalizer(pod) && uncounted_.count(uid_of(pod)) > 0) plan_.untrack.push_back(pod);
  }

  void count_finished() {
    const Value& policy = spec_["podFailurePolicy"];
    for (const Value& pod : input_.pods) {
      if (!has_job_finalizer(pod) || uncounted_.count(uid_of(pod)) > 0) continue;
      if (uncounted_.size() >= kMaxUncounted) break;
      const std::string_view phase = pod["status"]["phase"].as_string();
      if (phase == "Succeeded") {
        if (indexed_)
          succeeded_indexes_.add(completion_index(pod));
        else
          uncounted_succeeded_.push(pod["metadata"]["uid"]);
        plan_.backoff = {};
      } else if (pod_failed(pod)) {
        const FailureVerdict verdict = judge_failure(policy, pod);
        if (verdict.action == "FailJob" && policy_verdict_.empty())
          policy_verdict_ = verdict.message;
        if (verdict.action == "Ignore") {
          plan_.untrack.push_back(pod);
          uncounted_.emplace(uid_of(pod));
          continue;
        }
        new_failure_ = true;
        if (indexed_ && per_index() &&
            (verdict.action == "FailIndex" || index_failures(pod) >= per_index_limit()))
          failed_indexes_.add(completion_index(pod));
        uncounted_failed_.push(pod["metadata"]["uid"]);
        plan_.backoff.failures += 1;
        plan_.backoff.last = input_.now;
      } else {
        continue;
      }
      uncounted_.emplace(uid_of(pod));
      plan_.untrack.push_back(pod);
    }
  }

  void sort_pods() {
    for (const Value& pod : input_.pods) {
      if (pod_active(pod)) active_.push_back(pod);
      if (pod_terminating(pod)) ++terminating_;
    }
  }

  std::int64_t succeeded() const {
    if (indexed_) return succeeded_indexes_.count();
    return status_["succeeded"].as_int() + static_cast<std::int64_t>(uncounted_succeeded_.size());
  }
  std::int64_t failed() const {
    return status_["failed"].as_int() + static_cast<std::int64_t>(uncounted_failed_.size());
  }

  bool per_index() const { return spec_["backoffLimitPerIndex"].is_integer(); }
  std::int64_t per_index_limit() const { return spec_["backoffLimitPerIndex"].as_int(); }
  static std::int64_t index_failures(const Value& pod) {
    const std::string_view text = annotation_of(pod, kIndexFailuresAnnotation);
    std::int64_t count = 0;
    std::from_chars(text.data(), text.data() + text.size(), count);
    return count;
  }

  /// Restarts of containers count against the limit when the pod stays and is not replaced.
  bool too_many_restarts() const {
    if (spec_["template"]["spec"]["restartPolicy"].as_string() != "OnFailure") return false;
    std::int64_t restarts = 0;
    for (const Value& pod : active_) {
      const std::string_view phase = pod["status"]["phase"].as_string();
      if (phase != "Running" && phase != "Pending") continue;
      for (const char* list : {"initContainerStatuses", "containerStatuses"})
        for (const Value& container : pod["status"][list].items())
          restarts += container["restartCount"].as_int();
    }
    const std::int64_t limit = spec_["backoffLimit"].as_int(6);
    return limit == 0 ? restarts > 0 : restarts >= limit;
  }

  Verdict failure() {
    if (!policy_verdict_.empty()) return {"PodFailurePolicy", policy_verdict_};
    const Value& limit = spec_["backoffLimit"];
    if ((limit.is_integer() && new_failure_ && failed() > limit.as_int()) ||
        (!per_index() && too_many_restarts()))
      return {"BackoffLimitExceeded", "Job has reached the specified backoff limit"};
    const Value& deadline = spec_["activeDeadlineSeconds"];
    if (deadline.is_integer() && !spec_["suspend"].as_bool() && status_["startTime"].is_string()) {
      const Duration left =
          time_at(status_["startTime"]) + seconds_of(deadline.as_int()) - input_.now;
      if (left <= Duration(0))
        return {"DeadlineExceeded", "Job was active longer than specified deadline"};
      look_again(left);
    }
    if (indexed_ && per_index()) {
      const Value& most = spec_["maxFailedIndexes"];
      if (most.is_integer() && failed_indexes_.count() > most.as_int())
        return {"MaxFailedIndexesExceeded",
                "Job has exceeded the specified maximal number of failed indexes"};
      if (failed_indexes_.count() > 0 && completions_ >= 0 &&
          failed_indexes_.count() + succeeded_indexes_.count() >= completions_)
        return {"FailedIndexes", "Job has failed indexes"};
    }
    return {};
  }

  Verdict success() const {
    if (indexed_ && spec_["successPolicy"].is_object()) {
      std::size_t at = 0;
      for (const Value& rule : spec_["successPolicy"]["rules"].items()) {
        if (rule_met(rule)) return {"SuccessPolicy", cat("Matched rules at index ", at)};
        ++at;
      }
    }
    const bool reached =
        completions_ < 0 ? succeeded() > 0 && active_.empty() : succeeded() >= completions_;
    if (reached) return {"CompletionsReached", "Reached expected number of succeeded pods"};
    return {};
  }

  bool rule_met(const Value& rule) const {
    std::int64_t met = succeeded_indexes_.count();
    std::int64_t wanted = completions_;
    if (rule["succeededIndexes"].is_string()) {
      const IndexSet named = IndexSet::parse(rule["succeededIndexes"].as_string(), completions_);
      met = 0;
      wanted = named.count();
      for (std::int64_t i = 0; i < completions_; ++i)
        if (named.contains(i) && succeeded_indexes_.contains(i)) ++met;
    }
    return met >= rule["succeededCount"].as_int(wanted);
  }

  void add_condition(std::string_view type, std::string_view value, const Verdict& why) {
    Value conditions = without_condition(status_["conditions"], type);
    conditions.push(Value::object({{"type", type},
                                   {"status", value},
                                   {"lastProbeTime", text_of_now()},
                                   {"lastTransitionTime", text_of_now()},
                                   {"reason", why.reason},
                                   {"message", why.message}}));
    status_.set("conditions", std::move(conditions));
  }

  /// The verdict stands once it is written, whatever pods do afterwards.
  bool judge() {
    const Value& conditions = status_["conditions"];
    for (const char* type : {"FailureTarget", "SuccessCriteriaMet"}) {
      const Value& target = condition_in(conditions, type);
      if (target["status"].as_string() != "True") continue;
      failing_ = type[0] == 'F';
      verdict_ = {target["reason"].str(), target["message"].str()};
    }
    if (verdict_.reason.empty()) {
      verdict_ = failure();
      failing_ = !verdict_.reason.empty();
      if (!failing_) verdict_ = success();
      if (verdict_.reason.empty()) return false;
      add_condition(failing_ ? "FailureTarget" : "SuccessCriteriaMet", "True", verdict_);
    }
    for (const Value& pod : active_) plan_.remove.push_back(pod);
    plan_.again.reset();
    terminating_ += static_cast<std::int64_t>(active_.size());
    active_.clear();
    return true;
  }

  void suspend() {
    for (const Value& pod : active_) plan_.dismiss.push_back(pod);
    terminating_ += static_cast<std::int64_t>(active_.size());
    active_.clear();
    const Value& condition = condition_in(status_["conditions"], "Suspended");
    if (condition["status"].as_string() == "True") return;
    add_condition("Suspended", "True", {"JobSuspended", "Job suspended"});
    status_.erase("startTime");
    plan_.events.push_back({false, "Suspended", "Job suspended"});
  }

  void go_on() {
    const Value& condition = condition_in(status_["conditions"], "Suspended");
    if (condition["status"].as_string() == "True") {
      add_condition("Suspended", "False", {"JobResumed", "Job resumed"});
      status_.set("startTime", text_of_now());
      plan_.events.push_back({false, "Resumed", "Job resumed"});
    }
    std::int64_t want = spec_["parallelism"].as_int(1);
    const std::int64_t active = static_cast<std::int64_t>(active_.size());
    if (completions_ < 0) {
      // Nobody says how many are needed: after the first success no new ones.
      if (succeeded() > 0) want = std::min(want, active);
    } else {
      const std::int64_t open = completions_ - succeeded() - failed_indexes_.count();
      want = std::clamp<std::int64_t>(open, 0, want);
    }
    if (active > want) {
      std::vector<Value> order = removal_order(active_, active_, input_.now);
      order.resize(static_cast<std::size_t>(active - want));
      for (Value& pod : order) drop(pod);
      return;
    }
    const std::int64_t held = replaces_only_failed() ? terminating_ : 0;
    const std::int64_t missing = std::min(want - active - held, kMaxCreate);
    if (missing <= 0) return;
    if (const Duration wait = plan_.backoff.wait(input_.now); wait > Duration(0)) {
      look_again(wait);
      return;
    }
    create(missing);
  }

  void drop(const Value& pod) {
    plan_.dismiss.push_back(pod);
    ++terminating_;
    active_.erase(std::find_if(active_.begin(), active_.end(),
                               [&](const Value& other) { return uid_of(other) == uid_of(pod); }));
  }

  void create(std::int64_t count) {
    if (!indexed_) {
      for (std::int64_t i = 0; i < count; ++i) plan_.create.push_back(job_pod(job_, -1, -1));
    } else {
      std::set<std::int64_t> taken;
      std::map<std::int64_t, std::int64_t> failures;
      for (const Value& pod : input_.pods) {
        const std::int64_t index = completion_index(pod);
        if (pod_active(pod) || (replaces_only_failed() && pod_terminating(pod)))
          taken.insert(index);
        if (pod_failed(pod)) {
          const bool ignored = judge_failure(spec_["podFailurePolicy"], pod).action == "Ignore";
          const std::int64_t so_far = index_failures(pod) + (ignored ? 0 : 1);
          failures[index] = std::max(failures[index], so_far);
        }
      }
      for (std::int64_t i = 0; i < completions_ && count > 0; ++i) {
        if (taken.count(i) > 0 || succeeded_indexes_.contains(i) || failed_indexes_.contains(i))
          continue;
        plan_.create.push_back(job_pod(job_, i, per_index() ? failures[i] : -1));
        --count;
      }
    }
    created_ = static_cast<std::int64_t>(plan_.create.size());
  }

  void write_numbers() {
    std::int64_t ready = 0;
    for (const Value& pod : active_)
      if (pod_ready(pod)) ++ready;
    set_or_erase("active", static_cast<std::int64_t>(active_.size()) + created_);
    status_.set("ready", ready);
    status_.set("terminating", terminating_);
    if (indexed_) {
      set_or_erase("succeeded", succeeded_indexes_.count());
      const std::string text = succeeded_indexes_.str();
      if (!text.empty()) status_.set("completedIndexes", text);
      if (per_index()) status_.set("failedIndexes", failed_indexes_.str());
    }
    Value uncounted = Value::object();
    if (!uncounted_succeeded_.empty()) uncounted.set("succeeded", uncounted_succeeded_);
    if (!uncounted_failed_.empty()) uncounted.set("failed", uncounted_failed_);
    status_.set("uncountedTerminatedPods", std::move(uncounted));
  }

  void set_or_erase(const char* field, std::int64_t count) {
    if (count != 0)
      status_.set(field, count);
    else
      status_.erase(field);
  }

  /// The last word comes when every pod has ended and is counted.
  void finish() {
    if (!uncounted_succeeded_.empty() || !uncounted_failed_.empty() || terminating_ > 0) return;
    for (const Value& pod : input_.pods)
      if (has_job_finalizer(pod) && !is_pod_terminal(pod)) return;
    if (failing_) {
      add_condition("Failed", "True", verdict_);
      plan_.events.push_back({true, verdict_.reason, verdict_.message});
    } else {
      add_condition("Complete", "True", verdict_);
      status_.set("completionTime", text_of_now());
      plan_.events.push_back({false, "Completed", "Job completed"});
    }
  }

  void look_again(Duration after) {
    if (!plan_.again || after < *plan_.again) plan_.again = after;
  }

  const JobInput& input_;
  const Value& job_;
  const Value& spec_;
  const bool indexed_;
  const std::int64_t completions_;  // -1: not said
  Value status_;
  JobPlan plan_;
  IndexSet succeeded_indexes_;
  IndexSet failed_indexes_;
  Value uncounted_succeeded_ = Value::array();
  Value uncounted_failed_ = Value::array();
  std::set<std::string, std::less<>> uncounted_;  // uids of both
  std::vector<Value> active_;
  std::int64_t terminating_ = 0;
  std::int64_t created_ = 0;
  bool new_failure_ = false;
  std::string policy_verdict_;
  Verdict verdict_;
  bool failing_ = false;
};

}  // namespace

JobPlan plan_job(const JobInput& input) { return Planner(input).run(); }

}  // namespace dibs::controllers
