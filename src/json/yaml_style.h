#pragma once
// What Go's YAML libraries agree on about texts, whatever layout they write: which styles a text
// can take, and how it is escaped. For writers of YAML.

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::json {

/// A code point and its length in bytes.
struct Rune {
  std::uint32_t code = 0;
  std::size_t length = 1;
};
/// A byte that is no UTF-8 stands for itself.
Rune rune_at(std::string_view text, std::size_t at);

bool is_yaml_break(std::uint32_t code);
/// What is written as it is: nothing beyond the basic plane, no tabs.
bool is_yaml_printable(std::uint32_t code);

struct YamlStyles {
  bool multiline = false;
  bool plain = true;
  bool single = true;
  bool literal = true;
};
/// Of valid UTF-8. `literal_tabs`: a text with tabs may be literal.
YamlStyles yaml_styles_of(std::string_view text, bool literal_tabs);

/// As it stands in double quotes, backslash included.
void append_yaml_escape(std::string& out, std::uint32_t code);

}  // namespace dibs::json
