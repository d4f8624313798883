#include <algorithm>

#include "api/merge/selectors.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

// At commas that have no backslash before them.
std::vector<std::string_view> split_terms(std::string_view text) {
  std::vector<std::string_view> terms;
  std::size_t begin = 0;
  bool escaped = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (escaped) {
      escaped = false;
    } else if (text[i] == '\\') {
      escaped = true;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  terms.push_back(text.substr(begin));
  return terms;
}

// The whole of the UTF-8 character that begins here, for a message.
std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return text.substr(at, end - at);
}

Result<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ',' || c == '=') {
      // The code point stands in the message as a number, upstream too.
      return Error::bad_request(
          cat("invalid field selector: unescaped character in value: ", static_cast<int>(c)));
    }
    if (c != '\\') {
      out.push_back(c);
      continue;
    }
    ++i;
    if (i < text.size() && (text[i] == '\\' || text[i] == ',' || text[i] == '=')) {
      out.push_back(text[i]);
      continue;
    }
    return Error::bad_request(cat("invalid field selector: invalid escape sequence: \\",
                                  i < text.size() ? character_at(text, i) : std::string_view()));
  }
  return out;
}

}  // namespace

bool FieldSelector::matches(
    const std::function<std::string_view(std::string_view field)>& value_of) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const FieldRequirement& r) {
    return (value_of(r.field) == r.value) == r.equal;
  });
}

std::optional<std::string> FieldSelector::exact(std::string_view field) const {
  for (const FieldRequirement& requirement : requirements_) {
    if (requirement.equal && requirement.field == field) return requirement.value;
  }
  return std::nullopt;
}

Result<FieldSelector> parse_field_selector(std::string_view text) {
  auto terms = split_terms(text);
  // Terms are judged in sorted order, which shows in which fault is told.
  std::sort(terms.begin(), terms.end());
  std::vector<FieldRequirement> requirements;
  for (const std::string_view term : terms) {
    if (term.empty()) continue;
    std::size_t at = 0;
    while (at < term.size() && term[at] != '=' && term.substr(at, 2) != "!=") ++at;
    if (at == term.size()) {
      return Error::bad_request(
          cat("invalid selector: '", text, "'; can't understand '", term, "'"));
    }
    const bool equal = term[at] == '=';
    const std::size_t length = term.substr(at, 2) == "==" || !equal ? 2 : 1;
    DIBS_TRY(auto value, unescape(term.substr(at + length)));
    requirements.push_back({std::string(term.substr(0, at)), equal, std::move(value)});
  }
  return FieldSelector(std::move(requirements));
}

}  // namespace dibs::api
