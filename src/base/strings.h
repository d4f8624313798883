#pragma once
// Small string helpers. cat() is the way to build messages: cheap to compile, no format string.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dibs {

namespace internal {
inline void append_piece(std::string& out, std::string_view text) { out.append(text); }
inline void append_piece(std::string& out, const char* text) { out.append(text); }
inline void append_piece(std::string& out, const std::string& text) { out.append(text); }
inline void append_piece(std::string& out, char c) { out.push_back(c); }
inline void append_piece(std::string& out, bool b) { out.append(b ? "true" : "false"); }
template <typename T>
requires std::is_integral_v<T>
void append_piece(std::string& out, T number) { out.append(std::to_string(number)); }
}  // namespace internal

/// Concatenates strings, characters, integers and booleans.
template <typename... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string out;
  (internal::append_piece(out, pieces), ...);
  return out;
}

template <typename... Pieces>
void append(std::string& out, const Pieces&... pieces) {
  (internal::append_piece(out, pieces), ...);
}

/// Splits at every separator; an empty text gives one empty piece.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& pieces, std::string_view separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
bool equals_ignoring_case(std::string_view a, std::string_view b);

/// As Go's %q: double quotes, escapes for control characters, invalid UTF-8 as \xNN.
std::string quoted(std::string_view text);
// Where <iomanip> is included, std::quoted would be the better match for these two.
inline std::string quoted(const std::string& text) { return quoted(std::string_view(text)); }
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }

bool is_valid_utf8(std::string_view text);
/// With U+FFFD in place of each byte that belongs to no character, as Go's JSON does it.
std::string mend_utf8(std::string_view text);

std::string base64_encode(std::string_view bytes);
std::string base64url_encode(std::string_view bytes);  // no padding
/// Standard alphabet with padding; line breaks are skipped as Go does. False on anything else.
bool base64_decode(std::string_view text, std::string& bytes);
bool base64url_decode(std::string_view text, std::string& bytes);  // no padding
std::string hex_encode(std::string_view bytes);

/// Decodes %XX, and + as a blank when `plus_is_space`. False on a broken escape.
bool percent_decode(std::string_view text, bool plus_is_space, std::string& out);
std::string percent_encode(std::string_view text);

}  // namespace dibs
