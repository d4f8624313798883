#pragma once
// Addresses and prefixes of the Internet Protocol, as Go's net/netip reads and writes them.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::cel {

struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};  // the first four for version 4
  bool is_v6 = false;

  std::string str() const;
  int bits() const { return is_v6 ? 128 : 32; }
  bool is_v4_mapped() const;
  bool is_unspecified() const;
  bool is_loopback() const;
  bool is_multicast() const;
  bool is_link_local_multicast() const;
  bool is_link_local_unicast() const;
  bool is_global_unicast() const;
  /// With everything behind the prefix cleared.
  IpAddress masked(int prefix) const;
  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// On failure `message` has Go's words. `zone`: the address has one ("fe80::1%eth0"), which is left
/// out of the result.
bool parse_ip(std::string_view text, IpAddress& out, bool& zone, std::string& message);

}  // namespace dibs::cel
