#pragma once
// Classes of ASCII characters, whatever the locale.

namespace dibs {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_letter(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
constexpr bool is_lower_alphanumeric(char c) { return is_lower(c) || is_digit(c); }
constexpr bool is_alphanumeric(char c) { return is_letter(c) || is_digit(c); }
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

}  // namespace dibs
