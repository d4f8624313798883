#include "cel/calendar.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/strings.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::int64_t kDay = 86400;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar.
std::int64_t days_of(std::int64_t year, int month, int day) {
  year -= month <= 2;
  const std::int64_t era = floor_divide(year, 400);
  const std::int64_t year_of_era = year - era * 400;
  const std::int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
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

/// "+01:30", "-08:00", "01:30".
bool fixed_offset(std::string_view text, std::int64_t& offset) {
  DigitReader reader(text);
  const bool negative = reader.take('-');
  if (!negative) reader.take('+');
  int hours;
  int minutes;
  if (!reader.number(2, hours) || !reader.take(':') || !reader.number(2, minutes) || !reader.done())
    return false;
  if (hours > 23 || minutes > 59) return false;
  offset = (hours * 60 + minutes) * 60 * (negative ? -1 : 1);
  return true;
}

struct Zone {
  std::vector<std::int64_t> from;     // moments at which the offset changes
  std::vector<std::int64_t> offsets;  // one more: the first is before all moments
};

std::uint64_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// A compiled zone file, its part with 64-bit times (RFC 8536).
std::optional<Zone> parse_zone(std::string_view bytes) {
  constexpr std::size_t kHeader = 44;
  if (bytes.size() < kHeader || !bytes.starts_with("TZif") || bytes[4] < '2') return std::nullopt;
  const auto counts = [&](int which) {
    return static_cast<std::size_t>(big_endian(bytes, 20 + 4 * static_cast<std::size_t>(which), 4));
  };
  // UT indicators, standard indicators, leap seconds, transitions, types, characters.
  const std::size_t skipped =
      kHeader + counts(3) * 5 + counts(4) * 6 + counts(5) + counts(2) * 8 + counts(1) + counts(0);
  if (bytes.size() < skipped + kHeader) return std::nullopt;
  bytes.remove_prefix(skipped);
  const std::size_t transitions = counts(3);
  const std::size_t types = counts(4);
  if (types == 0 || bytes.size() < kHeader + transitions * 9 + types * 6) return std::nullopt;
  const std::size_t type_table = kHeader + transitions * 9;
  const auto offset_of = [&](std::size_t type) {
    return static_cast<std::int64_t>(
        static_cast<std::int32_t>(big_endian(bytes, type_table + type * 6, 4)));
  };
  Zone zone;
  zone.offsets.push_back(offset_of(0));
  for (std::size_t i = 0; i < transitions; ++i) {
    const auto type = static_cast<unsigned char>(bytes[kHeader + transitions * 8 + i]);
    if (type >= types) return std::nullopt;
    zone.from.push_back(static_cast<std::int64_t>(big_endian(bytes, kHeader + i * 8, 8)));
    zone.offsets.push_back(offset_of(type));
  }
  return zone;
}

/// Read once per name; what is not there stays absent. Few names are ever used, and their number is
/// bounded by what the system has installed: unknown ones are not kept.
const Zone* find_zone(const std::string& name) {
  static std::mutex mutex;
  static auto* const zones = new std::map<std::string, Zone>;
  const std::lock_guard lock(mutex);
  const auto found = zones->find(name);
  if (found != zones->end()) return &found->second;
  if (name.empty() || name[0] == '/' || name.find("..") != std::string::npos) return nullptr;
  std::ifstream file(cat("/usr/share/zoneinfo/", name), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::optional<Zone> zone = parse_zone(bytes);
  if (!zone) return nullptr;
  return &zones->emplace(name, std::move(*zone)).first->second;
}

void append_fraction(std::string& out, std::uint32_t nanos) {
  if (nanos == 0) return;
  char digits[16];
  std::snprintf(digits, sizeof digits, ".%09u", nanos);
  std::string_view shown = digits;
  while (shown.back() == '0') shown.remove_suffix(1);
  out += shown;
}

}  // namespace

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
  made.day_of_year = static_cast<int>(days - days_of(made.year, 1, 1));
  return made;
}

bool parse_timestamp(std::string_view text, std::int64_t& seconds, std::uint32_t& nanos) {
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
  seconds = days_of(year, month, day) * kDay + hour * 3600 + minute * 60 + second - offset;
  return reader.done() && is_valid_timestamp(seconds);
}

std::string show_timestamp(std::int64_t seconds, std::uint32_t nanos) {
  const Calendar at = calendar_of(seconds);
  char text[80];
  std::snprintf(text, sizeof text, "%04lld-%02d-%02dT%02d:%02d:%02d",
                static_cast<long long>(at.year), at.month, at.day, at.hour, at.minute, at.second);
  std::string out = text;
  append_fraction(out, nanos);
  return out + "Z";
}

std::string show_duration(std::int64_t nanoseconds) {
  const bool negative = nanoseconds < 0;
  const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(nanoseconds)
                                           : static_cast<std::uint64_t>(nanoseconds);
  std::string out = cat(negative ? "-" : "", magnitude / 1'000'000'000);
  append_fraction(out, static_cast<std::uint32_t>(magnitude % 1'000'000'000));
  return out + "s";
}

bool zone_offset(std::string_view name, std::int64_t at_seconds, std::int64_t& offset) {
  if (name.empty() || name == "UTC") {
    offset = 0;
    return true;
  }
  if (fixed_offset(name, offset)) return true;
  const Zone* zone = find_zone(std::string(name));
  if (zone == nullptr) return false;
  const auto next = std::upper_bound(zone->from.begin(), zone->from.end(), at_seconds);
  offset = zone->offsets[static_cast<std::size_t>(next - zone->from.begin())];
  return true;
}

}  // namespace dibs::cel
