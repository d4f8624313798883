// The duration half of time.h: Go's time.ParseDuration and Duration.String.
#include <limits>

#include "base/strings.h"
#include "base/time.h"

namespace dibs {

namespace {

constexpr std::uint64_t kLimit = 1ULL << 63;

std::uint64_t unit_size(std::string_view unit) {
  if (unit == "ns") return 1;
  if (unit == "us" || unit == "\u00b5s" || unit == "\u03bcs") return 1'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "s") return 1'000'000'000;
  if (unit == "m") return 60'000'000'000;
  if (unit == "h") return 3'600'000'000'000;
  return 0;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_fraction(std::string& out, std::uint64_t value, std::uint64_t unit) {
  std::uint64_t rest = value % unit;
  append(out, value / unit);
  if (rest == 0) return;
  std::string digits = std::to_string(rest + unit).substr(1);
  while (digits.back() == '0') digits.pop_back();
  append(out, '.', digits);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  auto invalid = [&] { return Error::bad_request(cat("time: invalid duration ", quoted(text))); };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return Duration(0);
  if (rest.empty()) return invalid();
  std::uint64_t total = 0;
  while (!rest.empty()) {
    std::uint64_t whole = 0;
    std::uint64_t fraction = 0;
    double scale = 1;
    std::size_t digits = 0;
    if (rest[0] != '.' && !is_digit(rest[0])) return invalid();
    for (; !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1), ++digits) {
      if (whole > kLimit / 10) return invalid();
      whole = whole * 10 + static_cast<std::uint64_t>(rest[0] - '0');
      if (whole > kLimit) return invalid();
    }
    if (!rest.empty() && rest[0] == '.') {
      rest.remove_prefix(1);
      bool full = false;
      for (; !rest.empty() && is_digit(rest[0]); rest.remove_prefix(1), ++digits) {
        if (full || fraction > (kLimit - 1) / 10) {
          full = true;
          continue;
        }
        std::uint64_t next = fraction * 10 + static_cast<std::uint64_t>(rest[0] - '0');
        if (next > kLimit) {
          full = true;
          continue;
        }
        fraction = next;
        scale *= 10;
      }
    }
    if (digits == 0) return invalid();
    std::size_t end = 0;
    while (end < rest.size() && rest[end] != '.' && !is_digit(rest[end])) ++end;
    if (end == 0) {
      return Error::bad_request(cat("time: missing unit in duration ", quoted(text)));
    }
    std::string_view unit_name = rest.substr(0, end);
    rest.remove_prefix(end);
    std::uint64_t unit = unit_size(unit_name);
    if (unit == 0) {
      return Error::bad_request(
          cat("time: unknown unit ", quoted(unit_name), " in duration ", quoted(text)));
    }
    if (whole > kLimit / unit) return invalid();
    whole *= unit;
    if (fraction > 0) {
      whole += static_cast<std::uint64_t>(static_cast<double>(fraction) *
                                          (static_cast<double>(unit) / scale));
      if (whole > kLimit) return invalid();
    }
    total += whole;
    if (total > kLimit) return invalid();
  }
  if (negative) return Duration(static_cast<std::int64_t>(0 - total));
  if (total > kLimit - 1) return invalid();
  return Duration(static_cast<std::int64_t>(total));
}

std::string format_duration(Duration duration) {
  std::int64_t count = duration.count();
  if (count == 0) return "0s";
  std::uint64_t value =
      count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  std::string out = count < 0 ? "-" : "";
  if (value < 1'000) {
    append(out, value, "ns");
  } else if (value < 1'000'000) {
    append_fraction(out, value, 1'000);
    out += "\u00b5s";
  } else if (value < 1'000'000'000) {
    append_fraction(out, value, 1'000'000);
    out += "ms";
  } else {
    std::uint64_t hours = value / 3'600'000'000'000;
    std::uint64_t minutes = value / 60'000'000'000 % 60;
    if (hours > 0) append(out, hours, 'h');
    if (hours > 0 || minutes > 0) append(out, minutes, 'm');
    append_fraction(out, value % 60'000'000'000, 1'000'000'000);
    out += 's';
  }
  return out;
}

}  // namespace dibs
