#include "cel/regex.h"

#include <re2/re2.h>

#include <memory>
#include <unordered_map>

#include "base/strings.h"

namespace dibs::cel {

namespace {

constexpr std::size_t kKept = 128;

struct Hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

std::string go_message(const re2::RE2& pattern, std::string_view source) {
  const std::string& argument = pattern.error_arg();
  const std::string_view shown = argument.empty() ? source : std::string_view(argument);
  const auto text = [&](std::string_view words) {
    return cat("error parsing regexp: ", words, ": `", shown, "`");
  };
  switch (pattern.error_code()) {
    case re2::RE2::ErrorBadEscape:
      return text("invalid escape sequence");
    case re2::RE2::ErrorBadCharClass:
      return text("invalid character class");
    case re2::RE2::ErrorBadCharRange:
      return text("invalid character class range");
    case re2::RE2::ErrorMissingBracket:
      return text("missing closing ]");
    case re2::RE2::ErrorMissingParen:
      return cat("error parsing regexp: missing closing ): `", source, "`");
    case re2::RE2::ErrorUnexpectedParen:
      return cat("error parsing regexp: unexpected ): `", source, "`");
    case re2::RE2::ErrorTrailingBackslash:
      return "error parsing regexp: trailing backslash at end of expression: ``";
    case re2::RE2::ErrorRepeatArgument:
      return text("missing argument to repetition operator");
    case re2::RE2::ErrorRepeatSize:
      return text("invalid repeat count");
    case re2::RE2::ErrorRepeatOp:
      return text("invalid nested repetition operator");
    case re2::RE2::ErrorBadPerlOp:
      return text("invalid or unsupported Perl syntax");
    case re2::RE2::ErrorBadUTF8:
      return text("invalid UTF-8");
    case re2::RE2::ErrorBadNamedCapture:
      return text("invalid named capture");
    default:
      return text("expression too large");
  }
}

/// \C, a single byte, is the one thing that RE2 knows and Go does not.
bool has_byte_class(std::string_view pattern) {
  bool quoted = false;
  for (std::size_t i = 0; i + 1 < pattern.size(); ++i) {
    if (pattern[i] != '\\') continue;
    const char next = pattern[++i];
    if (next == 'Q') quoted = true;
    if (next == 'E') quoted = false;
    if (next == 'C' && !quoted) return true;
  }
  return false;
}

}  // namespace

const re2::RE2* find_pattern(std::string_view pattern, std::string& message) {
  thread_local std::unordered_map<std::string, std::unique_ptr<re2::RE2>, Hash, std::equal_to<>>
      kept;
  const auto found = kept.find(pattern);
  if (found != kept.end()) return found->second.get();
  if (has_byte_class(pattern)) {
    message = "error parsing regexp: invalid escape sequence: `\\C`";
    return nullptr;
  }
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto made = std::make_unique<re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!made->ok()) {
    message = go_message(*made, pattern);
    return nullptr;
  }
  if (kept.size() >= kKept) kept.clear();
  return kept.emplace(std::string(pattern), std::move(made)).first->second.get();
}

}  // namespace dibs::cel
