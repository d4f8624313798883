#pragma once
// The schedule of a CronJob: five fields or a descriptor such as @hourly, as Kubernetes reads it.

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace dibs::api {

/// The set of minutes, hours, … at which it is due, one bit each. Days match as in cron: when both
/// day fields are restricted, one of them is enough.
struct CronSchedule {
  std::uint64_t minutes = 0;        // 0-59
  std::uint64_t hours = 0;          // 0-23
  std::uint64_t days_of_month = 0;  // 1-31
  std::uint64_t months = 0;         // 1-12
  std::uint64_t days_of_week = 0;   // 0-6, Sunday is 0
  bool any_day_of_month = false;
  bool any_day_of_week = false;
  /// Of "@every 1h30m"; the fields above do not count then.
  std::optional<Duration> every;
};

/// Errors are bad_request with the words that the API shows: "expected exactly 5 fields, found 2:
/// [a b]".
Result<CronSchedule> parse_cron(std::string_view text);

/// The first due time after `after`, in a zone so far east of UTC; nothing within five years for a
/// date that never comes, such as February 30.
std::optional<Time> next_run(const CronSchedule& schedule, Time after,
                             std::int64_t utc_offset_seconds = 0);

/// True for the names of the IANA time zone database, UTC among them.
bool is_time_zone(std::string_view name);

}  // namespace dibs::api
