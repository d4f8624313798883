#include "cdi/yaml_text.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "json/parse.h"
#include "json/yaml_scalar.h"

namespace dibs::cdi {
namespace {

using json::Value;

struct Rune {
  std::uint32_t code = 0;
  std::size_t length = 1;
};

// Of valid UTF-8.
Rune rune_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length && at + i < text.size(); ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  return {code, length};
}

bool is_break(std::uint32_t c) {
  return c == '\n' || c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_printable(std::uint32_t c) {
  return c == '\n' || (c >= 0x20 && c <= 0x7e) || (c >= 0xa0 && c <= 0xd7ff) ||
         (c >= 0xe000 && c <= 0xfffd && c != 0xfeff);
}

struct Styles {
  bool plain = true;
  bool single = true;
  bool literal = true;
};

Styles styles_of(std::string_view text) {
  if (text.empty()) return {true, true, false};
  bool indicators = text.starts_with("---") || text.starts_with("...");
  bool tabs = false, special = false, breaks = false, break_space = false, space_break = false;
  bool after_space = false, after_break = false, after_blank = true;
  for (std::size_t at = 0; at < text.size();) {
    const Rune rune = rune_at(text, at);
    const std::uint32_t c = rune.code;
    const std::size_t next = at + rune.length;
    const bool before_blank = next >= text.size() || text[next] == ' ' || text[next] == '\t';
    constexpr std::string_view kNeverFirst = "#,[]{}&*!|>'\"%@`";
    if (at == 0 && c < 0x80 && kNeverFirst.find(static_cast<char>(c)) != std::string_view::npos) {
      indicators = true;
    }
    if (at == 0 && (c == '?' || c == '-') && before_blank) indicators = true;
    if (c == ':' && before_blank) indicators = true;
    if (c == '#' && after_blank) indicators = true;
    if (c == '\t') {
      tabs = true;
    } else if (!is_printable(c)) {
      special = true;
    }
    if (c == ' ') break_space = break_space || after_break;
    if (is_break(c)) {
      breaks = true;
      space_break = space_break || after_space;
    }
    after_space = c == ' ';
    after_break = is_break(c);
    after_blank = c == ' ' || c == '\t' || is_break(c);
    at = next;
  }
  const bool edge = text.front() == ' ' || text.back() == ' ';
  const bool bad = space_break || special;
  return {!edge && !breaks && !break_space && !bad && !tabs && !indicators,
          !break_space && !bad && !tabs && !breaks, text.back() != ' ' && !bad};
}

void append_escape(std::string& out, std::uint32_t c) {
  constexpr std::string_view kCodes("\0\a\b\t\n\v\f\r\x1b\"\\", 11);
  constexpr std::string_view kNames = "0abtnvfre\"\\";
  out.push_back('\\');
  if (c < 0x80) {
    if (const auto at = kCodes.find(static_cast<char>(c)); at != std::string_view::npos) {
      out.push_back(kNames[at]);
      return;
    }
  }
  if (c == 0x85 || c == 0x2028 || c == 0x2029) {
    out.push_back(c == 0x85 ? 'N' : c == 0x2028 ? 'L' : 'P');
    return;
  }
  const int digits = c <= 0xff ? 2 : c <= 0xffff ? 4 : 8;
  out.push_back(digits == 2 ? 'x' : digits == 4 ? 'u' : 'U');
  for (int k = digits - 1; k >= 0; --k) out.push_back("0123456789ABCDEF"[(c >> (4 * k)) & 15]);
}

std::string double_quoted(std::string_view text) {
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const Rune rune = rune_at(text, at);
    if (!is_printable(rune.code) || is_break(rune.code) || rune.code == '"' || rune.code == '\\') {
      append_escape(out, rune.code);
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
    // JSON's way: what is no UTF-8 becomes U+FFFD.
    mended = json::parse(json::write(Value(given)))->str();
    given = mended;
  }
  const Styles can = styles_of(given);
  if (given.find('\n') != std::string_view::npos) {
    const bool blank_start = given.front() == ' ' || given.front() == '\n';
    return can.literal && !key && !blank_start ? literal(given, indent) : double_quoted(given);
  }
  if (!json::is_plain_yaml_string(given)) return double_quoted(given);
  if (can.plain && !(key && given.empty())) return std::string(given);
  return can.single ? single_quoted(given) : double_quoted(given);
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
      append(out_, text_of(member->key(), 0, true), ":");
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
