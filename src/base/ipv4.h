#pragma once
// IPv4 addresses as numbers, and ranges of them: what clusters have for pods and Services.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs {

/// No leading zeros, nothing beside it; nothing where it is no address.
std::optional<std::uint32_t> parse_ipv4(std::string_view text);
std::string ipv4_text(std::uint32_t address);

struct Ipv4Range {
  std::uint32_t first = 0;
  int bits = 32;  // of the prefix

  /// "10.0.0.0/24", in this form alone: the error says what it would have to be.
  static Result<Ipv4Range> parse(std::string_view text);
  std::string text() const;

  std::uint32_t mask() const { return bits == 0 ? 0 : ~std::uint32_t{0} << (32 - bits); }
  std::uint64_t size() const { return std::uint64_t{1} << (32 - bits); }
  bool contains(std::uint32_t address) const { return (address & mask()) == first; }
  bool overlaps(const Ipv4Range& other) const {
    return bits < other.bits ? contains(other.first) : other.contains(first);
  }
  /// The first is the one after the range's own.
  std::string address(std::uint32_t index) const { return ipv4_text(first + index); }

  friend bool operator==(const Ipv4Range&, const Ipv4Range&) = default;
};

/// A cluster's Services have addresses of one such range: the first is the API's, the tenth the
/// DNS's.
inline constexpr const char* kDefaultServiceRange = "10.0.0.0/24";
inline constexpr std::uint32_t kApiServiceIndex = 1;
inline constexpr std::uint32_t kDnsServiceIndex = 10;
/// Refuses what cannot be a range of Services anywhere. Errors say what is right, not which flag.
Result<Ipv4Range> parse_service_range(std::string_view text);

}  // namespace dibs
