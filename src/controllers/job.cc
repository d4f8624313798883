// Carries out what job_plan.h decides, removes Jobs whose time after the end is up, and lets pods
// go whose Job is no more.

#include <algorithm>

#include "base/mutex.h"
#include "base/strings.h"
#include "controllers/job_plan.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

class JobController : public Workload {
 public:
  explicit JobController(Environment& environment)
      : Workload(environment, {kJobResource, "Job", "job-controller"}),
        pods_(watch_children(kPods)),
        orphans_(environment, "job-orphans",
                 [this](const std::string& key) { return let_go(key); }) {
    orphans_.follow(pods_, [this](const Value& pod) {
      if (has_job_finalizer(pod) && !job_of(pod)) orphans_.add(client::key_of(pod));
    });
    owners_.add_handler({.removed = [this](const Value& job) {
      {
        const MutexLock lock(mutex_);
        backoffs_.erase(client::key_of(job));
      }
      for (const Value& pod : pods_.by_index(kByController, std::string(uid_of(job))))
        if (has_job_finalizer(pod)) orphans_.add(client::key_of(pod));
    }});
  }

  void stop() override {
    Workload::stop();
    orphans_.stop();
  }

 protected:
  Result<WorkOutcome> sync(const std::string& key, const Value& job) override {
    const std::string_view manager = job["spec"]["managedBy"].as_string();
    if (!manager.empty() && manager != "kubernetes.io/job-controller") return done();
    if (const auto left = job_time_left(job, now())) {
      if (*left <= Duration(0) && !is_deleting(job)) return remove_job(job);
    }
    JobInput input;
    input.job = job;
    DIBS_TRY(input.pods, claim(job, pods_, kPods));
    // Judging by pods that are about to appear or go would start or stop some twice.
    if (!expectations_.satisfied(key, now())) return done();
    input.now = now();
    {
      const MutexLock lock(mutex_);
      input.backoff = backoffs_[key];
    }
    const JobPlan plan = plan_job(input);

    for (const Value& pod : plan.dismiss) {
      DIBS_CHECK(untrack(pod));
      DIBS_CHECK(remove_pod(key, job, pod));
    }
    for (const Value& pod : plan.remove) DIBS_CHECK(remove_pod(key, job, pod));
    if (!plan.create.empty()) {
      auto created = create_pods(key, job, plan.create);
      if (!created.ok()) return std::move(created).error();
    }
    auto written = write_status(job, plan.status);
    if (!written.ok()) {
      if (is_gone(written.error())) return done();
      return std::move(written).error();
    }
    {
      // Only now: a status that was not written would count the same failures again.
      const MutexLock lock(mutex_);
      backoffs_[key] = plan.backoff;
    }
    for (const JobEvent& told : plan.events) event(job, told.warning, told.reason, told.message);
    for (const Value& pod : plan.untrack) DIBS_CHECK(untrack(pod));
    if (plan.again) return WorkOutcome::again_after(*plan.again);
    if (const auto left = job_time_left(*written, now()))
      return WorkOutcome::again_after(std::max(*left, Duration(0)));
    return done();
  }

 private:
  std::optional<Value> job_of(const Value& pod) const {
    const Value& owner = controller_of(pod);
    if (owner["kind"].as_string() != "Job") return {};
    auto job = owners_.get(client::key_of(namespace_of(pod), owner["name"].as_string()));
    if (!job || uid_of(*job) != owner["uid"].as_string()) return {};
    return job;
  }

  Result<WorkOutcome> remove_job(const Value& job) {
    auto removed = environment_.as("ttl-after-finished-controller")
                       .remove(kJobResource, namespace_of(job), name_of(job),
                               {.propagation = "Foreground", .uid = std::string(uid_of(job))});
    if (!removed.ok() && !is_gone(removed.error())) return std::move(removed).error();
    return done();
  }

  Result<> untrack(const Value& pod) {
    const Value patch =
        Value::object({{"metadata", Value::object({{"uid", pod["metadata"]["uid"]},
                                                   {"$deleteFromPrimitiveList/finalizers",
                                                    Value::array({Value(kJobFinalizer)})}})}});
    auto patched = environment_.client.patch(kPods, namespace_of(pod), name_of(pod),
                                             client::PatchType::strategic, patch, writing());
    if (patched.ok() || is_gone(patched.error())) return success();
    // Another pod has the name by now.
    if (patched.error().code() == Code::conflict) return success();
    return std::move(patched).error();
  }

  Result<WorkOutcome> let_go(const std::string& key) {
    const auto pod = pods_.get(key);
    if (!pod || !has_job_finalizer(*pod) || job_of(*pod)) return done();
    const Value& owner = controller_of(*pod);
    if (owner["kind"].as_string() == "Job") {
      // The cache of Jobs may be behind that of pods.
      const auto job =
          environment_.client.get(kJobResource, namespace_of(*pod), owner["name"].as_string());
      if (job.ok() && uid_of(*job) == owner["uid"].as_string()) return done();
      if (!job.ok() && !is_gone(job.error())) return job.error();
    }
    DIBS_CHECK(untrack(*pod));
    return done();
  }

  client::Informer& pods_;
  Reconciler orphans_;
  Mutex mutex_;
  std::map<std::string, JobBackoff> backoffs_ DIBS_GUARDED_BY(mutex_);  // by key
};

}  // namespace

ControllerPtr make_job_controller(Environment& environment) {
  return std::make_unique<JobController>(environment);
}

}  // namespace dibs::controllers
