#pragma once
// Dates and RFC 3339 for years 1 to 9999.

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
/// Of a date in the Gregorian calendar, also before it was one.
std::int64_t days_since_1970(std::int64_t year, int month, int day);

/// "2006-01-02", any year from 0.
bool is_date(std::string_view text);
/// `zone`: where given, the minutes east of UTC in which it was written.
bool parse_timestamp(std::string_view text, std::int64_t& seconds, std::uint32_t& nanos,
                     std::int16_t* zone = nullptr);
/// With as many digits of the fraction as it takes.
std::string show_timestamp(std::int64_t seconds, std::uint32_t nanos, std::int16_t zone = 0);
/// "1.5s".
std::string show_duration(std::int64_t nanoseconds);

}  // namespace dibs::cel
