#include "drivers/net/address/ip.h"

#include <array>
#include <charconv>

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

constexpr int kGroups = 8;  // of 16 bits in an IPv6 address

/// The bits that a prefix leaves to hosts.
IpBits host_mask(int width, int prefix) {
  const int bits = width - prefix;
  if (bits >= 128) return ~IpBits{0};
  return (IpBits{1} << bits) - 1;
}

std::optional<std::uint32_t> decimal(std::string_view text, std::uint32_t limit) {
  std::uint32_t number = 0;
  if (text.empty() || text.size() > 3 || (text.size() > 1 && text[0] == '0')) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number > limit) return {};
  return number;
}

std::optional<IpBits> parse_v4(std::string_view text) {
  const auto parts = split(text, '.');
  if (parts.size() != 4) return {};
  IpBits bits = 0;
  for (const std::string_view part : parts) {
    const auto number = decimal(part, 255);
    if (!number) return {};
    bits = bits << 8 | *number;
  }
  return bits;
}

std::optional<std::uint16_t> hexadecimal(std::string_view text) {
  std::uint16_t number = 0;
  if (text.empty() || text.size() > 4) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return number;
}

/// Groups between colons, the last of which may be an IPv4 address where `tail`. An empty text has
/// none.
std::optional<std::vector<std::uint16_t>> parse_groups(std::string_view text, bool tail) {
  std::vector<std::uint16_t> groups;
  if (text.empty()) return groups;
  const auto parts = split(text, ':');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (tail && i + 1 == parts.size() && parts[i].find('.') != std::string_view::npos) {
      const auto bits = parse_v4(parts[i]);
      if (!bits) return {};
      groups.push_back(static_cast<std::uint16_t>(*bits >> 16));
      groups.push_back(static_cast<std::uint16_t>(*bits));
      continue;
    }
    const auto group = hexadecimal(parts[i]);
    if (!group) return {};
    groups.push_back(*group);
  }
  return groups;
}

std::optional<IpBits> parse_v6(std::string_view text) {
  const std::size_t gap = text.find("::");
  const bool has_gap = gap != std::string_view::npos;
  const auto head = parse_groups(text.substr(0, gap), !has_gap);
  const auto tail = parse_groups(has_gap ? text.substr(gap + 2) : std::string_view(), true);
  if (!head || !tail) return {};
  const std::size_t given = head->size() + tail->size();
  if (has_gap ? given >= kGroups : given != kGroups) return {};
  IpBits bits = 0;
  for (const std::uint16_t group : *head) bits = bits << 16 | group;
  for (std::size_t i = given; i < kGroups; ++i) bits <<= 16;
  for (const std::uint16_t group : *tail) bits = bits << 16 | group;
  return bits;
}

std::string v4_text(IpBits bits) {
  const auto byte = [&](int shift) { return static_cast<unsigned>(bits >> shift & 0xff); };
  return cat(byte(24), '.', byte(16), '.', byte(8), '.', byte(0));
}

/// RFC 5952: the longest run of two zeros or more is left out, the first of equal ones.
std::string v6_text(IpBits bits) {
  if (bits >> 32 == 0xffff) return cat("::ffff:", v4_text(bits & 0xffffffff));
  std::array<std::uint16_t, kGroups> groups;
  for (int i = 0; i < kGroups; ++i) {
    groups[i] = static_cast<std::uint16_t>(bits >> (16 * (kGroups - 1 - i)));
  }
  int gap = -1;
  int gap_size = 1;
  for (int i = 0; i < kGroups;) {
    int end = i;
    while (end < kGroups && groups[end] == 0) ++end;
    if (end - i > gap_size) {
      gap = i;
      gap_size = end - i;
    }
    i = end == i ? i + 1 : end;
  }
  std::string text;
  for (int i = 0; i < kGroups;) {
    if (i == gap) {
      text += "::";
      i += gap_size;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    std::array<char, 4> digits;
    const auto end =
        std::to_chars(digits.data(), digits.data() + digits.size(), unsigned{groups[i]}, 16).ptr;
    text.append(digits.data(), end);
    ++i;
  }
  return text;
}

}  // namespace

Result<Ip> Ip::parse(std::string_view text) {
  const bool v6 = text.find(':') != std::string_view::npos;
  const auto bits = v6 ? parse_v6(text) : parse_v4(text);
  if (!bits) return Error::invalid(cat("invalid IP format '", text, "'"));
  return Ip{v6, *bits};
}

std::string Ip::str() const { return v6 ? v6_text(bits) : v4_text(bits); }

Result<IpRange> IpRange::parse(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = Ip::parse(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : Ip::parse(text.substr(dash + 1));
  if (!first.ok() || !last.ok() || first->v6 != last->v6 || *first > *last) {
    return Error::invalid(cat("invalid IP range format '", text, "'"));
  }
  return IpRange{*first, *last};
}

std::string IpRange::str() const {
  return first == last ? first.str() : cat(first.str(), '-', last.str());
}

Result<Subnet> Subnet::parse_lenient(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto ip = Ip::parse(text.substr(0, slash));
  const auto prefix = slash == std::string_view::npos || !ip.ok()
                          ? std::nullopt
                          : decimal(text.substr(slash + 1), static_cast<unsigned>(ip->width()));
  if (!prefix) return Error::invalid(cat("invalid CIDR format '", text, "'"));
  Subnet subnet{*ip, static_cast<int>(*prefix)};
  subnet.base.bits &= ~host_mask(ip->width(), subnet.prefix);
  return subnet;
}

Result<Subnet> Subnet::parse(std::string_view text) {
  DIBS_TRY(Subnet subnet, parse_lenient(text));
  if (const std::string right = subnet.str(); right != text) {
    return Error::invalid(cat("unformatted subnet ", text, ", please change it to ", right));
  }
  return subnet;
}

std::string Subnet::str() const { return address(base); }

std::string Subnet::address(const Ip& ip) const { return cat(ip.str(), '/', prefix); }

IpRange Subnet::range() const {
  return {base, Ip{base.v6, base.bits | host_mask(base.width(), prefix)}};
}

}  // namespace dibs::drivers::net
