#include "base/ipv4.h"

#include <arpa/inet.h>

#include <charconv>

#include "base/strings.h"

namespace dibs {
namespace {

constexpr int kLargest = 12;   // as upstream's limit
constexpr int kSmallest = 28;  // the tenth address is the DNS's

/// Addresses that mean something else to every machine.
constexpr struct {
  const char* range;
  const char* is;
} kNotUnicast[] = {{"0.0.0.0/8", "this network"},
                   {"127.0.0.0/8", "the loopback"},
                   {"169.254.0.0/16", "link-local"},
                   {"224.0.0.0/3", "multicast or reserved"}};

}  // namespace

std::optional<std::uint32_t> parse_ipv4(std::string_view text) {
  in_addr address{};
  // inet_pton refuses leading zeros and anything beside the four numbers, but ends at a zero byte.
  if (text.size() > 15 || text.find('\0') != text.npos) return std::nullopt;
  if (inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

std::string ipv4_text(std::uint32_t address) {
  const in_addr value{htonl(address)};
  char out[INET_ADDRSTRLEN];
  return inet_ntop(AF_INET, &value, out, sizeof out);
}

Result<Ipv4Range> Ipv4Range::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto address = parse_ipv4(text.substr(0, slash));
  const std::string_view digits = slash == text.npos ? "" : text.substr(slash + 1);
  int bits = -1;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
  if (!address || code != std::errc() || end != digits.data() + digits.size() || bits < 0 ||
      bits > 32 || digits != std::to_string(bits)) {
    return Error::bad_request(
        cat(quoted(text), ": must be ADDRESS/BITS of IPv4, for example ", kDefaultServiceRange));
  }
  const Ipv4Range whole{*address & Ipv4Range{0, bits}.mask(), bits};
  if (whole.first != *address) {
    return Error::bad_request(
        cat(quoted(text), ": must be the first address of the range: ", whole.text()));
  }
  return whole;
}

std::string Ipv4Range::text() const { return cat(ipv4_text(first), '/', bits); }

Result<Ipv4Range> parse_service_range(std::string_view text) {
  if (text.find(':') != text.npos || text.find(',') != text.npos) {
    return Error::bad_request(cat(quoted(text),
                                  ": Services have IPv4 addresses of one range here; IPv6 and "
                                  "several ranges are not there: give one, for example ",
                                  kDefaultServiceRange));
  }
  DIBS_TRY(const Ipv4Range range, Ipv4Range::parse(text));
  if (range.bits < kLargest || range.bits > kSmallest) {
    return Error::bad_request(cat(quoted(text), ": must have from ", kLargest, " to ", kSmallest,
                                  " bits, for example ", ipv4_text(range.first), "/24"));
  }
  for (const auto& [other, is] : kNotUnicast) {
    if (!Ipv4Range::parse(other)->overlaps(range)) continue;
    return Error::bad_request(cat(quoted(text), ": ", other, " is ", is,
                                  "; give a private range, for example ", kDefaultServiceRange));
  }
  return range;
}

}  // namespace dibs
