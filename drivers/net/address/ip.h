#pragma once
// IP addresses, subnets, ranges and sets of addresses, of both families.
//
// Texts are those that Go's net/netip prints, so what is written here reads the same to upstream's
// tools: "172.18.30.131", "fd00::1", "172.18.0.0/16", and "a-b" for a range. Values: free to copy,
// no I/O.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::drivers::net {

__extension__ typedef unsigned __int128 IpBits;

struct Ip {
  bool v6 = false;
  IpBits bits = 0;  // as a number: of IPv4 the lower 32 bits

  /// No zones, no leading zeros in IPv4. The error names the text.
  static Result<Ip> parse(std::string_view text);
  std::string str() const;

  int version() const { return v6 ? 6 : 4; }
  /// Bits of an address of this family: 32 or 128.
  int width() const { return v6 ? 128 : 32; }

  /// All of IPv4 comes before IPv6.
  friend bool operator==(const Ip&, const Ip&) = default;
  friend auto operator<=>(const Ip&, const Ip&) = default;
};

/// Addresses of one family, both ends belong to it; first <= last.
struct IpRange {
  Ip first;
  Ip last;

  /// "a" or "a-b". Upstream's grammar: no CIDR, no blanks.
  static Result<IpRange> parse(std::string_view text);
  /// "a" for a single address, else "a-b".
  std::string str() const;

  bool contains(const Ip& ip) const { return first <= ip && ip <= last; }
  bool overlaps(const IpRange& other) const { return first <= other.last && other.first <= last; }
  friend bool operator==(const IpRange&, const IpRange&) = default;
};

struct Subnet {
  Ip base;
  int prefix = 0;

  /// Errors: no CIDR; and where host bits are set, a text that names the right form.
  static Result<Subnet> parse(std::string_view text);
  /// Host bits may be set, they are cut off: "172.18.30.131/16" is 172.18.0.0/16.
  static Result<Subnet> parse_lenient(std::string_view text);
  std::string str() const;

  int version() const { return base.version(); }
  IpRange range() const;
  bool contains(const Ip& ip) const { return range().contains(ip); }
  bool contains(const IpRange& other) const {
    return contains(other.first) && contains(other.last);
  }
  bool overlaps(const Subnet& other) const { return range().overlaps(other.range()); }
  /// "172.18.30.131/16": the address with this prefix length.
  std::string address(const Ip& ip) const;
  friend bool operator==(const Subnet&, const Subnet&) = default;
};

/// A set of addresses as sorted, disjoint ranges that do not touch. Adding, removing and asking
/// take O(log n) of the ranges (and what a wide range swallows), lowest() takes O(1).
class IpSet {
 public:
  IpSet() = default;
  explicit IpSet(const IpRange& range) { add(range); }

  /// The union of the ranges; the error names the first that is none.
  static Result<IpSet> parse(const std::vector<std::string>& ranges);
  std::vector<std::string> to_strings() const;
  std::vector<IpRange> ranges() const;

  void add(const IpRange& range);
  void add(const Ip& ip) { add(IpRange{ip, ip}); }
  void add(const IpSet& other);
  void remove(const IpRange& range);
  void remove(const Ip& ip) { remove(IpRange{ip, ip}); }
  void remove(const IpSet& other);

  bool contains(const Ip& ip) const;
  bool contains(const IpRange& range) const;
  bool intersects(const IpRange& range) const;
  bool intersects(const IpSet& other) const;

  bool empty() const { return ranges_.empty(); }
  std::optional<Ip> lowest() const;
  /// How many; the greatest int64 where there are more.
  std::int64_t count() const;

  IpSet minus(const IpSet& other) const;
  IpSet intersection(const IpSet& other) const;
  /// The lowest `count` addresses, or all where there are fewer.
  IpSet lowest_of(std::int64_t count) const;

  friend bool operator==(const IpSet& a, const IpSet& b) { return a.ranges_ == b.ranges_; }

 private:
  std::map<Ip, Ip> ranges_;  // first to last
  IpBits size_ = 0;          // modulo 2^128: only all of IPv6 overflows it
};

}  // namespace dibs::drivers::net
