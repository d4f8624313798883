#pragma once
// JSON text to Value and back.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::json {

struct ParseOptions {
  /// Where it is set, keys that occur twice are noted here as paths ("spec.replicas", "data.k",
  /// "spec.containers[0].name"), each once, in the order of the text, at most 100; the values merge
  /// as Go's decoder does into a struct or map: later scalars and lists replace earlier ones, two
  /// objects unite.
  std::vector<std::string>* duplicates = nullptr;
  /// For every entry of `duplicates`: how many members, counted over the whole text and each once,
  /// stood before it. A walk through the tree that counts members can so tell what came first.
  std::vector<std::size_t>* duplicate_places = nullptr;
  std::size_t max_depth = 10000;
};

/// The whole text is one JSON value. Errors are bad_request with Go's words where users see them:
/// "unexpected end of JSON input", "invalid character 'x' looking for beginning of value", ….
/// As Go, what is not UTF-8 in a string and escapes of single surrogates become U+FFFD.
Result<Value> parse(std::string_view text, const ParseOptions& options = {});

/// Compact; object members in their order. As Go: U+2028 and U+2029 are always escaped; <, > and &
/// are written as \u003c … only when `escape_html`.
std::string write(const Value& value, bool escape_html = false);
void write_to(std::string& out, const Value& value, bool escape_html = false);
/// Indented by two blanks, as kubectl and `pretty=true` show it; keys stay in order.
std::string write_pretty(const Value& value, bool escape_html = false);
/// A JSON string literal of the text.
void write_string(std::string& out, std::string_view text, bool escape_html = false);

}  // namespace dibs::json
