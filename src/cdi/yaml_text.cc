#include "cdi/yaml_text.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml_scalar.h"
#include "json/yaml_style.h"

namespace dibs::cdi {
namespace {

using json::Value;

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const json::Rune rune = json::rune_at(text, at);
    if (!json::is_yaml_printable(rune.code) || json::is_yaml_break(rune.code) || rune.code == '"' ||
        rune.code == '\\') {
      json::append_yaml_escape(out, rune.code);
    } else {
      out.append(text.substr(at, rune.length));
    }
    at += rune.length;
  }
  out.push_back('"');
  return out;
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') out.push_back('\'');
    out.push_back(c);
  }
  out.push_back('\'');
  return out;
}

/// U+2028 and U+2029 end a line to readers of YAML, too.
bool has_rare_break(std::string_view text) {
  return text.find("\xe2\x80\xa8") != std::string_view::npos ||
         text.find("\xe2\x80\xa9") != std::string_view::npos;
}

std::string literal(std::string_view text, std::size_t indent) {
  std::string out = "|";
  if (!text.ends_with('\n')) {
    out.push_back('-');
  } else if (text == "\n" || text.ends_with("\n\n")) {
    out.push_back('+');
  }
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    out.push_back('\n');
    if (end > 0) out.append(indent, ' ').append(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// A text that is a value (`indent`: of the lines below) or a key (one line).
std::string text_of(std::string_view given, std::size_t indent, bool key) {
  std::string mended;
  if (!is_valid_utf8(given)) {
    mended = mend_utf8(given);
    given = mended;
  }
  const json::YamlStyles can = json::yaml_styles_of(given, true);
  if (given.find('\n') != std::string_view::npos) {
    const bool blank_start = given.front() == ' ' || given.front() == '\n';
    const bool fits = can.literal && !blank_start && !has_rare_break(given);
    return fits && !key ? literal(given, indent) : double_quoted(given);
  }
  if (!json::is_plain_yaml_string(given)) return double_quoted(given);
  if (can.plain && !(key && given.empty())) return std::string(given);
  return can.single && !can.multiline ? single_quoted(given) : double_quoted(given);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Letters by code, digits by the number they make.
bool less_naturally(std::string_view a, std::string_view b) {
  std::size_t i = 0;
  while (i < a.size() && i < b.size()) {
    if (is_digit(a[i]) && is_digit(b[i])) {
      std::size_t a_end = i, b_end = i;
      while (a_end < a.size() && is_digit(a[a_end])) ++a_end;
      while (b_end < b.size() && is_digit(b[b_end])) ++b_end;
      if (a_end != b_end) return a_end < b_end;
      const int order = a.substr(i, a_end - i).compare(b.substr(i, b_end - i));
      if (order != 0) return order < 0;
      i = a_end;
      continue;
    }
    if (a[i] != b[i]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[i]);
    ++i;
  }
  return a.size() < b.size();
}

/// Of go-yaml, too.
constexpr std::size_t kLongestSimpleKey = 128;

constexpr std::size_t next_level(std::size_t indent) { return (indent + 4) / 4 * 4; }

class Writer {
 public:
  void mapping(const Value& value, std::size_t indent, bool inline_first, bool sorted) {
    std::vector<const json::Member*> members;
    for (const auto& member : value.members()) members.push_back(&member);
    if (sorted) {
      std::sort(members.begin(), members.end(),
                [](const auto* a, const auto* b) { return less_naturally(a->key(), b->key()); });
    }
    bool first = inline_first;
    for (const auto* member : members) {
      if (!first) out_.append(indent, ' ');
      first = false;
      // Longer ones are no keys to readers unless they are marked.
      const bool simple = member->key().size() <= kLongestSimpleKey;
      append(out_, simple ? "" : "? ", text_of(member->key(), 0, true));
      if (!simple) out_.append(1, '\n').append(indent, ' ');
      out_.push_back(':');
      const std::size_t inner = next_level(indent);
      const Value& held = member->value();
      if (held.empty() || held.is_string()) {
        append(out_, " ", scalar(held, inner), "\n");
      } else if (held.is_array()) {
        out_.push_back('\n');
        sequence(held, inner);
      } else {
        out_.push_back('\n');
        mapping(held, inner, false, member->key() == "annotations");
      }
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void sequence(const Value& value, std::size_t indent) {
    for (const auto& item : value.items()) {
      out_.append(indent, ' ').append("- ");
      if (item.is_object() && !item.empty()) {
        mapping(item, indent + 2, true, false);
      } else {
        append(out_, scalar(item, indent + 2), "\n");
      }
    }
  }

  static std::string scalar(const Value& value, std::size_t indent) {
    if (value.is_string()) return text_of(value.as_string(), indent, false);
    return json::write(value);
  }

  std::string out_;
};

}  // namespace

std::string ordered_yaml(const Value& value) {
  Writer writer;
  writer.mapping(value, 0, false, false);
  return writer.take();
}

}  // namespace dibs::cdi
