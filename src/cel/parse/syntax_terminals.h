#pragma once
// The tokens of the grammar as the reference implementation's generated parser knows them: their
// names and order are visible in its messages. For syntax_errors.cc alone.

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "cel/parse/lexer.h"

namespace dibs::cel {

/// In the order of the generated lexer.
enum Terminal : int {
  kEnd,
  kEquals,
  kNotEquals,
  kIn,
  kLess,
  kLessEquals,
  kGreaterEquals,
  kGreater,
  kAnd,
  kOr,
  kOpenBracket,
  kCloseBracket,
  kOpenBrace,
  kCloseBrace,
  kOpenParen,
  kCloseParen,
  kDot,
  kComma,
  kMinus,
  kNot,
  kQuestion,
  kColon,
  kPlus,
  kStar,
  kSlash,
  kPercent,
  kTrue,
  kFalse,
  kNull,
  kFloat,
  kInt,
  kUint,
  kString,
  kBytes,
  kIdent,
  kQuotedIdent,
  kTerminals
};

inline constexpr std::string_view kTerminalNames[kTerminals] = {
    "<EOF>",  "'=='",  "'!='",       "'in'",          "'<'",    "'<='",      "'>='",    "'>'",
    "'&&'",   "'||'",  "'['",        "']'",           "'{'",    "'}'",       "'('",     "')'",
    "'.'",    "','",   "'-'",        "'!'",           "'?'",    "':'",       "'+'",     "'*'",
    "'/'",    "'%'",   "'true'",     "'false'",       "'null'", "NUM_FLOAT", "NUM_INT", "NUM_UINT",
    "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER"};

using Set = std::uint64_t;

constexpr Set set(std::initializer_list<Terminal> terminals) {
  Set made = 0;
  for (const Terminal terminal : terminals) made |= Set{1} << terminal;
  return made;
}
inline bool has(Set set, Terminal terminal) { return (set >> terminal & 1) != 0; }

inline constexpr Set kRelations =
    set({kEquals, kNotEquals, kIn, kLess, kLessEquals, kGreaterEquals, kGreater});
inline constexpr Set kProducts = set({kStar, kSlash, kPercent});
inline constexpr Set kSums = set({kPlus, kMinus});
/// What a primary begins with, and what an expression does.
inline constexpr Set kPrimaries =
    set({kOpenBracket, kOpenBrace, kOpenParen, kDot, kMinus, kTrue, kFalse, kNull, kFloat, kInt,
         kUint, kString, kBytes, kIdent});
inline constexpr Set kExpressions = kPrimaries | set({kNot});
inline constexpr Set kElements = kExpressions | set({kQuestion});
inline constexpr Set kFields = set({kQuestion, kIdent, kQuotedIdent});

Terminal terminal_of(const Token& token);

}  // namespace dibs::cel
