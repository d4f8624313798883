#include "server/warnings.h"

#include <algorithm>
#include <string_view>

#include "base/strings.h"

namespace dibs::server {
namespace {

constexpr std::size_t kMostTotal = 4096;
constexpr std::size_t kMostEach = 256;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::size_t characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_continuation));
}

std::string_view first_characters(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size()) {
    if (!is_continuation(text[end]) && count-- == 0) break;
    ++end;
  }
  return text.substr(0, end);
}

bool can_stand_in_header(std::string_view text) {
  const bool controls = std::ranges::any_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f;
  });
  return !text.empty() && !controls && is_valid_utf8(text);
}

std::string header_of(std::string_view text) {
  std::string out = "299 - \"";
  for (char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  out.push_back('"');
  return out;
}

}  // namespace

void add_warnings(const std::vector<std::string>& texts, net::Headers& headers) {
  std::vector<std::string_view> told;
  std::size_t total = 0;
  for (const std::string& text : texts) {
    if (!can_stand_in_header(text) || std::ranges::find(told, text) != told.end()) continue;
    told.push_back(text);
    total += characters(text);
  }
  const bool cut = total > kMostTotal;
  std::size_t written = 0;
  for (std::string_view text : told) {
    if (cut && written >= kMostTotal) break;
    if (cut) text = first_characters(text, kMostEach);
    written += characters(text);
    headers.add("Warning", header_of(text));
  }
}

}  // namespace dibs::server
