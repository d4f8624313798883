#pragma once
// A JSON parser that does in every case what Go's encoding/json does, with its messages. It is the
// slow one: it runs when the fast parser refuses a text or meets a key twice. Of the json library
// alone.

#include "base/result.h"
#include "json/parse.h"

namespace dibs::json {

Result<Value> parse_as_go(std::string_view text, const ParseOptions& options);

/// Appends a code point as UTF-8; U+FFFD for what is none.
void append_utf8(std::string& out, std::uint32_t code_point);
/// The length of the UTF-8 sequence at the start of a text that is not empty; 0 when there is none.
std::size_t utf8_length(std::string_view text);

}  // namespace dibs::json
