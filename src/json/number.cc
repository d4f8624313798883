#include "json/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace dibs::json {
namespace {

// 0.d1d2d3… times ten to the power of `point`.
struct Decimal {
  bool negative = false;
  char digits[24];
  int count = 0;
  int point = 0;

  template <typename Real>
  explicit Decimal(Real number) {
    char text[40];
    char* end = std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
    const char* at = text;
    if (*at == '-') {
      negative = true;
      ++at;
    }
    for (; *at != 'e'; ++at) {
      if (*at != '.') digits[count++] = *at;
    }
    ++at;
    std::from_chars(*at == '+' ? at + 1 : at, end, point);
    ++point;
  }

  int exponent() const { return point - 1; }

  void append_plain(std::string& out) const {
    if (negative) out.push_back('-');
    if (point <= 0) {
      out.append("0.");
      out.append(static_cast<std::size_t>(-point), '0');
      out.append(digits, static_cast<std::size_t>(count));
      return;
    }
    const int whole = std::min(point, count);
    out.append(digits, static_cast<std::size_t>(whole));
    out.append(static_cast<std::size_t>(point - whole), '0');
    if (count > whole) {
      out.push_back('.');
      out.append(digits + whole, static_cast<std::size_t>(count - whole));
    }
  }

  void append_with_exponent(std::string& out, bool two_digits) const {
    if (negative) out.push_back('-');
    out.push_back(digits[0]);
    if (count > 1) {
      out.push_back('.');
      out.append(digits + 1, static_cast<std::size_t>(count - 1));
    }
    const int size = std::abs(exponent());
    out.append(exponent() < 0 ? "e-" : "e+");
    if (two_digits && size < 10) out.push_back('0');
    out.append(std::to_string(size));
  }
};

// Of a number that no double holds: whether it is beyond all of them, not too close to zero.
bool is_too_large(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  const std::string_view digits = number.substr(0, e);
  long exponent = 0;
  if (e != std::string_view::npos) {
    std::string_view written = number.substr(e + 1);
    if (written.front() == '+') written.remove_prefix(1);
    const char* end = written.data() + written.size();
    if (std::from_chars(written.data(), end, exponent).ec != std::errc()) {
      return written.front() != '-';
    }
  }
  const std::size_t point = std::min(digits.find('.'), digits.size());
  const std::size_t first = std::min(digits.find_first_of("123456789"), digits.size());
  return exponent > static_cast<long>(first) - static_cast<long>(point);
}

}  // namespace

bool to_double(std::string_view number, double& out) {
  if (!number.empty() && number.front() == '+') number.remove_prefix(1);
  out = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), out);
  if (read.ec != std::errc::result_out_of_range) return read.ec == std::errc();
  const bool negative = number.front() == '-';
  if (negative) number.remove_prefix(1);
  out = negative ? -0.0 : 0.0;
  return !is_too_large(number);
}

void append_json_double(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out.append("null");
    return;
  }
  const Decimal decimal(number);
  if (number != 0 && (decimal.exponent() < -6 || decimal.exponent() >= 21)) {
    decimal.append_with_exponent(out, false);
  } else {
    decimal.append_plain(out);
  }
}

void append_short_double(std::string& out, double number, bool single) {
  if (!std::isfinite(number)) {
    out.append(std::isnan(number) ? "NaN" : number < 0 ? "-Inf" : "+Inf");
    return;
  }
  if (single && std::fabs(number) > 3.4028235677973366e38) {
    out.append(number < 0 ? "-Inf" : "+Inf");
    return;
  }
  const Decimal decimal = single ? Decimal(static_cast<float>(number)) : Decimal(number);
  const bool zero = decimal.digits[0] == '0';
  if (!zero && (decimal.exponent() < -4 || decimal.exponent() >= 6)) {
    decimal.append_with_exponent(out, true);
  } else {
    decimal.append_plain(out);
  }
}

}  // namespace dibs::json
