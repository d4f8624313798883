#include <re2/re2.h>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"
#include "cel/regex.h"

namespace dibs::cel {

namespace {

Value bad_pattern(std::string_view message) {
  return Value::error(cat("Illegal regex: ", message));
}

Value find(const Value* arguments, std::size_t) {
  std::string message;
  const re2::RE2* pattern = find_pattern(arguments[1].text(), message);
  if (pattern == nullptr) return bad_pattern(message);
  const std::string_view text = arguments[0].text();
  re2::StringPiece match;
  const re2::StringPiece subject(text.data(), text.size());
  if (!pattern->Match(subject, 0, text.size(), re2::RE2::UNANCHORED, &match, 1))
    return Value::borrow("");
  return arguments[0].piece({match.data(), match.size()});
}

/// An empty match right behind the match before it does not count.
Value find_all(const Value* arguments, std::size_t count) {
  std::string message;
  const re2::RE2* pattern = find_pattern(arguments[1].text(), message);
  if (pattern == nullptr) return bad_pattern(message);
  const std::int64_t limit = count > 2 ? arguments[2].as_integer() : -1;
  const std::string_view text = arguments[0].text();
  const re2::StringPiece subject(text.data(), text.size());
  std::vector<Value> found;
  std::size_t at = 0;
  std::size_t last_end = std::string_view::npos;
  while (at <= text.size() && (limit < 0 || static_cast<std::int64_t>(found.size()) < limit)) {
    re2::StringPiece match;
    if (!pattern->Match(subject, at, text.size(), re2::RE2::UNANCHORED, &match, 1)) break;
    const auto begin = static_cast<std::size_t>(match.data() - text.data());
    const std::size_t end = begin + match.size();
    if (!(match.empty() && begin == last_end))
      found.push_back(arguments[0].piece(text.substr(begin, match.size())));
    last_end = end;
    at = end;
    if (match.empty()) {
      if (at >= text.size()) break;
      next_code_point(text, at);
    }
  }
  return Value::list(std::move(found));
}

}  // namespace

void add_regex(Environment& environment) {
  environment.function("find", {{".string, string -> string", find, cost_match}});
  environment.function("findAll", {{".string, string -> list(string)", find_all, cost_match},
                                   {".string, string, int -> list(string)", find_all, cost_match}});
}

}  // namespace dibs::cel
