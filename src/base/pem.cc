#include "base/pem.h"

#include "base/strings.h"

namespace dibs {
namespace {

constexpr std::string_view kBegin = "-----BEGIN ";
constexpr std::string_view kEnd = "\n-----END ";
constexpr std::string_view kDashes = "-----";

/// The first line, without the blanks at its end; the text moves on behind it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
  while (line.ends_with(' ') || line.ends_with('\t')) line.remove_suffix(1);
  return line;
}

/// The block whose end line follows `text`; `end_line` begins with the type in that line. Nothing
/// where they are no block.
std::optional<PemBlock> read_block(std::string_view text, std::string_view end_line) {
  // The last begin before an end counts: those before it have no end.
  const std::size_t begin = text.rfind(kBegin);
  if (begin == std::string_view::npos || (begin > 0 && text[begin - 1] != '\n')) return {};
  text.remove_prefix(begin + kBegin.size());
  std::string_view type = take_line(text);
  if (!type.ends_with(kDashes) || take_line(end_line) != type) return {};
  type.remove_suffix(kDashes.size());
  PemBlock out;
  out.type = type;
  for (std::string_view next = text; take_line(next).find(':') != std::string_view::npos;) {
    out.has_headers = true;
    text = next;
  }
  // Headers want a line of data behind them, be it empty.
  if (out.has_headers && text.empty()) return {};
  std::string packed;
  for (const char c : text) {
    if (c != ' ' && c != '\t') packed.push_back(c);
  }
  if (!base64_decode(packed, out.bytes)) return {};
  return out;
}

}  // namespace

std::optional<PemBlock> next_pem_block(std::string_view& text) {
  std::string_view rest = text;
  for (;;) {
    const std::size_t end = rest.find(kEnd);
    if (end == std::string_view::npos) return {};
    const std::string_view trailer = rest.substr(end + kEnd.size());
    auto block = read_block(rest.substr(0, end + 1), trailer);
    rest = trailer;
    if (!block) continue;
    take_line(rest);
    text = rest;
    return block;
  }
}

}  // namespace dibs
