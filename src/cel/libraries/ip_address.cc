#include "cel/libraries/ip_address.h"

#include <cstdio>

#include "base/strings.h"

namespace dibs::cel {

namespace {

/// False, with the reason, when it is not four numbers with dots.
bool parse_v4(std::string_view text, std::uint8_t* out, std::string& reason) {
  int value = 0;
  int digits = 0;
  int field = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      if (digits == 1 && value == 0) {
        reason = "IPv4 field has octet with leading zero";
        return false;
      }
      value = value * 10 + (c - '0');
      ++digits;
      if (value > 255) {
        reason = "IPv4 field has value >255";
        return false;
      }
    } else if (c == '.') {
      if (i == 0 || i + 1 == text.size() || text[i - 1] == '.') {
        reason = cat("IPv4 field must have at least one digit (at ", quoted(text.substr(i)), ")");
        return false;
      }
      if (field == 3) {
        reason = "IPv4 address too long";
        return false;
      }
      out[field++] = static_cast<std::uint8_t>(value);
      value = digits = 0;
    } else {
      reason = cat("unexpected character (at ", quoted(text.substr(i)), ")");
      return false;
    }
  }
  if (field < 3) {
    reason = "IPv4 address too short";
    return false;
  }
  out[3] = static_cast<std::uint8_t>(value);
  return true;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool parse_v6(std::string_view text, IpAddress& out, std::string& reason) {
  out.is_v6 = true;
  int ellipsis = -1;
  int at = 0;
  if (text.starts_with("::")) {
    ellipsis = 0;
    text.remove_prefix(2);
    if (text.empty()) return true;
  }
  while (at < 16) {
    std::size_t length = 0;
    unsigned value = 0;
    while (length < text.size() && hex_digit(text[length]) >= 0) {
      value = value * 16 + static_cast<unsigned>(hex_digit(text[length]));
      if (++length > 4) {
        reason = cat("each group must have 4 or less digits (at ", quoted(text), ")");
        return false;
      }
    }
    if (length == 0) {
      reason =
          cat("each colon-separated field must have at least one digit (at ", quoted(text), ")");
      return false;
    }
    if (length < text.size() && text[length] == '.') {
      if ((ellipsis < 0 && at != 12) || at + 4 > 16) {
        reason = cat("embedded IPv4 address must replace the final 2 fields of the address (at ",
                     quoted(text), ")");
        return false;
      }
      std::string inner;
      if (!parse_v4(text, out.bytes.data() + at, inner)) {
        reason = inner;
        return false;
      }
      text = {};
      at += 4;
      break;
    }
    out.bytes[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(value >> 8);
    out.bytes[static_cast<std::size_t>(at) + 1] = static_cast<std::uint8_t>(value);
    at += 2;
    text.remove_prefix(length);
    if (text.empty()) break;
    if (text[0] != ':') {
      reason = cat("unexpected character, want colon (at ", quoted(text), ")");
      return false;
    }
    if (text.size() == 1) {
      reason = cat("colon must be followed by more characters (at ", quoted(text), ")");
      return false;
    }
    text.remove_prefix(1);
    if (text[0] == ':') {
      if (ellipsis >= 0) {
        reason = cat("multiple :: in address (at ", quoted(text), ")");
        return false;
      }
      ellipsis = at;
      text.remove_prefix(1);
      if (text.empty()) break;
    }
  }
  if (!text.empty()) {
    reason = cat("trailing garbage after address (at ", quoted(text), ")");
    return false;
  }
  if (at < 16) {
    if (ellipsis < 0) {
      reason = "address string too short";
      return false;
    }
    const int gap = 16 - at;
    for (int i = at - 1; i >= ellipsis; --i) {
      out.bytes[static_cast<std::size_t>(i + gap)] = out.bytes[static_cast<std::size_t>(i)];
    }
    for (int i = ellipsis; i < ellipsis + gap; ++i) out.bytes[static_cast<std::size_t>(i)] = 0;
  } else if (ellipsis >= 0) {
    reason = "the :: must expand to at least one field of zeros";
    return false;
  }
  return true;
}

}  // namespace

bool parse_ip(std::string_view text, IpAddress& out, bool& zone, std::string& message) {
  out = {};
  zone = false;
  const auto fail = [&](std::string_view reason) {
    message = cat("ParseAddr(", quoted(text), "): ", reason);
    return false;
  };
  const std::size_t first = text.find_first_of(".:%");
  if (first == std::string_view::npos) return fail("unable to parse IP");
  std::string reason;
  if (text[first] == '.') {
    return parse_v4(text, out.bytes.data(), reason) || fail(reason);
  }
  if (text[first] == '%') return fail("missing IPv6 address");
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    zone = true;
    if (percent + 1 == text.size()) return fail("zone must be a non-empty string");
  }
  return parse_v6(text.substr(0, percent), out, reason) || fail(reason);
}

std::string IpAddress::str() const {
  if (!is_v6) return cat(bytes[0], ".", bytes[1], ".", bytes[2], ".", bytes[3]);
  if (is_v4_mapped())
    return cat("::ffff:", bytes[12], ".", bytes[13], ".", bytes[14], ".", bytes[15]);
  const auto group = [&](int i) {
    return bytes[static_cast<std::size_t>(2 * i)] << 8 | bytes[static_cast<std::size_t>(2 * i + 1)];
  };
  int best = -1;
  int best_length = 1;
  for (int i = 0; i < 8; ++i) {
    int length = 0;
    while (i + length < 8 && group(i + length) == 0) ++length;
    if (length > best_length) {
      best = i;
      best_length = length;
    }
    if (length > 0) i += length - 1;
  }
  std::string out;
  for (int i = 0; i < 8; ++i) {
    if (i == best) {
      out += "::";
      i += best_length - 1;
      continue;
    }
    if (i > 0 && !out.ends_with(':')) out += ':';
    char digits[8];
    std::snprintf(digits, sizeof digits, "%x", static_cast<unsigned>(group(i)));
    out += digits;
  }
  return out;
}

bool IpAddress::is_v4_mapped() const {
  if (!is_v6) return false;
  for (std::size_t i = 0; i < 10; ++i) {
    if (bytes[i] != 0) return false;
  }
  return bytes[10] == 0xff && bytes[11] == 0xff;
}

bool IpAddress::is_unspecified() const { return *this == IpAddress{{}, is_v6}; }

bool IpAddress::is_loopback() const {
  if (!is_v6) return bytes[0] == 127;
  IpAddress one{{}, true};
  one.bytes[15] = 1;
  return *this == one;
}

bool IpAddress::is_multicast() const {
  return is_v6 ? bytes[0] == 0xff : (bytes[0] & 0xf0) == 0xe0;
}

bool IpAddress::is_link_local_multicast() const {
  if (is_v6) return bytes[0] == 0xff && (bytes[1] & 0x0f) == 2;
  return bytes[0] == 224 && bytes[1] == 0 && bytes[2] == 0;
}

bool IpAddress::is_link_local_unicast() const {
  if (is_v6) return bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80;
  return bytes[0] == 169 && bytes[1] == 254;
}

bool IpAddress::is_global_unicast() const {
  if (!is_v6 && bytes[0] == 255 && bytes[1] == 255 && bytes[2] == 255 && bytes[3] == 255)
    return false;
  return !is_unspecified() && !is_loopback() && !is_multicast() && !is_link_local_unicast();
}

IpAddress IpAddress::masked(int prefix) const {
  IpAddress made = *this;
  for (int i = 0; i < 16; ++i) {
    const int kept = prefix - i * 8;
    auto& byte = made.bytes[static_cast<std::size_t>(i)];
    if (kept <= 0)
      byte = 0;
    else if (kept < 8)
      byte = static_cast<std::uint8_t>(byte & (0xff << (8 - kept)));
  }
  return made;
}

}  // namespace dibs::cel
