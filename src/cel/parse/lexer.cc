#include "cel/parse/lexer.h"

#include <charconv>
#include <cmath>

#include "base/strings.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool starts_ident(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

class Lexer {
 public:
  Lexer(std::string_view source, std::vector<Issue>& issues) : source_(source), issues_(issues) {}

  std::vector<Token> run() {
    while (skip_blanks(), at_ < source_.size()) token();
    tokens_.push_back({TokenKind::end, position_, {}});
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  void skip_blanks() {
    while (at_ < source_.size()) {
      const char c = peek();
      if (c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r') {
        advance(1);
      } else if (c == '/' && peek(1) == '/') {
        std::size_t end = source_.find('\n', at_);
        if (end == std::string_view::npos) end = source_.size();
        advance(end - at_);
      } else {
        break;
      }
    }
  }

  void advance(std::size_t bytes) {
    position_ += static_cast<std::uint32_t>(code_points(source_.substr(at_, bytes)));
    at_ += bytes;
  }

  void emit(TokenKind kind, std::size_t length) {
    tokens_.push_back({kind, position_, source_.substr(at_, length)});
    advance(length);
  }

  /// After so many bytes the next character fits no token: all of them and that are skipped.
  void fail(std::size_t length) {
    std::size_t end = at_ + length;
    if (end < source_.size()) next_code_point(source_, end);
    issues_.push_back({position_, cat("Syntax error: token recognition error at: '",
                                      source_.substr(at_, end - at_), "'")});
    advance(end - at_);
  }

  void token() {
    const char c = peek();
    if (starts_ident(c)) {
      const std::size_t prefix = text_prefix();
      if (prefix > 0 && text(prefix)) return;
      std::size_t length = 1;
      while (starts_ident(peek(length)) || is_digit(peek(length))) ++length;
      const std::string_view word = source_.substr(at_, length);
      emit(word == "true"    ? TokenKind::kw_true
           : word == "false" ? TokenKind::kw_false
           : word == "null"  ? TokenKind::kw_null
           : word == "in"    ? TokenKind::kw_in
                             : TokenKind::ident,
           length);
      return;
    }
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') {
      text(0);
      return;
    }
    if (c == '`') {
      std::size_t length = 1;
      while (is_digit(peek(length)) || starts_ident(peek(length)) || peek(length) == '.' ||
             peek(length) == '-' || peek(length) == '/' || peek(length) == ' ')
        ++length;
      if (length == 1 || peek(length) != '`') return fail(length);
      emit(TokenKind::quoted_ident, length + 1);
      return;
    }
    for (const std::string_view two : {"==", "!=", "<=", ">=", "&&", "||"}) {
      if (source_.substr(at_, 2) == two) {
        emit(TokenKind::punctuation, 2);
        return;
      }
    }
    if (std::string_view("()[]{}.,:?+-*/%<>!").find(c) != std::string_view::npos) {
      emit(TokenKind::punctuation, 1);
      return;
    }
    fail(c == '&' || c == '|' || c == '=' ? 1 : 0);
  }

  void number() {
    std::size_t length = 0;
    TokenKind kind = TokenKind::integer;
    if (peek() == '0' && (peek(1) == 'x') && is_hex(peek(2))) {
      length = 2;
      while (is_hex(peek(length))) ++length;
    } else {
      while (is_digit(peek(length))) ++length;
      if (peek(length) == '.' && is_digit(peek(length + 1))) {
        kind = TokenKind::real;
        ++length;
        while (is_digit(peek(length))) ++length;
      }
      if (peek(length) == 'e' || peek(length) == 'E') {
        std::size_t exponent = length + 1;
        if (peek(exponent) == '+' || peek(exponent) == '-') ++exponent;
        if (is_digit(peek(exponent))) {
          kind = TokenKind::real;
          while (is_digit(peek(exponent))) ++exponent;
          length = exponent;
        }
      }
    }
    if (kind == TokenKind::integer && (peek(length) == 'u' || peek(length) == 'U')) {
      kind = TokenKind::uinteger;
      ++length;
    }
    emit(kind, length);
  }

  /// The length of b, r or br before a quote, 0 when this is no literal.
  std::size_t text_prefix() const {
    std::size_t length = 0;
    if (peek() == 'b' || peek() == 'B') ++length;
    if (peek(length) == 'r' || peek(length) == 'R') ++length;
    return length > 0 && (peek(length) == '"' || peek(length) == '\'') ? length : 0;
  }

  /// False when a literal with a prefix is none: then the prefix is a name.
  bool text(std::size_t prefix) {
    const bool bytes = prefix > 0 && (peek() == 'b' || peek() == 'B');
    const bool raw = prefix > 0 && (peek(prefix - 1) == 'r' || peek(prefix - 1) == 'R');
    const char quote = peek(prefix);
    const bool triple = peek(prefix + 1) == quote && peek(prefix + 2) == quote;
    std::size_t length = prefix + (triple ? 3 : 1);
    while (true) {
      if (at_ + length >= source_.size()) return no_text(prefix, triple, bytes, length);
      const char c = peek(length);
      if (c == quote && (!triple || (peek(length + 1) == quote && peek(length + 2) == quote)))
        break;
      if (!triple && (c == '\n' || c == '\r')) return no_text(prefix, triple, bytes, length);
      if (c == '\\' && !raw) {
        std::size_t matched = 1;
        const std::size_t escape = escape_length(length, matched);
        if (escape == 0) return no_text(prefix, triple, bytes, length + matched);
        length += escape;
      } else {
        ++length;
      }
    }
    emit(bytes ? TokenKind::bytes : TokenKind::string, length + (triple ? 3 : 1));
    return true;
  }

  /// The literal breaks off after so many bytes. Of three quotes two are a literal, an empty one.
  bool no_text(std::size_t prefix, bool triple, bool bytes, std::size_t length) {
    if (triple) {
      emit(bytes ? TokenKind::bytes : TokenKind::string, prefix + 2);
      return true;
    }
    if (prefix > 0) return false;
    fail(length);
    return true;
  }

  /// 0 when it is no escape; then so many of its bytes begin one.
  std::size_t escape_length(std::size_t from, std::size_t& matched) const {
    const char c = peek(from + 1);
    const auto hex = [&](std::size_t count) -> std::size_t {
      for (std::size_t i = 0; i < count; ++i) {
        if (is_hex(peek(from + 2 + i))) continue;
        matched = 2 + i;
        return 0;
      }
      return count + 2;
    };
    if (c != '\0' && std::string_view("\\?\"'`abfnrtv").find(c) != std::string_view::npos) return 2;
    if (c == 'x' || c == 'X') return hex(2);
    if (c == 'u') return hex(4);
    if (c == 'U') return hex(8);
    const auto octal = [&](std::size_t i) { return peek(i) >= '0' && peek(i) <= '7'; };
    if (c < '0' || c > '3') return 0;
    if (octal(from + 2) && octal(from + 3)) return 4;
    matched = octal(from + 2) ? 3 : 2;
    return 0;
  }

  std::string_view source_;
  std::vector<Issue>& issues_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::uint32_t position_ = 0;
};

char simple_escape(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return c;
  }
}

}  // namespace

std::vector<Token> tokenize(std::string_view source, std::vector<Issue>& issues) {
  return Lexer(source, issues).run();
}

bool parse_number(const Token& token, bool negative, Value& out, std::string& message) {
  std::string_view digits = token.text;
  if (token.kind == TokenKind::real) {
    double number = 0;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (end.ec == std::errc::result_out_of_range) {
      // Too large is an error, too small is zero.
      number = std::strtod(std::string(digits).c_str(), nullptr);
      if (std::isinf(number)) {
        message = "invalid double literal";
        return false;
      }
    }
    out = Value::real(negative ? -number : number);
    return true;
  }
  const bool is_unsigned = token.kind == TokenKind::uinteger;
  if (is_unsigned) digits.remove_suffix(1);
  const bool hex = digits.starts_with("0x");
  if (hex) digits.remove_prefix(2);
  std::uint64_t number = 0;
  const auto end =
      std::from_chars(digits.data(), digits.data() + digits.size(), number, hex ? 16 : 10);
  bool fits = end.ec == std::errc();
  if (!is_unsigned) fits = fits && number <= (std::uint64_t{1} << 63) - (negative ? 0 : 1);
  if (!fits) {
    message = is_unsigned ? "invalid uint literal" : "invalid int literal";
    return false;
  }
  out = is_unsigned ? Value::uinteger(number)
                    : Value::integer(static_cast<std::int64_t>(negative ? 0 - number : number));
  return true;
}

bool parse_text(const Token& token, Value& out, std::string& message) {
  std::string_view text = token.text;
  const bool bytes = token.kind == TokenKind::bytes;
  bool raw = false;
  while (text[0] != '"' && text[0] != '\'') {
    raw = raw || text[0] == 'r' || text[0] == 'R';
    text.remove_prefix(1);
  }
  const bool triple = text.size() >= 6 && text[1] == text[0] && text[2] == text[0];
  text = text.substr(triple ? 3 : 1, text.size() - (triple ? 6 : 2));

  std::string made;
  made.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\r') {
      made += '\n';
      i += i + 1 < text.size() && text[i + 1] == '\n' ? 2 : 1;
      continue;
    }
    if (text[i] != '\\' || raw) {
      made += text[i++];
      continue;
    }
    const char c = text[i + 1];
    const bool octal = c >= '0' && c <= '3';
    const std::size_t digits = octal                  ? 3
                               : c == 'x' || c == 'X' ? 2
                               : c == 'u'             ? 4
                               : c == 'U'             ? 8
                                                      : 0;
    if (digits == 0) {
      made += simple_escape(c);
      i += 2;
      continue;
    }
    if (bytes && (c == 'u' || c == 'U')) {
      message = "unable to unescape string";
      return false;
    }
    std::uint32_t code = 0;
    const char* begin = text.data() + i + (octal ? 1 : 2);
    std::from_chars(begin, begin + digits, code, octal ? 8 : 16);
    if (bytes) {
      made += static_cast<char>(code);
    } else if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      message = "invalid unicode code point";
      return false;
    } else {
      append_code_point(made, code);
    }
    i += digits + (octal ? 1 : 2);
  }
  out = bytes ? Value::bytes(std::move(made)) : Value::string(std::move(made));
  return true;
}

}  // namespace dibs::cel
