#include "base/strings.h"

#include <algorithm>
#include <array>

namespace dibs {

namespace {

constexpr char kHex[] = "0123456789abcdef";
constexpr char kUpperHex[] = "0123456789ABCDEF";
constexpr char kStandard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr char kUrlSafe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// One UTF-8 sequence at the start of the text: its length and code point, or length 0 if broken.
struct Rune {
  std::size_t length = 0;
  std::uint32_t point = 0;
};

Rune read_rune(std::string_view text) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  std::size_t length = 0;
  std::uint32_t point = 0;
  std::uint32_t least = 0;
  if ((first & 0xe0) == 0xc0) {
    length = 2;
    point = first & 0x1fu;
    least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3;
    point = first & 0x0fu;
    least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4;
    point = first & 0x07u;
    least = 0x10000;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    point = (point << 6) | (byte(i) & 0x3fu);
  }
  if (point < least || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) return {};
  return {length, point};
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// Controls, blanks other than the ASCII one, format characters, private use, tags. Unassigned
// points are taken as printable: the tables of the Unicode version in use would be needed to tell.
constexpr Range kUnprintable[] = {
    {0x80, 0xa0},     {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},     {0x6dd, 0x6dd},
    {0x70f, 0x70f},   {0x1680, 0x1680},   {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},
    {0x205f, 0x206f}, {0x3000, 0x3000},   {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff}};

bool is_printable(std::uint32_t point) {
  for (const Range& range : kUnprintable) {
    if (point < range.first) return true;
    if (point <= range.last) return false;
  }
  return true;
}

void append_hex(std::string& out, std::uint32_t value, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) out += kHex[(value >> shift) & 15u];
}

void append_escaped(std::string& out, std::uint32_t point) {
  switch (point) {
    case '\a':
      out += "\\a";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\v':
      out += "\\v";
      return;
    default:
      break;
  }
  if (point < 0x20 || point == 0x7f) {
    out += "\\x";
    append_hex(out, point, 2);
  } else if (point < 0x10000) {
    out += "\\u";
    append_hex(out, point, 4);
  } else {
    out += "\\U";
    append_hex(out, point, 8);
  }
}

std::string encode64(std::string_view bytes, const char* alphabet, bool pad) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::size_t left = bytes.size() - i;
    auto byte = [&](std::size_t at) -> std::uint32_t {
      return static_cast<unsigned char>(bytes[i + at]);
    };
    std::uint32_t group = byte(0) << 16;
    if (left > 1) group |= byte(1) << 8;
    if (left > 2) group |= byte(2);
    out += alphabet[group >> 18];
    out += alphabet[(group >> 12) & 63u];
    if (left > 1)
      out += alphabet[(group >> 6) & 63u];
    else if (pad)
      out += '=';
    if (left > 2)
      out += alphabet[group & 63u];
    else if (pad)
      out += '=';
  }
  return out;
}

std::array<signed char, 256> make_reverse(const char* alphabet) {
  std::array<signed char, 256> table;
  table.fill(-1);
  for (int i = 0; i < 64; ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<signed char>(i);
  }
  return table;
}

bool decode64(std::string_view text, const std::array<signed char, 256>& reverse, bool padded,
              std::string& bytes) {
  bytes.clear();
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t group = 0;
  int count = 0;
  int padding = 0;
  for (char c : text) {
    if (c == '\n' || c == '\r') continue;
    if (c == '=' && padded) {
      if (count + ++padding > 4 || count < 2) return false;
      continue;
    }
    signed char digit = reverse[static_cast<unsigned char>(c)];
    if (digit < 0 || padding > 0) return false;
    group = (group << 6) | static_cast<std::uint32_t>(digit);
    if (++count == 4) {
      bytes += static_cast<char>(group >> 16);
      bytes += static_cast<char>(group >> 8);
      bytes += static_cast<char>(group);
      group = 0;
      count = 0;
    }
  }
  if (count == 1 || (padded && count > 0 && count + padding != 4)) return false;
  if (count >= 2) bytes += static_cast<char>(group >> (count == 2 ? 4 : 10));
  if (count == 3) bytes += static_cast<char>(group >> 2);
  return true;
}

}  // namespace

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  pieces.reserve(1 + static_cast<std::size_t>(std::count(text.begin(), text.end(), separator)));
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || text[i] == separator) {
      pieces.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return pieces;
}

std::string join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) out += separator;
    out += pieces[i];
  }
  return out;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\n\r\f\v";
  std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = lower(c);
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = upper(c);
  return out;
}

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

std::string quoted(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    Rune rune = read_rune(text.substr(i));
    if (rune.length == 0) {
      out += "\\x";
      append_hex(out, static_cast<unsigned char>(text[i]), 2);
      ++i;
      continue;
    }
    if (rune.point == '"' || rune.point == '\\') {
      out += '\\';
      out += static_cast<char>(rune.point);
    } else if (rune.point < 0x20 || rune.point == 0x7f || !is_printable(rune.point)) {
      append_escaped(out, rune.point);
    } else {
      out += text.substr(i, rune.length);
    }
    i += rune.length;
  }
  out += '"';
  return out;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    Rune rune = read_rune(text.substr(i));
    if (rune.length == 0) return false;
    i += rune.length;
  }
  return true;
}

std::string mend_utf8(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length =
        static_cast<unsigned char>(text[i]) < 0x80 ? 1 : read_rune(text.substr(i)).length;
    out += length == 0 ? "\xef\xbf\xbd" : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string base64_encode(std::string_view bytes) { return encode64(bytes, kStandard, true); }
std::string base64url_encode(std::string_view bytes) { return encode64(bytes, kUrlSafe, false); }

bool base64_decode(std::string_view text, std::string& bytes) {
  static const std::array<signed char, 256> reverse = make_reverse(kStandard);
  return decode64(text, reverse, true, bytes);
}

bool base64url_decode(std::string_view text, std::string& bytes) {
  static const std::array<signed char, 256> reverse = make_reverse(kUrlSafe);
  return decode64(text, reverse, false, bytes);
}

std::string hex_encode(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (char c : bytes) append_hex(out, static_cast<unsigned char>(c), 2);
  return out;
}

bool percent_decode(std::string_view text, bool plus_is_space, std::string& out) {
  out.clear();
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) return false;
      int high = hex_digit(text[i + 1]);
      int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0) return false;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else if (c == '+' && plus_is_space) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return true;
}

std::string percent_encode(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool unreserved = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '-' || c == '_' || c == '.' || c == '~';
    if (unreserved) {
      out += c;
    } else {
      auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kUpperHex[byte >> 4];
      out += kUpperHex[byte & 15u];
    }
  }
  return out;
}

}  // namespace dibs
