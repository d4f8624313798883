#include "api/kinds/workload/cron.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "base/strings.h"

namespace dibs::api {
namespace {

struct Bounds {
  unsigned low;
  unsigned high;
  const std::string_view* names;  // of low, low+1, …
  std::size_t name_count;
};

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kDays = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
constexpr Bounds kMinute{0, 59, nullptr, 0};
constexpr Bounds kHour{0, 23, nullptr, 0};
constexpr Bounds kDayOfMonth{1, 31, nullptr, 0};
constexpr Bounds kMonth{1, 12, kMonths.data(), kMonths.size()};
constexpr Bounds kDayOfWeek{0, 6, kDays.data(), kDays.size()};

std::uint64_t bits(unsigned low, unsigned high, unsigned step) {
  std::uint64_t set = 0;
  for (std::uint64_t i = low; i <= high; i += step) set |= std::uint64_t{1} << i;
  return set;
}

std::uint64_t all(const Bounds& bounds) { return bits(bounds.low, bounds.high, 1); }

Result<unsigned> parse_number(std::string_view text) {
  std::int64_t number = 0;
  std::string_view digits = text;
  if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error == std::errc::result_out_of_range) {
    return Error::bad_request(cat("failed to parse int from ", text, ": strconv.Atoi: parsing ",
                                  quoted(text), ": value out of range"));
  }
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return Error::bad_request(cat("failed to parse int from ", text, ": strconv.Atoi: parsing ",
                                  quoted(text), ": invalid syntax"));
  }
  if (number < 0) {
    return Error::bad_request(cat("negative number (", number, ") not allowed: ", text));
  }
  // Larger ones are beyond every bound alike.
  return static_cast<unsigned>(std::min<std::int64_t>(number, 1'000'000'000));
}

Result<unsigned> parse_number_or_name(std::string_view text, const Bounds& bounds) {
  std::string lower = to_lower(text);
  for (std::size_t i = 0; i < bounds.name_count; ++i) {
    if (bounds.names[i] == lower) return static_cast<unsigned>(bounds.low + i);
  }
  return parse_number(text);
}

/// number | number "-" number [ "/" number ], or a star.
Result<std::uint64_t> parse_range(std::string_view text, const Bounds& bounds, bool& any) {
  std::vector<std::string_view> range_and_step = split(text, '/');
  std::vector<std::string_view> low_and_high = split(range_and_step[0], '-');
  bool single = low_and_high.size() == 1;
  unsigned low = bounds.low;
  unsigned high = bounds.high;
  bool star = false;
  if (low_and_high[0] == "*" || low_and_high[0] == "?") {
    star = true;
  } else {
    DIBS_TRY(low, parse_number_or_name(low_and_high[0], bounds));
    if (low_and_high.size() == 1) {
      high = low;
    } else if (low_and_high.size() == 2) {
      DIBS_TRY(high, parse_number_or_name(low_and_high[1], bounds));
    } else {
      return Error::bad_request(cat("too many hyphens: ", text));
    }
  }
  unsigned step = 1;
  if (range_and_step.size() == 2) {
    DIBS_TRY(step, parse_number(range_and_step[1]));
    // "5/10" goes from 5 to the end.
    if (single) high = bounds.high;
    if (step > 1) star = false;
  } else if (range_and_step.size() > 2) {
    return Error::bad_request(cat("too many slashes: ", text));
  }
  if (low < bounds.low) {
    return Error::bad_request(
        cat("beginning of range (", low, ") below minimum (", bounds.low, "): ", text));
  }
  if (high > bounds.high) {
    return Error::bad_request(
        cat("end of range (", high, ") above maximum (", bounds.high, "): ", text));
  }
  if (low > high) {
    return Error::bad_request(
        cat("beginning of range (", low, ") beyond end of range (", high, "): ", text));
  }
  if (step == 0) {
    return Error::bad_request(cat("step of range should be a positive number: ", text));
  }
  any = any || star;
  return bits(low, high, step);
}

Result<std::uint64_t> parse_field(std::string_view text, const Bounds& bounds, bool& any) {
  std::uint64_t set = 0;
  for (std::string_view piece : split(text, ',')) {
    if (piece.empty()) continue;
    DIBS_TRY(std::uint64_t range, parse_range(piece, bounds, any));
    set |= range;
  }
  return set;
}

Result<CronSchedule> parse_descriptor(std::string_view text) {
  CronSchedule schedule{1, 1, 1u << 1, 1u << 1, all(kDayOfWeek), false, true, std::nullopt};
  if (text == "@yearly" || text == "@annually") return schedule;
  schedule.months = all(kMonth);
  if (text == "@monthly") return schedule;
  schedule.days_of_month = all(kDayOfMonth);
  schedule.any_day_of_month = true;
  if (text == "@weekly") {
    schedule.days_of_week = 1;
    schedule.any_day_of_week = false;
    return schedule;
  }
  if (text == "@daily" || text == "@midnight") return schedule;
  schedule.hours = all(kHour);
  if (text == "@hourly") return schedule;
  constexpr std::string_view kEvery = "@every ";
  if (text.substr(0, kEvery.size()) == kEvery) {
    Result<Duration> every = parse_duration(text.substr(kEvery.size()));
    if (!every) {
      return Error::bad_request(
          cat("failed to parse duration ", text, ": ", every.error().message()));
    }
    // Whole seconds, at least one.
    Duration second = std::chrono::seconds(1);
    Duration wanted = *every < second ? second : *every;
    schedule.every = wanted - wanted % second;
    return schedule;
  }
  return Error::bad_request(cat("unrecognized descriptor: ", text));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  while (begin < text.size()) {
    while (begin < text.size() && std::isspace(static_cast<unsigned char>(text[begin]))) ++begin;
    std::size_t end = begin;
    while (end < text.size() && !std::isspace(static_cast<unsigned char>(text[end]))) ++end;
    if (end > begin) words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

bool has(std::uint64_t set, unsigned bit) { return (set >> bit) & 1; }

bool day_matches(const CronSchedule& schedule, unsigned day, unsigned weekday) {
  bool by_month = has(schedule.days_of_month, day);
  bool by_week = has(schedule.days_of_week, weekday);
  if (schedule.any_day_of_month || schedule.any_day_of_week) return by_month && by_week;
  return by_month || by_week;
}

}  // namespace

Result<CronSchedule> parse_cron(std::string_view text) {
  if (text.empty()) return Error::bad_request("empty spec string");
  if (text.substr(0, 3) == "TZ=" || text.substr(0, 8) == "CRON_TZ=") {
    std::size_t blank = text.find(' ');
    std::size_t equals = text.find('=');
    std::string_view zone = blank == std::string_view::npos
                                ? text.substr(equals + 1)
                                : text.substr(equals + 1, blank - equals - 1);
    if (!is_time_zone(zone)) {
      return Error::bad_request(cat("provided bad location ", zone, ": unknown time zone ", zone));
    }
    text = blank == std::string_view::npos ? std::string_view() : trim(text.substr(blank));
  }
  if (!text.empty() && text.front() == '@') return parse_descriptor(text);

  std::vector<std::string_view> words = words_of(text);
  if (words.size() != 5) {
    std::string shown;
    for (std::string_view word : words) append(shown, shown.empty() ? "" : " ", word);
    return Error::bad_request(
        cat("expected exactly 5 fields, found ", words.size(), ": [", shown, "]"));
  }
  CronSchedule schedule;
  bool ignored = false;
  DIBS_TRY(schedule.minutes, parse_field(words[0], kMinute, ignored));
  DIBS_TRY(schedule.hours, parse_field(words[1], kHour, ignored));
  DIBS_TRY(schedule.days_of_month, parse_field(words[2], kDayOfMonth, schedule.any_day_of_month));
  DIBS_TRY(schedule.months, parse_field(words[3], kMonth, ignored));
  DIBS_TRY(schedule.days_of_week, parse_field(words[4], kDayOfWeek, schedule.any_day_of_week));
  return schedule;
}

std::optional<Time> next_run(const CronSchedule& schedule, Time after,
                             std::int64_t utc_offset_seconds) {
  if (schedule.every) return Time::from_seconds(after.seconds()) + *schedule.every;
  constexpr std::int64_t kDay = 86400;
  std::int64_t local = after.seconds() + utc_offset_seconds;
  local = (local / 60 - (local % 60 < 0 ? 1 : 0) + 1) * 60;
  std::int64_t day = local / kDay - (local % kDay < 0 ? 1 : 0);
  std::int64_t minute_of_day = (local - day * kDay) / 60;
  constexpr int kDaysAhead = 5 * 366;
  for (int ahead = 0; ahead <= kDaysAhead; ++ahead, ++day, minute_of_day = 0) {
    std::chrono::sys_days date{std::chrono::days(day)};
    std::chrono::year_month_day civil{date};
    unsigned weekday = std::chrono::weekday(date).c_encoding();
    if (!has(schedule.months, static_cast<unsigned>(civil.month())) ||
        !day_matches(schedule, static_cast<unsigned>(civil.day()), weekday)) {
      continue;
    }
    for (std::int64_t minute = minute_of_day; minute < 24 * 60; ++minute) {
      if (has(schedule.hours, static_cast<unsigned>(minute / 60)) &&
          has(schedule.minutes, static_cast<unsigned>(minute % 60))) {
        return Time::from_seconds(day * kDay + minute * 60 - utc_offset_seconds);
      }
    }
  }
  return std::nullopt;
}

}  // namespace dibs::api
