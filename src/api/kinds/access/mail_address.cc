#include "api/kinds/access/mail_address.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"

namespace dibs::api {
namespace {

/// A character of an atom; those beyond ASCII are let pass, as RFC 6532 has it.
bool is_atom_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  constexpr std::string_view kMarks = "!#$%&'*+-/=?^_`{|}~";
  return byte >= 0x80 || std::isalnum(byte) != 0 || kMarks.find(c) != std::string_view::npos;
}

/// Atoms with dots between them.
bool is_dotted(std::string_view text) {
  for (const std::string_view atom : split(text, '.')) {
    if (atom.empty() || !std::all_of(atom.begin(), atom.end(), is_atom_character)) return false;
  }
  return true;
}

/// The length of a quoted text at the beginning, quotes included; 0 where there is none.
std::size_t quoted_length(std::string_view text) {
  if (!text.starts_with('"')) return 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\' && ++i == text.size()) return 0;
    if (byte < 0x20 && byte != '\t') return 0;
  }
  return 0;
}

/// "[192.0.2.1]", "[IPv6:2001:db8::1]": only what is around the address is looked at.
bool is_domain(std::string_view text) {
  if (!text.starts_with('[')) return is_dotted(text);
  return text.size() > 2 && text.ends_with(']') &&
         text.substr(1, text.size() - 2).find_first_of("[]\\ ") == std::string_view::npos;
}

/// "local@domain"
bool is_plain_address(std::string_view text) {
  std::size_t at = quoted_length(text);
  const bool is_quoted = at != 0;
  if (!is_quoted) at = text.find('@');
  if (at >= text.size() || text[at] != '@') return false;
  return (is_quoted || is_dotted(text.substr(0, at))) && is_domain(text.substr(at + 1));
}

/// The name before an address in angle brackets: words and quoted texts.
bool is_phrase(std::string_view text) {
  for (text = trim(text); !text.empty(); text = trim(text)) {
    std::size_t length = quoted_length(text);
    if (length == 0) {
      const auto* end = std::find_if_not(text.begin(), text.end(),
                                         [](char c) { return is_atom_character(c) || c == '.'; });
      length = static_cast<std::size_t>(end - text.begin());
    }
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

bool is_mail_address(std::string_view text) {
  text = trim(text);
  if (is_plain_address(text)) return true;
  const std::size_t open = text.rfind('<');
  if (open == std::string_view::npos || !text.ends_with('>')) return false;
  return is_phrase(text.substr(0, open)) &&
         is_plain_address(text.substr(open + 1, text.size() - open - 2));
}

}  // namespace dibs::api
