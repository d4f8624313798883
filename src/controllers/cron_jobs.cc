// Starts a Job for every run of a CronJob (cron_times.h says when), follows those that go on, and
// forgets the oldest of those that have ended.
//
// status.active is what is believed to go on: a Job that has ended, or is gone, leaves it; the
// write that adds a Job also moves lastScheduleTime. A run that was started before that write was
// lost is found again by its Job's name.

#include <algorithm>

#include "base/log.h"
#include "base/span.h"
#include "base/strings.h"
#include "controllers/cron_times.h"
#include "controllers/job_plan.h"
#include "controllers/workload.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

class CronJobController : public Workload {
 public:
  explicit CronJobController(Environment& environment)
      : Workload(environment, {kCronJobResource, "CronJob", "cronjob-controller"}),
        jobs_(watch_children(kJobResource, false)) {}

 protected:
  Result<WorkOutcome> sync(const std::string&, const Value& seen) override {
    Value cron_job = seen;
    std::vector<Value> jobs = jobs_.by_index(kByController, std::string(uid_of(cron_job)));
    std::sort(jobs.begin(), jobs.end(), oldest_first);
    follow_jobs(cron_job, jobs);
    DIBS_CHECK(drop_missing(cron_job, jobs));
    auto ran = is_deleting(cron_job) ? Result<WorkOutcome>(WorkOutcome::done()) : run(cron_job);
    for (const Value& job : surplus_jobs(cron_job, jobs)) remove_job(cron_job, job);
    auto written = write_status(seen, cron_job["status"]);
    if (!written.ok() && !is_gone(written.error())) return std::move(written).error();
    return ran;
  }

 private:
  static Value& status_of(Value& cron_job) {
    if (!cron_job["status"].is_object()) cron_job.set("status", Value::object());
    return cron_job.mut("status");
  }

  static bool is_active(const Value& cron_job, std::string_view uid) {
    for (const Value& entry : cron_job["status"]["active"].items()) {
      if (entry["uid"].as_string() == uid) return true;
    }
    return false;
  }

  static void deactivate(Value& cron_job, std::string_view uid) {
    Value left = Value::array();
    for (const Value& entry : cron_job["status"]["active"].items()) {
      if (entry["uid"].as_string() != uid) left.push(entry);
    }
    Value& status = status_of(cron_job);
    if (left.empty()) {
      status.erase("active");
    } else {
      status.set("active", std::move(left));
    }
  }

  void follow_jobs(Value& cron_job, const std::vector<Value>& jobs) {
    for (const Value& job : jobs) {
      const std::string_view verdict = job_verdict(job);
      const bool active = is_active(cron_job, uid_of(job));
      if (verdict.empty()) {
        if (!active) {
          event(cron_job, true, "UnexpectedJob",
                cat("Saw a job that the controller did not create or forgot: ", name_of(job)));
        }
        continue;
      }
      if (active) {
        deactivate(cron_job, uid_of(job));
        event(cron_job, false, "SawCompletedJob",
              cat("Saw completed job: ", name_of(job), ", condition: ", verdict));
      }
      const Value& ended = job["status"]["completionTime"];
      if (verdict != "Complete" || ended.is_null()) continue;
      const Value& last = cron_job["status"]["lastSuccessfulTime"];
      if (last.is_null() || time_at(last) < time_at(ended)) {
        status_of(cron_job).set("lastSuccessfulTime", ended);
      }
    }
  }

  Result<> drop_missing(Value& cron_job, const std::vector<Value>& jobs) {
    const Value active = cron_job["status"]["active"];
    for (const Value& entry : active.items()) {
      const std::string_view uid = entry["uid"].as_string();
      if (std::any_of(jobs.begin(), jobs.end(),
                      [&](const Value& job) { return uid_of(job) == uid; })) {
        continue;
      }
      // The cache of Jobs may be behind.
      const auto job =
          environment_.client.get(kJobResource, namespace_of(cron_job), entry["name"].as_string());
      if (job.ok() && uid_of(*job) == uid) continue;
      if (!job.ok() && job.error().code() != Code::not_found) return job.error();
      event(cron_job, false, "MissingJob",
            cat("Active job went missing: ", entry["name"].as_string()));
      deactivate(cron_job, uid);
    }
    return success();
  }

  /// Says when to look again.
  Result<WorkOutcome> run(Value& cron_job) {
    const Value& spec = cron_job["spec"];
    const auto zone = CronZone::of(cron_job, &cel::system_time_zones());
    if (!zone.ok()) {
      event(cron_job, true, "UnknownTimeZone",
            cat("invalid timeZone: ", quoted(spec["timeZone"].as_string()), ": ",
                zone.error().message()));
      return done();
    }
    if (spec["suspend"].as_bool()) return done();
    const auto schedule = api::parse_cron(spec["schedule"].as_string());
    if (!schedule.ok()) {
      event(cron_job, true, "UnparseableSchedule",
            cat("unparseable schedule: ", quoted(spec["schedule"].as_string()), " : ",
                schedule.error().message()));
      return done();
    }
    const CronDue due = due_run(cron_job, *schedule, *zone, now());
    if (due.too_many) {
      event(cron_job, true, "TooManyMissedTimes",
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check "
            "clock skew");
    }
    if (due.run) DIBS_CHECK(start_run(cron_job, *zone, *due.run));
    const auto next = until_next_run(cron_job, *schedule, *zone, now());
    return next ? WorkOutcome::again_after(*next) : WorkOutcome::done();
  }

  Result<> start_run(Value& cron_job, const CronZone& zone, Time run) {
    const Value spec = cron_job["spec"];
    const Value& deadline = spec["startingDeadlineSeconds"];
    if (!deadline.is_null() && run + seconds_of(deadline.as_int()) < now()) {
      event(cron_job, true, "MissSchedule",
            cat("Missed scheduled time to start a job: ", format_rfc1123(run)));
      return success();
    }
    const std::string name = job_name_of_run(cron_job, run);
    const Value active = cron_job["status"]["active"];
    for (const Value& entry : active.items()) {
      if (entry["name"].as_string() == name) return success();
    }
    const Value& last = cron_job["status"]["lastScheduleTime"];
    if (!last.is_null() && time_at(last) == run) return success();
    const std::string_view policy = spec["concurrencyPolicy"].as_string();
    if (policy == "Forbid" && !active.empty()) {
      event(cron_job, false, "JobAlreadyActive",
            "Not starting job because prior execution is running and concurrency policy is "
            "Forbid");
      return success();
    }
    if (policy == "Replace") DIBS_CHECK(remove_active(cron_job, active));
    return create(cron_job, zone, run);
  }

  Result<> remove_active(Value& cron_job, const Value& active) {
    for (const Value& entry : active.items()) {
      const auto job =
          environment_.client.get(kJobResource, namespace_of(cron_job), entry["name"].as_string());
      if (!job.ok()) {
        event(cron_job, true, "FailedGet", cat("Get job: ", job.error().message()));
        return job.error();
      }
      if (!remove_job(cron_job, *job)) {
        return Error::internal(cat("could not replace job ", name_of(*job)));
      }
    }
    return success();
  }

  Result<> create(Value& cron_job, const CronZone& zone, Time run) {
    const Value wanted = job_of_run(cron_job, zone, run);
    auto job = environment_.client.create(kJobResource, namespace_of(cron_job), wanted, writing());
    if (job.ok()) {
      event(cron_job, false, "SuccessfulCreate", cat("Created job ", name_of(*job)));
    } else if (job.error().code() == Code::already_exists) {
      job = environment_.client.get(kJobResource, namespace_of(cron_job), name_of(wanted));
      if (!job.ok()) return job.error();
      // Ours, from before a status that was not written; else it is somebody's own affair.
      if (!controlled_by(*job, cron_job) || !job_verdict(*job).empty()) return success();
    } else if (is_namespace_ending(job.error())) {
      return success();
    } else {
      event(cron_job, true, "FailedCreate", cat("Error creating job: ", job.error().message()));
      return job.error();
    }
    Value active = cron_job["status"]["active"];
    if (!active.is_array()) active = Value::array();
    active.push(Value::object({{"kind", "Job"},
                               {"namespace", std::string(namespace_of(*job))},
                               {"name", std::string(name_of(*job))},
                               {"uid", std::string(uid_of(*job))},
                               {"apiVersion", "batch/v1"},
                               {"resourceVersion", (*job)["metadata"]["resourceVersion"]}}));
    Value& status = status_of(cron_job);
    status.set("active", std::move(active));
    status.set("lastScheduleTime", format_rfc3339(run));
    return success();
  }

  /// False when it could not be, which an event tells.
  bool remove_job(Value& cron_job, const Value& job) {
    const auto removed =
        environment_.client.remove(kJobResource, namespace_of(job), name_of(job),
                                   {.propagation = "Background", .uid = std::string(uid_of(job))});
    if (!removed.ok() && !is_gone(removed.error())) {
      event(cron_job, true, "FailedDelete", cat("Deleted job: ", removed.error().message()));
      return false;
    }
    deactivate(cron_job, uid_of(job));
    event(cron_job, false, "SuccessfulDelete", cat("Deleted job ", name_of(job)));
    return true;
  }

  client::Informer& jobs_;
};

}  // namespace

ControllerPtr make_cron_job_controller(Environment& environment) {
  return std::make_unique<CronJobController>(environment);
}

}  // namespace dibs::controllers
