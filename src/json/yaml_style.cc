#include "json/yaml_style.h"

#include "json/go_parser.h"

namespace dibs::json {

Rune rune_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t length = utf8_length(text.substr(at));
  if (length <= 1) return {first, 1};
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  return {code, length};
}

bool is_yaml_break(std::uint32_t code) {
  return code == '\n' || code == '\r' || code == 0x85 || code == 0x2028 || code == 0x2029;
}

bool is_yaml_printable(std::uint32_t code) {
  return code == '\n' || (code >= 0x20 && code <= 0x7e) || (code >= 0xa0 && code <= 0xd7ff) ||
         (code >= 0xe000 && code <= 0xfffd && code != 0xfeff);
}

YamlStyles yaml_styles_of(std::string_view text, bool literal_tabs) {
  YamlStyles can;
  if (text.empty()) {
    can.literal = false;
    return can;
  }
  bool indicators = text.starts_with("---") || text.starts_with("...");
  bool tabs = false, special = false, break_space = false, space_break = false;
  bool after_space = false, after_break = false, after_blank = true;
  for (std::size_t at = 0; at < text.size();) {
    const Rune rune = rune_at(text, at);
    const std::size_t next = at + rune.length;
    const bool before_blank = next >= text.size() || text[next] == ' ' || text[next] == '\t';
    const std::uint32_t c = rune.code;
    if (at == 0) {
      constexpr std::string_view kNeverFirst = "#,[]{}&*!|>'\"%@`";
      if (c < 0x80 && kNeverFirst.find(static_cast<char>(c)) != std::string_view::npos) {
        indicators = true;
      }
      if ((c == '?' || c == '-') && before_blank) indicators = true;
    }
    if (c == ':' && before_blank) indicators = true;
    if (c == '#' && after_blank) indicators = true;
    if (c == '\t') {
      tabs = true;
    } else if (!is_yaml_printable(c)) {
      special = true;
    }
    if (c == ' ') break_space = break_space || after_break;
    if (is_yaml_break(c)) {
      can.multiline = true;
      space_break = space_break || after_space;
    }
    after_space = c == ' ';
    after_break = is_yaml_break(c);
    after_blank = c == ' ' || c == '\t' || is_yaml_break(c);
    at = next;
  }
  const bool edge_space = text.front() == ' ' || text.back() == ' ';
  can.single = !break_space && !space_break && !special && !tabs;
  can.plain = can.single && !edge_space && !can.multiline && !indicators;
  can.literal = text.back() != ' ' && !space_break && !special && (literal_tabs || !tabs);
  return can;
}

void append_yaml_escape(std::string& out, std::uint32_t code) {
  constexpr std::string_view kCodes("\0\a\b\t\n\v\f\r\x1b\"\\", 11);
  constexpr std::string_view kNames = "0abtnvfre\"\\";
  out.push_back('\\');
  if (code < 0x80) {
    if (const auto at = kCodes.find(static_cast<char>(code)); at != std::string_view::npos) {
      out.push_back(kNames[at]);
      return;
    }
  }
  if (code == 0x85 || code == 0x2028 || code == 0x2029) {
    out.push_back(code == 0x85 ? 'N' : code == 0x2028 ? 'L' : 'P');
    return;
  }
  const int digits = code <= 0xff ? 2 : code <= 0xffff ? 4 : 8;
  out.push_back(digits == 2 ? 'x' : digits == 4 ? 'u' : 'U');
  for (int k = digits - 1; k >= 0; --k) out.push_back("0123456789ABCDEF"[(code >> (4 * k)) & 15]);
}

}  // namespace dibs::json
