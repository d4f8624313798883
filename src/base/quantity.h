#pragma once
// Amounts of a resource as the API spells them: "500m", "1Gi", "1e3", "0.5".
//
// A Quantity is an exact decimal number together with the family of suffixes it was written in,
// which is kept when it is written again. Parsing rounds away from zero to billionths; an amount
// with a binary suffix is capped at 2^63-1, others are not bounded.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs {

class Quantity {
 public:
  enum class Format : std::uint8_t { decimal_si, binary_si, decimal_exponent };

  /// Zero.
  Quantity() = default;
  /// value * 10^scale.
  explicit Quantity(std::int64_t value, std::int32_t scale = 0, Format format = Format::decimal_si)
      : value_(value), scale_(scale), format_(format) {}

  /// Errors are bad_request with the messages of the API.
  static Result<Quantity> parse(std::string_view text);

  /// What the API shows. The text that was parsed stays as it is where the API deems it canonical
  /// ("1.500", "+1" and "1E3" are kept); everything else is canonical().
  std::string str() const { return text_.empty() ? canonical() : text_; }
  /// No fraction, the largest suffix that loses nothing.
  std::string canonical() const;
  Format format() const { return format_; }

  int sign() const { return value_ > 0 ? 1 : value_ < 0 ? -1 : 0; }
  bool is_zero() const { return value_ == 0; }

  // Rounded away from zero, and saturated at the bounds of int64.
  std::int64_t value() const { return scaled_value(0); }
  std::int64_t milli_value() const { return scaled_value(-3); }
  /// In units of 10^scale.
  std::int64_t scaled_value(std::int32_t scale) const;
  /// The exact number, if it is an integer within int64.
  std::optional<std::int64_t> exact() const;
  double approximate() const;

  // A zero takes over the format of the other operand. Operands more than 100,000 decimal places
  // apart give the larger one alone.
  void add(const Quantity& other);
  void subtract(const Quantity& other);
  void negate();

  /// -1, 0, 1 by amount; the spelling does not count.
  int compare(const Quantity& other) const;
  friend bool operator==(const Quantity& a, const Quantity& b) { return a.compare(b) == 0; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.compare(b) <=> 0;
  }

 private:
  friend struct Decimal;

  /// The number is value_ * 10^scale_, or, where digits_ is not empty, digits_ * 10^scale_ with the
  /// sign of value_.
  std::int64_t value_ = 0;
  std::int32_t scale_ = 0;
  Format format_ = Format::decimal_si;
  std::string digits_;
  std::string text_;
};

}  // namespace dibs
