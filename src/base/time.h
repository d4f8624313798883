#pragma once
// Points in time and their spelling in the API.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs {

using Duration = std::chrono::nanoseconds;

/// Nanoseconds since 1970-01-01T00:00:00Z.
struct Time {
  std::int64_t nanoseconds = 0;

  static Time from_seconds(std::int64_t seconds) { return {seconds * 1'000'000'000}; }
  std::int64_t seconds() const;  // rounds down
  friend auto operator<=>(const Time&, const Time&) = default;
  friend Time operator+(Time t, Duration d) { return {t.nanoseconds + d.count()}; }
  friend Time operator-(Time t, Duration d) { return {t.nanoseconds - d.count()}; }
  friend Duration operator-(Time a, Time b) { return Duration(a.nanoseconds - b.nanoseconds); }
};

/// "2006-01-02T15:04:05Z"
std::string format_rfc3339(Time time);
/// "2006-01-02T15:04:05.000000Z"
std::string format_rfc3339_micro(Time time);
/// RFC 3339 with any offset and fraction, as Go's time.Parse(time.RFC3339) takes it. The error's
/// message is Go's: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006".
Result<Time> parse_rfc3339(std::string_view text);
/// As above, but the fraction must have exactly six digits (MicroTime).
Result<Time> parse_rfc3339_micro(std::string_view text);

/// Go durations: "1h2m3.5s", "300ms", "-1.5h".
Result<Duration> parse_duration(std::string_view text);
std::string format_duration(Duration duration);

/// The age in kubectl's columns: "5s", "3m10s", "2d3h", "<invalid>" when far in the future.
std::string human_duration(Duration duration);

}  // namespace dibs
