#pragma once
// Source text to tokens, and literals to values.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cel/parse/ast.h"
#include "cel/value.h"

namespace dibs::cel {

enum class TokenKind : std::uint8_t {
  end,
  ident,
  quoted_ident,
  integer,
  uinteger,
  real,
  string,
  bytes,
  kw_true,
  kw_false,
  kw_null,
  kw_in,
  punctuation
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::uint32_t position = 0;  // in code points
  std::string_view text;       // as written
};

/// Ends with a token of kind end. Characters that belong to no token are told of and skipped.
std::vector<Token> tokenize(std::string_view source, std::vector<Issue>& issues);

/// False, with the message to show, when a literal means nothing.
bool parse_number(const Token& token, bool negative, Value& out, std::string& message);
bool parse_text(const Token& token, Value& out, std::string& message);

}  // namespace dibs::cel
