#include "node/pods/env_file.h"

#include "base/strings.h"

namespace dibs::node {
namespace {

Error broken(std::size_t line, std::string_view why) {
  return Error::invalid(cat("invalid environment variable format at line ", line, ": ", why));
}

std::string_view skip_blanks(std::string_view text) {
  const auto at = text.find_first_not_of(" \t");
  return at == std::string_view::npos ? std::string_view() : text.substr(at);
}

/// Takes a line off the front of the text.
std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

}  // namespace

Result<std::optional<std::string>> env_file_value(std::string_view text, std::string_view key) {
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view from = text;
    ++number;
    const std::string_view line = skip_blanks(next_line(text));
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) return broken(number, "missing '='");
    const std::string_view name = line.substr(0, equals);
    if (trim(name).empty()) return broken(number, "empty variable name");
    if (name.find_first_of(" \t") != std::string_view::npos) {
      return broken(number, "whitespace before '=' is not allowed");
    }
    std::string_view value = line.substr(equals + 1);
    std::string found;
    // A blank after "=" ends the assignment, as a shell reads it.
    if (!value.empty() && value.front() != ' ' && value.front() != '\t') {
      if (value.front() != '\'') return broken(number, "value must be enclosed in single quotes");
      const auto open = static_cast<std::size_t>(value.data() - from.data()) + 1;
      const auto close = from.find('\'', open);
      if (close == std::string_view::npos) return broken(number, "unclosed single quote");
      found = from.substr(open, close - open);
      for (const char c : found) number += c == '\n' ? 1 : 0;
      text = from.substr(close + 1);
      const std::string_view rest = skip_blanks(next_line(text));
      if (!rest.empty() && rest.front() != '#') {
        return broken(number, "unexpected content after closing quote");
      }
    }
    if (name == key) return std::optional<std::string>(std::move(found));
  }
  return std::optional<std::string>();
}

}  // namespace dibs::node
