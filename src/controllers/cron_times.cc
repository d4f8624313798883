#include "controllers/cron_times.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <tuple>

#include "base/span.h"
#include "base/strings.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::int64_t kManyMissed = 100;
/// So that the clock has passed the minute when the key comes back.
constexpr Duration kPastDue = std::chrono::milliseconds(100);

Time earliest_run(const Value& cron_job, Time now, bool with_deadline) {
  const Value& last = cron_job["status"]["lastScheduleTime"];
  Time earliest = last.is_null() ? created_at(cron_job) : time_at(last);
  const Value& deadline = cron_job["spec"]["startingDeadlineSeconds"];
  if (with_deadline && !deadline.is_null()) {
    earliest = std::max(earliest, now - seconds_of(deadline.as_int()));
  }
  return earliest;
}

CronDue newest_due(const Value& cron_job, const api::CronSchedule& schedule, const CronZone& zone,
                   Time now, bool with_deadline) {
  const auto first = next_due(schedule, zone, earliest_run(cron_job, now, with_deadline));
  if (!first || now < *first) return {};
  const auto second = next_due(schedule, zone, *first);
  if (!second || now < *second) return {first, false};
  // Runs are not counted one by one: a CronJob that slept for a year may have missed half a
  // million. The distance of two may vary, so the last stretch is walked.
  const std::int64_t between =
      std::max<std::int64_t>((*second - *first).count() / 1'000'000'000, 1);
  const std::int64_t missed = (now.seconds() - first->seconds()) / between + 1;
  Time run = *first;
  const Time start = *first + std::chrono::seconds(std::max<std::int64_t>(missed - 2, 0) * between);
  for (auto at = next_due(schedule, zone, start - std::chrono::seconds(1)); at && *at <= now;
       at = next_due(schedule, zone, *at)) {
    run = *at;
  }
  return {run, missed > kManyMissed};
}

/// With the offset of the zone, as people there write it.
std::string format_local(Time time, std::int64_t offset) {
  std::string text = format_rfc3339(time + std::chrono::seconds(offset));
  if (offset == 0) return text;
  text.pop_back();
  const std::int64_t minutes = (offset < 0 ? -offset : offset) / 60;
  std::array<char, 32> sign{};
  std::snprintf(sign.data(), sign.size(), "%c%02d:%02d", offset < 0 ? '-' : '+',
                static_cast<int>(minutes / 60), static_cast<int>(minutes % 60));
  return text + sign.data();
}

}  // namespace

Result<CronZone> CronZone::of(const Value& cron_job, const cel::TimeZones* zones) {
  CronZone zone;
  const std::string name = cron_job["spec"]["timeZone"].str();
  if (name.empty() || name == "UTC" || name == "Etc/UTC") return zone;
  std::int64_t offset = 0;
  if (zones == nullptr || !zones->offset(name, 0, offset)) {
    return Error::invalid(cat("unknown time zone ", name));
  }
  zone.name_ = name;
  zone.zones_ = zones;
  return zone;
}

std::int64_t CronZone::offset(Time at) const {
  std::int64_t offset = 0;
  if (zones_ != nullptr) zones_->offset(name_, at.seconds(), offset);
  return offset;
}

std::optional<Time> next_due(const api::CronSchedule& schedule, const CronZone& zone, Time after) {
  // Each turn gets past one change of the clocks; no date is that far away.
  for (int changes = 0; changes < 16; ++changes) {
    const std::int64_t offset = zone.offset(after);
    const auto due = api::next_run(schedule, after, offset);
    if (!due || schedule.every || zone.offset(*due) == offset) return due;
    // The first second with another offset.
    std::int64_t before = after.seconds();
    std::int64_t behind = due->seconds();
    while (behind - before > 1) {
      const std::int64_t middle = before + (behind - before) / 2;
      (zone.offset(Time::from_seconds(middle)) == offset ? before : behind) = middle;
    }
    const Time changed = Time::from_seconds(behind);
    const auto then =
        api::next_run(schedule, changed - std::chrono::seconds(1), zone.offset(changed));
    if (!then || zone.offset(*then) == zone.offset(changed)) return then;
    after = changed;
  }
  return std::nullopt;
}

CronDue due_run(const Value& cron_job, const api::CronSchedule& schedule, const CronZone& zone,
                Time now) {
  return newest_due(cron_job, schedule, zone, now, true);
}

std::optional<Duration> until_next_run(const Value& cron_job, const api::CronSchedule& schedule,
                                       const CronZone& zone, Time now) {
  const CronDue due = newest_due(cron_job, schedule, zone, now, false);
  const auto next =
      next_due(schedule, zone, due.run ? *due.run : earliest_run(cron_job, now, false));
  if (!next) return std::nullopt;
  return *next - now + kPastDue;
}

std::string job_name_of_run(const Value& cron_job, Time run) {
  return cat(name_of(cron_job), "-", run.seconds() / 60);
}

Value job_of_run(const Value& cron_job, const CronZone& zone, Time run) {
  const Value& wanted = cron_job["spec"]["jobTemplate"];
  Value metadata = Value::object({{"name", job_name_of_run(cron_job, run)},
                                  {"namespace", std::string(namespace_of(cron_job))}});
  const Value& labels = wanted["metadata"]["labels"];
  if (labels.is_object()) metadata.set("labels", labels);
  Value annotations = wanted["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Value::object();
  annotations.set(kScheduledAnnotation, format_local(run, zone.offset(run)));
  metadata.set("annotations", std::move(annotations));
  metadata.set("ownerReferences", Value::array({owner_reference(cron_job)}));
  return Value::object({{"apiVersion", "batch/v1"},
                        {"kind", "Job"},
                        {"metadata", std::move(metadata)},
                        {"spec", wanted["spec"]}});
}

std::string_view job_verdict(const Value& job) {
  for (const char* type : {"Complete", "Failed"}) {
    if (find_condition(job, type)["status"].as_string() == "True") return type;
  }
  return "";
}

std::vector<Value> surplus_jobs(const Value& cron_job, const std::vector<Value>& jobs) {
  std::vector<Value> surplus;
  for (const auto& [verdict, limit] : {std::pair("Complete", "successfulJobsHistoryLimit"),
                                       std::pair("Failed", "failedJobsHistoryLimit")}) {
    if (cron_job["spec"][limit].is_null()) continue;
    std::vector<Value> finished;
    for (const Value& job : jobs) {
      if (job_verdict(job) == verdict) finished.push_back(job);
    }
    // One that never started counts as the newest.
    std::sort(finished.begin(), finished.end(), [](const Value& a, const Value& b) {
      const auto rank = [](const Value& job) {
        const Value& started = job["status"]["startTime"];
        return std::tuple(started.is_null(), time_at(started), name_of(job));
      };
      return rank(a) < rank(b);
    });
    const auto kept =
        static_cast<std::size_t>(std::max<std::int64_t>(cron_job["spec"][limit].as_int(), 0));
    const std::size_t count = finished.size() > kept ? finished.size() - kept : 0;
    surplus.insert(surplus.end(), finished.begin(),
                   finished.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return surplus;
}

std::string format_rfc1123(Time time) {
  static constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                       "Thu", "Fri", "Sat"};
  static constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                          "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  namespace chrono = std::chrono;
  const chrono::sys_seconds at{chrono::seconds(time.seconds())};
  const auto day = chrono::floor<chrono::days>(at);
  const chrono::year_month_day date(day);
  const chrono::hh_mm_ss clock(at - day);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%s, %02u %s %04d %02d:%02d:%02d +0000",
                kDays[chrono::weekday(day).c_encoding()], static_cast<unsigned>(date.day()),
                kMonths[static_cast<unsigned>(date.month()) - 1], static_cast<int>(date.year()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return text.data();
}

}  // namespace dibs::controllers
