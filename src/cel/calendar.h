#pragma once
// Dates, RFC 3339 and time zones for years 1 to 9999.

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::cel {

struct Calendar {
  std::int64_t year = 1970;
  int month = 1;  // 1 to 12
  int day = 1;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int day_of_week = 4;  // 0 is Sunday
  int day_of_year = 0;  // from 0
};

Calendar calendar_of(std::int64_t seconds);

bool parse_timestamp(std::string_view text, std::int64_t& seconds, std::uint32_t& nanos);
/// In UTC, with as many digits of the fraction as it takes.
std::string show_timestamp(std::int64_t seconds, std::uint32_t nanos);
/// "1.5s".
std::string show_duration(std::int64_t nanoseconds);

/// Seconds east of UTC at a moment, in a zone given by name or as "+01:30". False: no such zone.
bool zone_offset(std::string_view zone, std::int64_t at_seconds, std::int64_t& offset);

}  // namespace dibs::cel
