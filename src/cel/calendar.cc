#include "cel/calendar.h"

#include <cstdio>

#include "base/strings.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::int64_t kDay = 86400;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

bool is_leap(std::int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in_month(std::int64_t year, int month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kDays[month - 1];
}

class DigitReader {
 public:
  explicit DigitReader(std::string_view text) : text_(text) {}
  bool number(std::size_t digits, int& out) {
    out = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (text_.empty() || text_[0] < '0' || text_[0] > '9') return false;
      out = out * 10 + (text_[0] - '0');
      text_.remove_prefix(1);
    }
    return true;
  }
  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  char peek() const { return text_.empty() ? '\0' : text_[0]; }
  bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
};

void append_fraction(std::string& out, std::uint32_t nanos) {
  if (nanos == 0) return;
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%09u", nanos);
  std::string_view shown = digits;
  while (shown.back() == '0') shown.remove_suffix(1);
  out += shown;
}

}  // namespace

std::int64_t days_since_1970(std::int64_t year, int month, int day) {
  year -= month <= 2;
  const std::int64_t era = floor_divide(year, 400);
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

Calendar calendar_of(std::int64_t seconds) {
  const std::int64_t days = floor_divide(seconds, kDay);
  const std::int64_t rest = seconds - days * kDay;
  const std::int64_t shifted = days + 719468;
  const std::int64_t era = floor_divide(shifted, 146097);
  const std::int64_t day_of_era = shifted - era * 146097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_index = (5 * day_of_year + 2) / 153;
  Calendar made;
  made.day = static_cast<int>(day_of_year - (153 * month_index + 2) / 5 + 1);
  made.month = static_cast<int>(month_index < 10 ? month_index + 3 : month_index - 9);
  made.year = year_of_era + era * 400 + (made.month <= 2 ? 1 : 0);
  made.hour = static_cast<int>(rest / 3600);
  made.minute = static_cast<int>(rest / 60 % 60);
  made.second = static_cast<int>(rest % 60);
  made.day_of_week = static_cast<int>(((days + 4) % 7 + 7) % 7);
  made.day_of_year = static_cast<int>(days - days_since_1970(made.year, 1, 1));
  return made;
}

bool is_date(std::string_view text) {
  DigitReader reader(text);
  int year, month, day;
  return reader.number(4, year) && reader.take('-') && reader.number(2, month) &&
         reader.take('-') && reader.number(2, day) && reader.done() && month >= 1 && month <= 12 &&
         day >= 1 && day <= days_in_month(year, month);
}

bool parse_timestamp(std::string_view text, std::int64_t& seconds, std::uint32_t& nanos,
                     std::int16_t* zone) {
  DigitReader reader(text);
  int year, month, day, hour, minute, second;
  if (!reader.number(4, year) || !reader.take('-') || !reader.number(2, month) ||
      !reader.take('-') || !reader.number(2, day) || !(reader.take('T') || reader.take('t')) ||
      !reader.number(2, hour) || !reader.take(':') || !reader.number(2, minute) ||
      !reader.take(':') || !reader.number(2, second))
    return false;
  if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month) || hour > 23 ||
      minute > 59 || second > 59)
    return false;
  nanos = 0;
  if (reader.take('.') || reader.take(',')) {
    std::uint32_t unit = 100'000'000;
    int digit;
    if (reader.peek() < '0' || reader.peek() > '9') return false;
    while (reader.number(1, digit)) {
      nanos += static_cast<std::uint32_t>(digit) * unit;
      unit /= 10;
    }
  }
  std::int64_t offset = 0;
  if (!reader.take('Z') && !reader.take('z')) {
    const bool negative = reader.peek() == '-';
    int hours, minutes;
    if (!(reader.take('-') || reader.take('+')) || !reader.number(2, hours) || !reader.take(':') ||
        !reader.number(2, minutes) || hours > 23 || minutes > 59)
      return false;
    offset = (hours * 60 + minutes) * 60 * (negative ? -1 : 1);
  }
  seconds = days_since_1970(year, month, day) * kDay + hour * 3600 + minute * 60 + second - offset;
  if (zone != nullptr) *zone = static_cast<std::int16_t>(offset / 60);
  return reader.done() && is_valid_timestamp(seconds);
}

std::string show_timestamp(std::int64_t seconds, std::uint32_t nanos, std::int16_t zone) {
  const Calendar at = calendar_of(seconds + zone * 60);
  char text[80];
  std::snprintf(text, sizeof text, "%04lld-%02d-%02dT%02d:%02d:%02d",
                static_cast<long long>(at.year), at.month, at.day, at.hour, at.minute, at.second);
  std::string out = text;
  append_fraction(out, nanos);
  if (zone == 0) return out + "Z";
  const int minutes = zone < 0 ? -zone : zone;
  std::snprintf(text, sizeof text, "%c%02d:%02d", zone < 0 ? '-' : '+', minutes / 60, minutes % 60);
  return out + text;
}

std::string show_duration(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                           : static_cast<std::uint64_t>(nanoseconds);
  std::string out = cat(negative ? "-" : "", magnitude / 1'000'000'000);
  append_fraction(out, static_cast<std::uint32_t>(magnitude % 1'000'000'000));
  return out + "s";
}

}  // namespace dibs::cel
