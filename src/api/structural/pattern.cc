#include "api/structural/pattern.h"

#include <re2/re2.h>

#include <mutex>

#include "base/strings.h"

namespace dibs::api {
namespace {

RE2::Options quiet() {
  RE2::Options options;
  options.set_log_errors(false);
  return options;
}

/// Go takes (?<name>…) for a named group, this RE2 only (?P<name>…).
std::string in_re2_spelling(std::string_view text) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      ++i;
      continue;
    }
    if (text[i] == '[') in_class = true;
    if (text[i] == ']') in_class = false;
    if (!in_class && text.substr(i).starts_with("(?<")) {
      out.append("(?P<");
      i += 2;
      continue;
    }
    out.push_back(text[i]);
  }
  return out;
}

std::string_view go_words(RE2::ErrorCode code) {
  switch (code) {
    case RE2::ErrorBadEscape:
      return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
      return "invalid character class";
    case RE2::ErrorBadCharRange:
      return "invalid character class range";
    case RE2::ErrorMissingBracket:
      return "missing closing ]";
    case RE2::ErrorMissingParen:
      return "missing closing )";
    case RE2::ErrorUnexpectedParen:
      return "unexpected )";
    case RE2::ErrorTrailingBackslash:
      return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
      return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
      return "invalid repeat count";
    case RE2::ErrorRepeatOp:
      return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
      return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
      return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
      return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
      return "expression too large";
    default:
      return "regexp/syntax: internal error";
  }
}

}  // namespace

struct Pattern::Compiled {
  std::once_flag once;
  std::unique_ptr<RE2> expression;
};

Pattern::Pattern(std::string text)
    : text_(std::move(text)), compiled_(std::make_unique<Compiled>()) {}
Pattern::~Pattern() = default;

bool Pattern::occurs_in(std::string_view value) const {
  std::call_once(compiled_->once, [this] {
    compiled_->expression = std::make_unique<RE2>(in_re2_spelling(text_), quiet());
  });
  if (!compiled_->expression->ok()) return false;
  return RE2::PartialMatch(re2::StringPiece(value.data(), value.size()), *compiled_->expression);
}

std::string Pattern::fault_of(const std::string& text) {
  const RE2 expression(in_re2_spelling(text), quiet());
  if (expression.ok()) return "";
  std::string culprit = expression.error_arg();
  // For the faults that concern the whole, both quote the whole; ours has been respelled.
  if (culprit == in_re2_spelling(text)) culprit = text;
  return cat("error parsing regexp: ", go_words(expression.error_code()), ": `", culprit, "`");
}

}  // namespace dibs::api
