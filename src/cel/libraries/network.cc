#include <charconv>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"
#include "cel/libraries/ip_address.h"

namespace dibs::cel {

namespace {

class Ip final : public Opaque {
 public:
  explicit Ip(IpAddress address) : address(address) {}
  std::string_view type_name() const override { return "net.IP"; }
  bool equals(const Opaque& other) const override {
    return address == static_cast<const Ip&>(other).address;
  }
  std::uint64_t cost_size() const override { return address.is_v6 ? 16 : 4; }
  const IpAddress address;
};

class Cidr final : public Opaque {
 public:
  Cidr(IpAddress address, int prefix) : address(address), prefix(prefix) {}
  std::string_view type_name() const override { return "net.CIDR"; }
  bool equals(const Opaque& other) const override {
    const auto& that = static_cast<const Cidr&>(other);
    return address == that.address && prefix == that.prefix;
  }
  std::uint64_t cost_size() const override { return static_cast<std::uint64_t>(prefix + 7) / 8; }
  bool contains(const IpAddress& ip) const {
    return ip.is_v6 == address.is_v6 && ip.masked(prefix) == address.masked(prefix);
  }
  const IpAddress address;
  const int prefix;
};

const IpAddress& address_of(const Value& value) {
  return static_cast<const Ip&>(value.as_opaque()).address;
}
const Cidr& cidr_of(const Value& value) { return static_cast<const Cidr&>(value.as_opaque()); }

/// The address, or the error that ip() gives.
bool read_ip(std::string_view text, IpAddress& out, Value& error) {
  bool zone;
  std::string message;
  if (!parse_ip(text, out, zone, message)) {
    error = Value::error(
        cat("IP Address ", quoted(text), " parse error during conversion from string: ", message));
    return false;
  }
  if (zone) {
    error = Value::error(cat("IP address ", quoted(text), " with zone value is not allowed"));
    return false;
  }
  if (out.is_v4_mapped()) {
    error = Value::error(cat("IPv4-mapped IPv6 address ", quoted(text), " is not allowed"));
    return false;
  }
  return true;
}

Value read_cidr(std::string_view text) {
  constexpr std::string_view kFailed =
      "network address parse error during conversion from string: ";
  // It says so twice.
  const auto fail = [&](std::string_view reason) {
    return Value::error(cat(kFailed, kFailed, "netip.ParsePrefix(", quoted(text), "): ", reason));
  };
  const std::size_t slash = text.rfind('/');
  if (slash == std::string_view::npos) return fail("no '/'");
  IpAddress address;
  bool zone;
  std::string message;
  if (!parse_ip(text.substr(0, slash), address, zone, message)) return fail(message);
  if (zone) return fail("IPv6 zones cannot be present in a prefix");
  const std::string_view digits = text.substr(slash + 1);
  int prefix = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
  if (digits.empty() || digits[0] == '-' || end.ptr != digits.data() + digits.size() ||
      end.ec != std::errc() || (digits.size() > 1 && digits[0] == '0'))
    return fail(cat("bad bits after slash: ", quoted(digits)));
  if (prefix > address.bits()) return fail("prefix length out of range");
  if (address.is_v4_mapped())
    return Value::error(cat(kFailed, "IPv4-mapped IPv6 address ", quoted(text), " is not allowed"));
  return Value::opaque(new Cidr(address, prefix));
}

Value ip(const Value* arguments, std::size_t) {
  IpAddress address;
  Value error;
  if (!read_ip(arguments[0].text(), address, error)) return error;
  return Value::opaque(new Ip(address));
}

Value is_ip(const Value* arguments, std::size_t) {
  IpAddress address;
  Value error;
  return Value::boolean(read_ip(arguments[0].text(), address, error));
}

Value is_canonical(const Value* arguments, std::size_t) {
  IpAddress address;
  Value error;
  if (!read_ip(arguments[0].text(), address, error)) return error;
  return Value::boolean(address.str() == arguments[0].text());
}

Value ip_string(const Value* arguments, std::size_t) {
  return Value::string(address_of(arguments[0]).str());
}
Value family(const Value* arguments, std::size_t) {
  return Value::integer(address_of(arguments[0]).is_v6 ? 6 : 4);
}

template <bool (IpAddress::*Test)() const>
Value ip_is(const Value* arguments, std::size_t) {
  return Value::boolean((address_of(arguments[0]).*Test)());
}

Value cidr(const Value* arguments, std::size_t) { return read_cidr(arguments[0].text()); }
Value is_cidr(const Value* arguments, std::size_t) {
  return Value::boolean(!read_cidr(arguments[0].text()).is_error());
}
Value cidr_string(const Value* arguments, std::size_t) {
  const Cidr& self = cidr_of(arguments[0]);
  return Value::string(cat(self.address.str(), "/", self.prefix));
}
Value contains_ip(const Value* arguments, std::size_t) {
  return Value::boolean(cidr_of(arguments[0]).contains(address_of(arguments[1])));
}
Value contains_ip_string(const Value* arguments, std::size_t) {
  IpAddress address;
  Value error;
  if (!read_ip(arguments[1].text(), address, error)) return Value::no_such_overload();
  return Value::boolean(cidr_of(arguments[0]).contains(address));
}
Value contains_cidr(const Value* arguments, std::size_t) {
  const Cidr& self = cidr_of(arguments[0]);
  const Cidr& other = cidr_of(arguments[1]);
  return Value::boolean(other.prefix >= self.prefix && self.contains(other.address));
}
Value contains_cidr_string(const Value* arguments, std::size_t) {
  const Value parsed[] = {arguments[0], read_cidr(arguments[1].text())};
  return parsed[1].is_error() ? parsed[1] : contains_cidr(parsed, 2);
}
Value cidr_ip(const Value* arguments, std::size_t) {
  return Value::opaque(new Ip(cidr_of(arguments[0]).address));
}
Value masked(const Value* arguments, std::size_t) {
  const Cidr& self = cidr_of(arguments[0]);
  return Value::opaque(new Cidr(self.address.masked(self.prefix), self.prefix));
}
Value prefix_length(const Value* arguments, std::size_t) {
  return Value::integer(cidr_of(arguments[0]).prefix);
}

/// Two addresses are compared as far as the prefix reaches.
std::uint64_t prefix_bytes(const Value& value) {
  // Of what is no CIDR, too: the call then fails, and is paid for.
  if (!value.is(Kind::opaque) || value.type_name() != "net.CIDR") return 1;
  return static_cast<std::uint64_t>((cidr_of(value).prefix + 7) / 8);
}
std::uint64_t cost_contains_ip(const Value* arguments, std::size_t, const Value&) {
  std::uint64_t cost = scaled(2 * prefix_bytes(arguments[0]), kScanFactor);
  if (arguments[1].is(Kind::string)) cost += scaled(cost_size(arguments[1]), kScanFactor);
  return cost;
}
std::uint64_t cost_contains_cidr(const Value* arguments, std::size_t count, const Value& result) {
  return cost_contains_ip(arguments, count, result) +
         scaled(prefix_bytes(arguments[0]), kScanFactor) + 1;
}

}  // namespace

void add_network(Environment& environment) {
  environment.type_name("net.IP", Type::parse("net.IP"));
  environment.type_name("net.CIDR", Type::parse("net.CIDR"));
  environment.function(
      "ip", {{"string -> net.IP", ip, cost_scan_first}, {".net.CIDR -> net.IP", cidr_ip}});
  environment.function("isIP", {{"string -> bool", is_ip, cost_scan_first}});
  environment.function("ip.isCanonical", {{"string -> bool", is_canonical, cost_scan_twice}});
  environment.function("family", {{".net.IP -> int", family}});
  environment.function("isUnspecified", {{".net.IP -> bool", ip_is<&IpAddress::is_unspecified>}});
  environment.function("isLoopback", {{".net.IP -> bool", ip_is<&IpAddress::is_loopback>}});
  environment.function("isLinkLocalMulticast",
                       {{".net.IP -> bool", ip_is<&IpAddress::is_link_local_multicast>}});
  environment.function("isLinkLocalUnicast",
                       {{".net.IP -> bool", ip_is<&IpAddress::is_link_local_unicast>}});
  environment.function("isGlobalUnicast",
                       {{".net.IP -> bool", ip_is<&IpAddress::is_global_unicast>}});
  environment.function("string",
                       {{"net.IP -> string", ip_string}, {"net.CIDR -> string", cidr_string}});
  environment.function("cidr", {{"string -> net.CIDR", cidr, cost_scan_first}});
  environment.function("isCIDR", {{"string -> bool", is_cidr, cost_scan_first}});
  environment.function("containsIP",
                       {{".net.CIDR, net.IP -> bool", contains_ip, cost_contains_ip},
                        {".net.CIDR, string -> bool", contains_ip_string, cost_contains_ip}});
  environment.function("containsCIDR",
                       {{".net.CIDR, net.CIDR -> bool", contains_cidr, cost_contains_cidr},
                        {".net.CIDR, string -> bool", contains_cidr_string, cost_contains_cidr}});
  environment.function("masked", {{".net.CIDR -> net.CIDR", masked}});
  environment.function("prefixLength", {{".net.CIDR -> int", prefix_length}});
}

}  // namespace dibs::cel
