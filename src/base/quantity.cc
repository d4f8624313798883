#include "base/quantity.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/strings.h"

namespace dibs {

__extension__ using Wide = unsigned __int128;

/// The slow but unbounded form: ± digits * 10^exponent, digits without leading zeros, "" is zero.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  static Decimal of(const Quantity& q) {
    if (!q.digits_.empty()) return {q.value_ < 0, q.digits_, q.scale_};
    if (q.value_ == 0) return {};
    std::uint64_t magnitude = q.value_ < 0 ? 0 - static_cast<std::uint64_t>(q.value_)
                                           : static_cast<std::uint64_t>(q.value_);
    return {q.value_ < 0, std::to_string(magnitude), q.scale_};
  }

  void store(Quantity& q) const {
    if (exponent > std::numeric_limits<std::int32_t>::max()) {
      Decimal longer = *this;
      longer.lower_exponent(std::numeric_limits<std::int32_t>::max());
      return longer.store(q);
    }
    q.text_.clear();
    q.digits_.clear();
    q.scale_ = static_cast<std::int32_t>(exponent);
    if (digits.empty()) {
      q.value_ = 0;
      q.scale_ = 0;
      return;
    }
    std::int64_t number = 0;
    std::string signed_digits = (negative ? "-" : "") + digits;
    auto end = signed_digits.data() + signed_digits.size();
    auto parsed = std::from_chars(signed_digits.data(), end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end) {
      q.value_ = number;
    } else {
      q.value_ = negative ? -1 : 1;
      q.digits_ = digits;
    }
  }

  void normalize() {
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    while (!digits.empty() && digits.back() == '0') {
      digits.pop_back();
      ++exponent;
    }
    if (digits.empty()) {
      exponent = 0;
      negative = false;
    }
  }

  /// The same number with zeros in place of an exponent above `most`.
  void lower_exponent(std::int64_t most) {
    if (exponent <= most) return;
    digits.append(static_cast<std::size_t>(exponent - most), '0');
    exponent = most;
  }

  /// Away from zero to a multiple of 10^least.
  void round_away(std::int64_t least) {
    if (digits.empty() || exponent >= least) return;
    auto drop = static_cast<std::uint64_t>(least - exponent);
    bool inexact = true;
    if (drop >= digits.size()) {
      digits.clear();
    } else {
      inexact = digits.find_first_not_of('0', digits.size() - drop) != std::string::npos;
      digits.resize(digits.size() - drop);
    }
    exponent = least;
    if (inexact) increment();
  }

  void increment() {
    for (std::size_t i = digits.size(); i-- > 0;) {
      if (digits[i] != '9') {
        ++digits[i];
        return;
      }
      digits[i] = '0';
    }
    digits.insert(0, 1, '1');
  }

  void multiply(std::uint64_t factor) {
    Wide carry = 0;
    for (std::size_t i = digits.size(); i-- > 0;) {
      carry += static_cast<Wide>(digits[i] - '0') * factor;
      digits[i] = static_cast<char>('0' + static_cast<int>(carry % 10));
      carry /= 10;
    }
    for (; carry > 0; carry /= 10) {
      digits.insert(0, 1, static_cast<char>('0' + static_cast<int>(carry % 10)));
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  }

  /// Divides an integer (exponent 0) by a small number; returns the remainder.
  std::uint32_t divide(std::uint32_t divisor) {
    std::uint64_t rest = 0;
    for (char& c : digits) {
      rest = rest * 10 + static_cast<std::uint64_t>(c - '0');
      c = static_cast<char>('0' + rest / divisor);
      rest %= divisor;
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    return static_cast<std::uint32_t>(rest);
  }

  static int compare_magnitudes(const Decimal& a, const Decimal& b) {
    if (a.digits.empty() || b.digits.empty()) {
      return static_cast<int>(!a.digits.empty()) - static_cast<int>(!b.digits.empty());
    }
    std::int64_t top_a = a.exponent + static_cast<std::int64_t>(a.digits.size());
    std::int64_t top_b = b.exponent + static_cast<std::int64_t>(b.digits.size());
    if (top_a != top_b) return top_a < top_b ? -1 : 1;
    std::size_t longest = std::max(a.digits.size(), b.digits.size());
    for (std::size_t i = 0; i < longest; ++i) {
      char x = i < a.digits.size() ? a.digits[i] : '0';
      char y = i < b.digits.size() ? b.digits[i] : '0';
      if (x != y) return x < y ? -1 : 1;
    }
    return 0;
  }

  static Decimal sum(Decimal a, Decimal b) {
    constexpr std::int64_t kFarApart = 100'000;
    if (a.digits.empty()) return b;
    if (b.digits.empty()) return a;
    if (a.exponent - b.exponent > kFarApart || b.exponent - a.exponent > kFarApart) {
      return compare_magnitudes(a, b) >= 0 ? a : b;
    }
    std::int64_t exponent = std::min(a.exponent, b.exponent);
    a.digits.append(static_cast<std::size_t>(a.exponent - exponent), '0');
    b.digits.append(static_cast<std::size_t>(b.exponent - exponent), '0');
    a.exponent = b.exponent = exponent;
    if (compare_magnitudes(a, b) < 0) std::swap(a, b);
    int factor = a.negative == b.negative ? 1 : -1;
    int carry = 0;
    for (std::size_t i = 0; i < a.digits.size(); ++i) {
      char& digit = a.digits[a.digits.size() - 1 - i];
      int other = i < b.digits.size() ? b.digits[b.digits.size() - 1 - i] - '0' : 0;
      int total = digit - '0' + factor * other + carry;
      carry = total < 0 ? -1 : total / 10;
      digit = static_cast<char>('0' + (total + 10) % 10);
    }
    if (carry > 0) a.digits.insert(0, 1, '1');
    a.normalize();
    return a;
  }
};

namespace {

using Format = Quantity::Format;

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMostZeros = 1000;
/// That can be read back: the largest multiple of three within int32.
constexpr std::int64_t kLargestExponent = 2'147'483'646;

Error wrong_format() {
  return Error::bad_request(
      "quantities must match the regular expression "
      "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

Error wrong_suffix() { return Error::bad_request("unable to parse quantity's suffix"); }

struct Suffix {
  std::string_view text;
  int exponent;
};
constexpr Suffix kDecimal[] = {{"n", -9}, {"u", -6}, {"m", -3}, {"", 0},   {"k", 3},
                               {"M", 6},  {"G", 9},  {"T", 12}, {"P", 15}, {"E", 18}};
constexpr Suffix kBinary[] = {{"", 0},    {"Ki", 10}, {"Mi", 20}, {"Gi", 30},
                              {"Ti", 40}, {"Pi", 50}, {"Ei", 60}};

struct Parts {
  bool negative = false;
  std::string_view whole;  // without leading zeros, "0" for none
  std::string_view fraction;
  std::string_view suffix;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// More lenient than the regular expression its error names: digits may be missing, as in "." and
// "Ki".
bool split_parts(std::string_view text, Parts& parts) {
  std::size_t at = 0;
  if (text[0] == '-' || text[0] == '+') {
    parts.negative = text[0] == '-';
    ++at;
  }
  while (at < text.size() && text[at] == '0') ++at;
  std::size_t end = skip_digits(text, at);
  parts.whole = end > at ? text.substr(at, end - at) : std::string_view("0");
  at = end;
  if (at < text.size() && text[at] == '.') {
    end = skip_digits(text, at + 1);
    parts.fraction = text.substr(at + 1, end - at - 1);
    at = end;
  }
  parts.suffix = text.substr(at);
  constexpr std::string_view kLetters = "eEinumkKMGTP";
  while (at < text.size() && kLetters.find(text[at]) != std::string_view::npos) ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  return skip_digits(text, at) == text.size();
}

struct Unit {
  Format format = Format::decimal_si;
  std::int32_t exponent = 0;  // of 10, or of 2 for binary_si
};

bool read_suffix(std::string_view text, Unit& unit) {
  for (const Suffix& suffix : kDecimal) {
    if (suffix.text == text) {
      unit = {Format::decimal_si, suffix.exponent};
      return true;
    }
  }
  for (const Suffix& suffix : kBinary) {
    if (suffix.text == text) {
      unit = {Format::binary_si, suffix.exponent};
      return true;
    }
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  std::string_view digits = text.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  std::int64_t exponent = 0;
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return false;
  unit = {Format::decimal_exponent, static_cast<std::int32_t>(exponent)};
  return true;
}

bool is_kept(const Unit& unit, std::int64_t number, std::int32_t scale, std::string_view digits) {
  if (unit.format == Format::binary_si) return (number & 7) != 0;
  return scale % 3 == 0 && !digits.ends_with("000") && digits[0] != '0';
}

}  // namespace

Result<Quantity> Quantity::parse(std::string_view text) {
  if (text.empty()) return wrong_format();
  Parts parts;
  if (!split_parts(text, parts)) return wrong_format();
  Unit unit;
  if (!read_suffix(parts.suffix, unit)) return wrong_suffix();
  bool binary = unit.format == Format::binary_si;
  std::string digits = cat(parts.whole, parts.fraction);
  auto fraction_size = static_cast<std::int32_t>(parts.fraction.size());

  // Which numbers count as small decides which spellings are kept, so the bounds are the API's.
  std::int64_t scale = binary ? 0 : static_cast<std::int64_t>(unit.exponent) - fraction_size;
  bool small = binary ? parts.fraction.empty() &&
                            15 - static_cast<int>(digits.size()) - unit.exponent * 3 / 10 - 1 >= 0
                      : digits.size() <= 18 && scale >= -9;
  if (small) {
    std::int64_t number = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), number);
    Quantity q(binary ? number << unit.exponent : number, static_cast<std::int32_t>(scale),
               unit.format);
    if (parts.negative) q.value_ = -q.value_;
    if (text == "0" || is_kept(unit, number, q.scale_, digits)) q.text_ = text;
    if (q.value_ == 0) q.scale_ = 0;
    return q;
  }

  Decimal amount{parts.negative, digits, -static_cast<std::int64_t>(fraction_size)};
  if (binary) {
    amount.multiply(1ULL << unit.exponent);
  } else {
    amount.exponent += unit.exponent;
  }
  amount.normalize();
  amount.round_away(-9);
  if (binary) {
    Decimal most{false, std::to_string(kMax), 0};
    if (Decimal::compare_magnitudes(amount, most) > 0) {
      amount.digits = most.digits;
      amount.exponent = 0;
    }
    if (Decimal::compare_magnitudes(amount, {false, "1", 0}) < 0 && !amount.digits.empty()) {
      unit.format = Format::decimal_si;
    }
  }
  Quantity q(0, 0, unit.format);
  amount.store(q);
  return q;
}

std::string Quantity::canonical() const {
  if (is_zero()) return "0";
  Decimal amount = Decimal::of(*this);
  amount.normalize();
  std::string sign = amount.negative ? "-" : "";
  // A sum may have taken this format and the other's exponent; so many zeros are nobody's to write.
  if (format_ == Format::binary_si && amount.exponent >= 0 && amount.exponent <= kMostZeros &&
      Decimal::compare_magnitudes(amount, {false, "1024", 0}) >= 0) {
    amount.digits.append(static_cast<std::size_t>(amount.exponent), '0');
    std::size_t steps = 0;
    while (steps + 1 < std::size(kBinary)) {
      Decimal smaller = amount;
      if (smaller.divide(1024) != 0) break;
      amount = smaller;
      ++steps;
    }
    return cat(sign, amount.digits, kBinary[steps].text);
  }
  amount.lower_exponent(kLargestExponent);
  std::int64_t shift = ((amount.exponent % 3) + 3) % 3;
  amount.digits.append(static_cast<std::size_t>(shift), '0');
  std::int64_t exponent = amount.exponent - shift;
  if (format_ != Format::decimal_exponent) {
    for (const Suffix& suffix : kDecimal) {
      if (suffix.exponent == exponent) return cat(sign, amount.digits, suffix.text);
    }
  }
  return exponent == 0 ? cat(sign, amount.digits) : cat(sign, amount.digits, 'e', exponent);
}

std::int64_t Quantity::scaled_value(std::int32_t scale) const {
  if (digits_.empty() && scale_ == scale) return value_;
  Decimal amount = Decimal::of(*this);
  if (amount.digits.empty()) return 0;
  amount.round_away(scale);
  std::int64_t limit = amount.negative ? kMin : kMax;
  std::int64_t zeros = amount.exponent - scale;
  if (zeros + static_cast<std::int64_t>(amount.digits.size()) > 19) return limit;
  amount.digits.append(static_cast<std::size_t>(zeros), '0');
  if (amount.negative) amount.digits.insert(0, 1, '-');
  std::int64_t number = 0;
  auto parsed =
      std::from_chars(amount.digits.data(), amount.digits.data() + amount.digits.size(), number);
  return parsed.ec == std::errc() ? number : limit;
}

std::optional<std::int64_t> Quantity::exact() const {
  std::int64_t number = value();
  if (compare(Quantity(number)) != 0) return std::nullopt;
  return number;
}

double Quantity::approximate() const {
  double base = digits_.empty() ? static_cast<double>(value_)
                                : std::strtod(digits_.c_str(), nullptr) * (value_ < 0 ? -1 : 1);
  return scale_ == 0 ? base : base * std::pow(10.0, scale_);
}

void Quantity::add(const Quantity& other) {
  if (is_zero()) format_ = other.format_;
  std::int64_t total = 0;
  if (digits_.empty() && other.digits_.empty() && scale_ == other.scale_ &&
      !__builtin_add_overflow(value_, other.value_, &total)) {
    text_.clear();
    value_ = total;
    return;
  }
  Decimal::sum(Decimal::of(*this), Decimal::of(other)).store(*this);
}

void Quantity::subtract(const Quantity& other) {
  Quantity negative = other;
  negative.negate();
  add(negative);
}

void Quantity::negate() {
  Decimal amount = Decimal::of(*this);
  amount.negative = !amount.negative;
  amount.store(*this);
}

int Quantity::compare(const Quantity& other) const {
  if (sign() != other.sign()) return sign() < other.sign() ? -1 : 1;
  if (digits_.empty() && other.digits_.empty() && (scale_ == other.scale_ || value_ == 0)) {
    return value_ < other.value_ ? -1 : value_ > other.value_ ? 1 : 0;
  }
  int magnitude = Decimal::compare_magnitudes(Decimal::of(*this), Decimal::of(other));
  return sign() < 0 ? -magnitude : magnitude;
}

}  // namespace dibs
