#pragma once
// The times of a CronJob: which run is due, when the next one is, and what the Job of a run looks
// like.
//
// Runs are counted from the last one that was started, or from the creation. Of several that were
// missed only the newest is made up for. Times of day are those of a zone; where its clocks are set
// back an hour comes twice, and so do its runs.
//
// Pure functions; the time and the zones come as arguments.

#include <optional>
#include <string>
#include <vector>

#include "api/kinds/workload/cron.h"
#include "base/time.h"
#include "cel/libraries/time_zones.h"
#include "json/value.h"

namespace dibs::controllers {

inline constexpr std::string_view kScheduledAnnotation =
    "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// The clock of spec.timeZone, UTC without one.
class CronZone {
 public:
  /// Errors (invalid): "unknown time zone x".
  static Result<CronZone> of(const json::Value& cron_job, const cel::TimeZones* zones);
  std::int64_t offset(Time at) const;

 private:
  std::string name_;  // "": UTC
  const cel::TimeZones* zones_ = nullptr;
};

/// The first due time after `after`; nothing for a date that never comes.
std::optional<Time> next_due(const api::CronSchedule& schedule, const CronZone& zone, Time after);

struct CronDue {
  std::optional<Time> run = {};  // due and not later than now
  bool too_many = false;         // more than a hundred were missed
};
/// The newest run that is due and was not started.
CronDue due_run(const json::Value& cron_job, const api::CronSchedule& schedule,
                const CronZone& zone, Time now);
/// How long until the run after that.
std::optional<Duration> until_next_run(const json::Value& cron_job,
                                       const api::CronSchedule& schedule, const CronZone& zone,
                                       Time now);

/// "<cron job>-<minutes since 1970>": a run has one Job, however often it is tried.
std::string job_name_of_run(const json::Value& cron_job, Time run);
json::Value job_of_run(const json::Value& cron_job, const CronZone& zone, Time run);

/// "Complete", "Failed", or "" for one that goes on.
std::string_view job_verdict(const json::Value& job);
/// Finished Jobs beyond the history limits, the oldest first.
std::vector<json::Value> surplus_jobs(const json::Value& cron_job,
                                      const std::vector<json::Value>& jobs);

/// "Mon, 02 Jan 2006 15:04:05 +0000"
std::string format_rfc1123(Time time);

}  // namespace dibs::controllers
