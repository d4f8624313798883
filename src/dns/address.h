#pragma once
// Addresses as records have them: four bytes or sixteen.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "dns/name.h"

namespace dibs::dns {

/// "10.0.0.1" or "fd00::1" to bytes; null when it is neither.
std::optional<std::string> parse_address(std::string_view text);
std::string address_text(std::string_view bytes);
/// As a label: "10-0-0-1", "fd00--1". The other way: null when it is no such label.
std::string address_label(std::string_view bytes);
std::optional<std::string> label_address(std::string_view label);
/// Of a name below in-addr.arpa or ip6.arpa, in lower case: all of an address, or its first bytes
/// (of IPv6 also half a byte more, which is cut off). Null for other names.
struct Reverse {
  std::string bytes = {};
  bool whole = false;
  bool v6 = false;
};
std::optional<Reverse> reverse_address(const Name& name);

/// Addresses that begin with the same bits.
class Range {
 public:
  /// "10.0.0.0/24". Errors name the text.
  static Result<Range> parse(std::string_view text);
  bool contains(std::string_view address) const;

 private:
  std::string base_;
  unsigned bits_ = 0;
};

}  // namespace dibs::dns
