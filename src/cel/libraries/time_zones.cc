#include "cel/libraries/time_zones.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/mutex.h"
#include "base/strings.h"
#include "cel/calendar.h"

namespace dibs::cel {

namespace {

constexpr std::int64_t kDay = 86400;
constexpr std::size_t kHeader = 44;
/// Further than any real offset; sums with timestamps stay far from overflow.
constexpr std::int64_t kMostHours = 1'000'000'000;

std::uint64_t big_endian(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Takes pieces of a POSIX rule from its front.
class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : text_(text) {}
  bool take(char c) {
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// "CET" or "<+0330>".
  bool name() {
    if (take('<')) {
      const std::size_t end = text_.find('>');
      if (end == std::string_view::npos) return false;
      text_.remove_prefix(end + 1);
      return true;
    }
    std::size_t length = 0;
    while (length < text_.size() && ((text_[length] | 32) >= 'a' && (text_[length] | 32) <= 'z'))
      ++length;
    text_.remove_prefix(length);
    return length >= 3;
  }
  bool number(int& out) {
    const auto end = std::from_chars(text_.data(), text_.data() + text_.size(), out);
    if (end.ec != std::errc() || out < 0) return false;
    text_.remove_prefix(static_cast<std::size_t>(end.ptr - text_.data()));
    return true;
  }
  /// "[+-]hh[:mm[:ss]]", in seconds.
  bool time(std::int64_t& out) {
    const bool negative = take('-');
    if (!negative) take('+');
    int parts[3] = {0, 0, 0};
    if (!number(parts[0])) return false;
    if (take(':') && !number(parts[1])) return false;
    if (take(':') && !number(parts[2])) return false;
    if (parts[0] > 167 || parts[1] > 59 || parts[2] > 59) return false;
    out = (parts[0] * 60 + parts[1]) * 60 + parts[2];
    if (negative) out = -out;
    return true;
  }
  bool at_time() const { return !text_.empty() && text_[0] != ','; }
  bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
};

class ReadZones final : public TimeZones {
 public:
  explicit ReadZones(ReadZone read) : read_(std::move(read)) {}
  bool offset(std::string_view name, std::int64_t at_seconds, std::int64_t& offset) const override {
    const MutexLock lock(mutex_);
    const Zone* zone = find(std::string(name));
    if (zone == nullptr) return false;
    offset = zone->offset(at_seconds);
    return true;
  }

 private:
  const Zone* find(const std::string& name) const DIBS_REQUIRES(mutex_) {
    const auto found = zones_.find(name);
    if (found != zones_.end()) return &found->second;
    const std::optional<std::string> bytes = read_(name);
    std::optional<Zone> zone = bytes ? Zone::parse(*bytes) : std::nullopt;
    return zone ? &zones_.emplace(name, std::move(*zone)).first->second : nullptr;
  }

  const ReadZone read_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Zone> zones_ DIBS_GUARDED_BY(mutex_);
};

std::optional<std::string> read_system_zone(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path("/usr/share/zoneinfo") / name;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// As Go reads a number; false with its words for what is none.
bool whole_number(std::string_view text, std::int64_t& out, std::string& problem) {
  std::string_view digits = text;
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  const bool read = end.ptr == digits.data() + digits.size() && !digits.empty();
  if (read && end.ec == std::errc() && out > -kMostHours && out < kMostHours) return true;
  const bool far = read && end.ec != std::errc::invalid_argument;
  problem = cat("strconv.Atoi: parsing ", quoted(text), ": ",
                far ? "value out of range" : "invalid syntax");
  return false;
}

}  // namespace

std::int64_t Zone::Change::moment(std::int64_t year) const {
  const std::int64_t first = days_since_1970(year, 1, 1);
  const bool leap = days_since_1970(year + 1, 1, 1) - first == 366;
  std::int64_t at = first;
  switch (form) {
    case Form::day:
      at += day;
      break;
    case Form::day_without_leap:
      at += day - 1 + (leap && day >= 60 ? 1 : 0);
      break;
    case Form::month_week_day: {
      const std::int64_t begin = days_since_1970(year, month, 1);
      const std::int64_t end =
          month == 12 ? days_since_1970(year + 1, 1, 1) : days_since_1970(year, month + 1, 1);
      const std::int64_t weekday = ((begin + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
      at = begin + (day - weekday + 7) % 7 + (week - 1) * 7;
      while (at >= end) at -= 7;  // the fifth week is the last
      break;
    }
  }
  return at * kDay + seconds;
}

std::optional<Zone::Rule> Zone::parse_rule(std::string_view text) {
  RuleReader reader(text);
  Rule rule;
  // The sign there is that of what must be added to reach UTC.
  if (!reader.name() || !reader.time(rule.standard)) return std::nullopt;
  rule.standard = -rule.standard;
  if (reader.done()) return rule;
  if (!reader.name()) return std::nullopt;
  std::int64_t summer = -(rule.standard + 3600);
  if (reader.at_time() && !reader.time(summer)) return std::nullopt;
  rule.summer = -summer;
  for (Change* change : {&rule.to_summer, &rule.to_standard}) {
    if (!reader.take(',')) return std::nullopt;
    if (reader.take('M')) {
      change->form = Change::Form::month_week_day;
      if (!reader.number(change->month) || !reader.take('.') || !reader.number(change->week) ||
          !reader.take('.') || !reader.number(change->day) || change->month < 1 ||
          change->month > 12 || change->week < 1 || change->week > 5 || change->day > 6)
        return std::nullopt;
    } else {
      change->form = reader.take('J') ? Change::Form::day_without_leap : Change::Form::day;
      if (!reader.number(change->day) || change->day > 365) return std::nullopt;
    }
    if (reader.take('/') && !reader.time(change->seconds)) return std::nullopt;
  }
  return reader.done() ? std::optional<Rule>(rule) : std::nullopt;
}

std::optional<Zone> Zone::parse(std::string_view bytes) {
  // Twice the same form: with times of 32 bits, which is skipped, and of 64 bits.
  if (bytes.size() < kHeader || !bytes.starts_with("TZif") || bytes[4] < '2') return std::nullopt;
  const auto counts = [&](std::size_t which) {
    return static_cast<std::size_t>(big_endian(bytes, 20 + 4 * which, 4));
  };
  // UT indicators, standard indicators, leap seconds, transitions, types, characters.
  const std::size_t skipped =
      kHeader + counts(3) * 5 + counts(4) * 6 + counts(5) + counts(2) * 8 + counts(1) + counts(0);
  if (bytes.size() < skipped + kHeader) return std::nullopt;
  bytes.remove_prefix(skipped);
  const std::size_t transitions = counts(3);
  const std::size_t types = counts(4);
  const std::size_t size =
      kHeader + transitions * 9 + types * 6 + counts(5) + counts(2) * 12 + counts(1) + counts(0);
  if (types == 0 || bytes.size() < size) return std::nullopt;
  const std::size_t type_table = kHeader + transitions * 9;
  const auto offset_of = [&](std::size_t type) {
    return static_cast<std::int64_t>(
        static_cast<std::int32_t>(big_endian(bytes, type_table + type * 6, 4)));
  };
  Zone zone;
  zone.offsets_.push_back(offset_of(0));
  for (std::size_t i = 0; i < transitions; ++i) {
    const auto type = static_cast<unsigned char>(bytes[kHeader + transitions * 8 + i]);
    if (type >= types) return std::nullopt;
    zone.from_.push_back(static_cast<std::int64_t>(big_endian(bytes, kHeader + i * 8, 8)));
    zone.offsets_.push_back(offset_of(type));
  }
  const std::string_view footer = trim(bytes.substr(size));
  if (!footer.empty()) zone.rule_ = parse_rule(footer);
  return zone;
}

std::int64_t Zone::offset(std::int64_t at_seconds) const {
  const auto next = std::upper_bound(from_.begin(), from_.end(), at_seconds);
  if (next != from_.end() || !rule_)
    return offsets_[static_cast<std::size_t>(next - from_.begin())];
  if (!rule_->summer) return rule_->standard;
  const std::int64_t year = calendar_of(at_seconds + rule_->standard).year;
  const std::int64_t begin = rule_->to_summer.moment(year) - rule_->standard;
  const std::int64_t end = rule_->to_standard.moment(year) - *rule_->summer;
  // South of the equator the summer spans the turn of the year.
  const bool summer = begin < end ? at_seconds >= begin && at_seconds < end
                                  : at_seconds >= begin || at_seconds < end;
  return summer ? *rule_->summer : rule_->standard;
}

std::shared_ptr<const TimeZones> zones_from(ReadZone read) {
  return std::make_shared<const ReadZones>(std::move(read));
}

const TimeZones& system_time_zones() {
  static const ReadZones zones(read_system_zone);
  return zones;
}

bool zone_offset(const TimeZones* zones, std::string_view zone, std::int64_t at_seconds,
                 std::int64_t& offset, std::string& problem) {
  offset = 0;
  const std::size_t colon = zone.find(':');
  if (colon != std::string_view::npos) {
    std::int64_t hours;
    std::int64_t minutes;
    if (!whole_number(zone.substr(0, colon), hours, problem) ||
        !whole_number(zone.substr(colon + 1), minutes, problem))
      return false;
    offset = (hours * 60 + (zone[0] == '-' ? -minutes : minutes)) * 60;
    return true;
  }
  if (zone.empty() || zone == "UTC" || zone == "Local") return true;
  if (zone.find("..") != std::string_view::npos || zone[0] == '/' ||
      zone.find('\\') != std::string_view::npos) {
    problem = "time: invalid location name";
    return false;
  }
  // A zero ends the name of a file early.
  const bool plain = zone.find('\0') == std::string_view::npos;
  if (plain && zones != nullptr && zones->offset(zone, at_seconds, offset)) return true;
  problem = cat("unknown time zone ", zone);
  return false;
}

}  // namespace dibs::cel
