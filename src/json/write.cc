#include <array>
#include <charconv>
#include <cstring>
#include <vector>

#include "json/go_parser.h"
#include "json/number.h"
#include "json/parse.h"

namespace dibs::json {
namespace {

enum : unsigned char { kPlain, kEscape, kHtml, kBeyondAscii };

constexpr std::array<unsigned char, 256> make_classes() {
  std::array<unsigned char, 256> classes{};
  for (std::size_t c = 0; c < 256; ++c) {
    classes[c] = c < 0x20 || c == '"' || c == '\\'  ? kEscape
                 : c == '<' || c == '>' || c == '&' ? kHtml
                 : c >= 0x80                        ? kBeyondAscii
                                                    : kPlain;
  }
  return classes;
}
constexpr auto kClasses = make_classes();

void append_escape(std::string& out, unsigned char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\b':
      out.append("\\b");
      return;
    case '\f':
      out.append("\\f");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      break;
  }
  const char escape[] = {'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
  out.append(escape, sizeof escape);
}

void append_integer(std::string& out, std::int64_t number) {
  char text[24];
  char* end = std::to_chars(text, text + sizeof text, number).ptr;
  out.append(text, end);
}

// Scalars and empty containers; false for a container with something in it.
bool write_small(std::string& out, const Value& value, bool escape_html) {
  switch (value.kind()) {
    case Kind::null:
      out.append("null");
      return true;
    case Kind::boolean:
      out.append(value.as_bool() ? "true" : "false");
      return true;
    case Kind::integer:
      append_integer(out, value.as_int());
      return true;
    case Kind::number:
      append_json_double(out, value.as_double());
      return true;
    case Kind::string:
      write_string(out, value.as_string(), escape_html);
      return true;
    case Kind::array:
      if (value.empty()) out.append("[]");
      return value.empty();
    case Kind::object:
      if (value.empty()) out.append("{}");
      return value.empty();
  }
  return true;
}

// What is left of an open container.
struct Frame {
  const Value* item;
  const Value* item_end;
  const Member* member;
  const Member* member_end;
  bool first = true;
};

Frame frame_of(const Value& container) {
  const Items items = container.items();
  const Members members = container.members();
  return {items.begin(), items.end(), members.begin(), members.end()};
}

template <bool pretty>
void write_all(std::string& out, const Value& root, bool escape_html) {
  if (write_small(out, root, escape_html)) return;
  std::vector<Frame> frames;
  frames.reserve(16);
  auto new_line = [&] {
    out.push_back('\n');
    out.append(2 * frames.size(), ' ');
  };
  out.push_back(root.is_array() ? '[' : '{');
  frames.push_back(frame_of(root));
  while (!frames.empty()) {
    Frame& frame = frames.back();
    const bool object = frame.member != nullptr;
    if (frame.item == frame.item_end && frame.member == frame.member_end) {
      frames.pop_back();
      if constexpr (pretty) new_line();
      out.push_back(object ? '}' : ']');
      continue;
    }
    if (!frame.first) out.push_back(',');
    frame.first = false;
    if constexpr (pretty) new_line();
    const Value* value;
    if (object) {
      write_string(out, frame.member->key(), escape_html);
      out.push_back(':');
      if constexpr (pretty) out.push_back(' ');
      value = &frame.member->value();
      ++frame.member;
    } else {
      value = frame.item++;
    }
    if (write_small(out, *value, escape_html)) continue;
    out.push_back(value->is_array() ? '[' : '{');
    frames.push_back(frame_of(*value));
  }
}

// True when one of eight characters may need more than to be copied.
bool any_special(const char* from, bool escape_html) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  std::uint64_t eight;
  std::memcpy(&eight, from, sizeof eight);
  // The high bit of a byte shows what was found there, or in a byte below it.
  const auto below = [&](std::uint64_t x, std::uint64_t limit) { return (x - kOnes * limit) & ~x; };
  const auto has = [&](char c) {
    return below(eight ^ (kOnes * static_cast<unsigned char>(c)), 1);
  };
  std::uint64_t found = eight | below(eight, 0x20) | has('"') | has('\\');
  if (escape_html) found |= has('<') | has('>') | has('&');
  return (found & kHighs) != 0;
}

}  // namespace

void write_string(std::string& out, std::string_view text, bool escape_html) {
  out.push_back('"');
  std::size_t start = 0;
  std::size_t at = 0;
  auto flush = [&] { out.append(text.data() + start, at - start); };
  while (at < text.size()) {
    while (text.size() - at >= 8 && !any_special(text.data() + at, escape_html)) at += 8;
    if (at == text.size()) break;
    const auto c = static_cast<unsigned char>(text[at]);
    const unsigned char what = kClasses[c];
    if (what == kPlain || (what == kHtml && !escape_html)) {
      ++at;
      continue;
    }
    if (what == kBeyondAscii) {
      const std::size_t length = utf8_length(text.substr(at));
      const bool separator = length == 3 && c == 0xe2 && text[at + 1] == '\x80' &&
                             (text[at + 2] == '\xa8' || text[at + 2] == '\xa9');
      if (length > 0 && !separator) {
        at += length;
        continue;
      }
      flush();
      out.append(length == 0 ? "\\ufffd" : text[at + 2] == '\xa8' ? "\\u2028" : "\\u2029");
      at += length == 0 ? 1 : length;
    } else {
      flush();
      append_escape(out, c);
      ++at;
    }
    start = at;
  }
  flush();
  out.push_back('"');
}

void write_to(std::string& out, const Value& value, bool escape_html) {
  write_all<false>(out, value, escape_html);
}

std::string write(const Value& value, bool escape_html) {
  // Grown once for all, so that the answer is allocated once and in its own size.
  thread_local std::string scratch;
  constexpr std::size_t kKept = 256 * 1024;
  scratch.clear();
  write_to(scratch, value, escape_html);
  std::string out(scratch);
  if (scratch.capacity() > kKept) scratch = std::string();
  return out;
}

std::string write_pretty(const Value& value, bool escape_html) {
  std::string out;
  write_all<true>(out, value, escape_html);
  return out;
}

}  // namespace dibs::json
