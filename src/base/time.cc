#include "base/time.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/moment.h"
#include "base/strings.h"

namespace dibs {

namespace {

constexpr std::int64_t kNano = 1'000'000'000;
constexpr std::string_view kLayout = "2006-01-02T15:04:05Z07:00";
constexpr std::string_view kMicroLayout = "2006-01-02T15:04:05.000000Z07:00";

/// A moment of any year from 0 to 9999, which int64 nanoseconds cannot hold.
struct Date {
  std::int64_t year;
  int month;
  int day;
};

bool is_leap(std::int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int days_in(int month, std::int64_t year) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && is_leap(year) ? 29 : kDays[static_cast<std::size_t>(month - 1)];
}

// Days of the proleptic Gregorian calendar, counted in eras of 400 years that start in March.
std::int64_t days_from_date(Date date) {
  std::int64_t year = date.year - (date.month <= 2 ? 1 : 0);
  std::int64_t era = (year >= 0 ? year : year - 399) / 400;
  std::int64_t of_era = year - era * 400;
  std::int64_t of_year = (153 * (date.month + (date.month > 2 ? -3 : 9)) + 2) / 5 + date.day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

Date date_from_days(std::int64_t days) {
  days += 719468;
  std::int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  std::int64_t of_era = days - era * 146097;
  std::int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  std::int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  std::int64_t shifted = (5 * of_year + 2) / 153;
  int day = static_cast<int>(of_year - (153 * shifted + 2) / 5 + 1);
  int month = static_cast<int>(shifted < 10 ? shifted + 3 : shifted - 9);
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, day};
}

void append_padded(std::string& out, std::int64_t number, std::size_t width) {
  std::string digits = std::to_string(number);
  if (digits.size() < width) out.append(width - digits.size(), '0');
  out += digits;
}

Moment to_moment(Time time) {
  // Not by the seconds: those of the first moment there is, rounded down, lie before it.
  const std::int64_t rest = time.nanoseconds % kNano;
  return {time.seconds(), rest < 0 ? rest + kNano : rest};
}

Time to_time(Moment moment) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  if (moment.seconds >= kMax / kNano) return {kMax};
  if (moment.seconds <= kMin / kNano) return {kMin};
  return {moment.seconds * kNano + moment.nanoseconds};
}

bool is_digit(std::string_view text, std::size_t i) {
  return i < text.size() && text[i] >= '0' && text[i] <= '9';
}

// Go's time package quotes by bytes: everything outside printable ASCII becomes \xNN.
std::string time_quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x80) {
      out += "\\x";
      out += hex_encode(std::string_view(&c, 1));
    } else {
      out += c;
    }
  }
  return out += '"';
}

/// Walks a text along the RFC 3339 layout and keeps the first complaint in Go's words.
class Parser {
 public:
  Parser(std::string_view text, bool micro)
      : all_(text), rest_(text), layout_(micro ? kMicroLayout : kLayout), micro_(micro) {}

  Result<Moment> parse() {
    Date date{0, 0, 0};
    int hour = 0;
    int minute = 0;
    int second = 0;
    if (!year(date.year) || !skip("-") || !number("01", true, date.month) ||
        !in_range(date.month >= 1 && date.month <= 12, "month") || !skip("-") ||
        !number("02", true, date.day) || !skip("T") || !number("15", false, hour) ||
        !in_range(hour < 24, "hour") || !skip(":") || !number("04", true, minute) ||
        !in_range(minute < 60, "minute") || !skip(":") || !number("05", true, second) ||
        !in_range(second < 60, "second") || !fraction() || !zone()) {
      return Error::bad_request(complaint_);
    }
    if (!rest_.empty()) {
      return Error::bad_request(
          cat("parsing time ", time_quoted(all_), ": extra text: ", time_quoted(rest_)));
    }
    if (!in_range(date.day >= 1 && date.day <= days_in(date.month, date.year), "day")) {
      return Error::bad_request(complaint_);
    }
    std::int64_t seconds = days_from_date(date) * 86400 + hour * 3600 + minute * 60 + second;
    return Moment{seconds - offset_, nanoseconds_};
  }

 private:
  bool fail(std::string_view value, std::string_view element) {
    complaint_ = cat("parsing time ", time_quoted(all_), " as ", time_quoted(layout_),
                     ": cannot parse ", time_quoted(value), " as ", time_quoted(element));
    return false;
  }

  bool in_range(bool ok, std::string_view what) {
    if (!ok) complaint_ = cat("parsing time ", time_quoted(all_), ": ", what, " out of range");
    return ok;
  }

  bool skip(std::string_view literal) {
    if (!rest_.starts_with(literal)) return fail(rest_, literal);
    rest_.remove_prefix(literal.size());
    return true;
  }

  bool year(std::int64_t& out) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (!is_digit(rest_, i)) return fail(rest_, "2006");
      out = out * 10 + (rest_[i] - '0');
    }
    rest_.remove_prefix(4);
    return true;
  }

  bool number(std::string_view element, bool two_digits, int& out) {
    if (!is_digit(rest_, 0) || (two_digits && !is_digit(rest_, 1))) return fail(rest_, element);
    std::size_t length = is_digit(rest_, 1) ? 2 : 1;
    out = rest_[0] - '0';
    if (length == 2) out = out * 10 + (rest_[1] - '0');
    rest_.remove_prefix(length);
    return true;
  }

  bool fraction() {
    bool starts = !rest_.empty() && (rest_[0] == '.' || rest_[0] == ',');
    std::size_t end = 1;
    if (micro_) {
      while (end <= 6 && is_digit(rest_, end)) ++end;
      if (!starts || end != 7) return fail(rest_, ".000000");
    } else {
      if (!starts || !is_digit(rest_, 1)) return true;
      while (is_digit(rest_, end)) ++end;
    }
    for (std::size_t i = 1; i <= 9; ++i) {
      nanoseconds_ = nanoseconds_ * 10 + (i < end ? rest_[i] - '0' : 0);
    }
    rest_.remove_prefix(end);
    return true;
  }

  bool zone() {
    if (rest_.starts_with('Z')) {
      rest_.remove_prefix(1);
      return true;
    }
    bool shaped = rest_.size() >= 6 && (rest_[0] == '+' || rest_[0] == '-') && rest_[3] == ':' &&
                  is_digit(rest_, 1) && is_digit(rest_, 2) && is_digit(rest_, 4) &&
                  is_digit(rest_, 5);
    if (!shaped) return fail(rest_, "Z07:00");
    int hours = (rest_[1] - '0') * 10 + (rest_[2] - '0');
    int minutes = (rest_[4] - '0') * 10 + (rest_[5] - '0');
    if (!in_range(hours <= 24, "time zone offset hour")) return false;
    if (!in_range(minutes <= 60, "time zone offset minute")) return false;
    offset_ = (hours * 60 + minutes) * 60;
    if (rest_[0] == '-') offset_ = -offset_;
    rest_.remove_prefix(6);
    return true;
  }

  std::string_view all_;
  std::string_view rest_;
  std::string_view layout_;
  bool micro_;
  std::int64_t nanoseconds_ = 0;
  std::int64_t offset_ = 0;
  std::string complaint_;
};

}  // namespace

std::int64_t Time::seconds() const {
  std::int64_t whole = nanoseconds / kNano;
  return nanoseconds % kNano < 0 ? whole - 1 : whole;
}

std::string format_moment(Moment moment, bool micro) {
  std::int64_t days = moment.seconds / 86400;
  std::int64_t rest = moment.seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  Date date = date_from_days(days);
  std::string out;
  append_padded(out, date.year, 4);
  out += '-';
  append_padded(out, date.month, 2);
  out += '-';
  append_padded(out, date.day, 2);
  out += 'T';
  append_padded(out, rest / 3600, 2);
  out += ':';
  append_padded(out, rest / 60 % 60, 2);
  out += ':';
  append_padded(out, rest % 60, 2);
  if (micro) {
    out += '.';
    append_padded(out, moment.nanoseconds / 1000, 6);
  }
  out += 'Z';
  return out;
}

std::string format_rfc3339(Time time) { return format_moment(to_moment(time), false); }
std::string format_rfc3339_micro(Time time) { return format_moment(to_moment(time), true); }

Result<Moment> parse_moment(std::string_view text, bool micro) {
  DIBS_TRY(Moment moment, Parser(text, micro).parse());
  moment.seconds = std::clamp(moment.seconds, Moment::kFirst, Moment::kLast);
  return moment;
}

Result<Time> parse_rfc3339(std::string_view text) {
  DIBS_TRY(Moment moment, parse_moment(text, false));
  return to_time(moment);
}

Result<Time> parse_rfc3339_micro(std::string_view text) {
  DIBS_TRY(Moment moment, parse_moment(text, true));
  return to_time(moment);
}

std::string human_duration(Duration duration) {
  std::int64_t seconds = duration.count() / kNano;
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  if (seconds < 120) return cat(seconds, "s");
  auto two = [](std::int64_t a, char unit, std::int64_t b, char small) {
    return b == 0 ? cat(a, unit) : cat(a, unit, b, small);
  };
  std::int64_t minutes = seconds / 60;
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return cat(minutes, "m");
  std::int64_t hours = minutes / 60;
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return cat(hours, "h");
  if (hours < 24 * 8) return two(hours / 24, 'd', hours % 24, 'h');
  if (hours < 24 * 365 * 2) return cat(hours / 24, "d");
  if (hours < 24 * 365 * 8) return two(hours / 24 / 365, 'y', hours / 24 % 365, 'd');
  return cat(hours / 24 / 365, "y");
}

}  // namespace dibs
