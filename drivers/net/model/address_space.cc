#include "drivers/net/model/address_space.h"

#include <set>

#include "base/strings.h"
#include "drivers/net/model/fields.h"

namespace dibs::drivers::net {
namespace {

constexpr int kMaxVlan = 4094;

struct Judge {
  const json::Value& spec;
  const api::Path path{"spec"};
  api::FieldErrors errors = {};

  Error invalid(const api::Path& where, const json::Value& value, std::string_view detail) {
    errors.invalid(where, value, detail);
    return first_fault(errors);
  }

  Result<int> version(const Families& families) {
    const api::Path where = path.child("ipVersion");
    const int found = version_of(spec);
    if (found == 0) {
      return invalid(where, spec["ipVersion"],
                     "is not generated correctly, 'spec.subnet' may be invalid");
    }
    if (found != 4 && found != 6) {
      errors.not_supported(where, spec["ipVersion"], {"4", "6"});
      return first_fault(errors);
    }
    if (!(found == 4 ? families.v4 : families.v6)) {
      errors.forbidden(where, cat("IPv", found, " is disabled"));
      return first_fault(errors);
    }
    return found;
  }

  Result<Subnet> subnet(int version) {
    const api::Path where = path.child("subnet");
    const json::Value& value = spec["subnet"];
    const auto lenient = Subnet::parse_lenient(value.as_string());
    if (!lenient.ok() || lenient->version() != version) {
      return invalid(where, value,
                     cat("invalid CIDR format in IPv", version, " '", value.as_string(), "'"));
    }
    auto subnet = Subnet::parse(value.as_string());
    if (!subnet.ok()) return invalid(where, value, subnet.error().message());
    return subnet;
  }

  Result<IpSet> ranges(std::string_view key, const Subnet& subnet) {
    DIBS_TRY(const auto texts, read_texts(spec, key, path));
    const api::Path list = path.child(key);
    IpSet set;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto range = IpRange::parse(texts[i]);
      if (!range.ok() || range->first.version() != subnet.version()) {
        return invalid(
            list.index(i), texts[i],
            cat("invalid IP range format in IPv", subnet.version(), " '", texts[i], "'"));
      }
      if (!subnet.contains(*range)) return invalid(list.index(i), texts[i], outside(subnet));
      set.add(*range);
    }
    return set;
  }

  static std::string outside(const Subnet& subnet) {
    return cat("not pertains to the 'spec.subnet' ", subnet.str(), " of IPPool");
  }

  Result<Ip> address(const api::Path& where, const json::Value& value, const Subnet& subnet) {
    auto ip = Ip::parse(value.as_string());
    if (!ip.ok() || ip->version() != subnet.version()) {
      return invalid(
          where, value,
          cat("invalid IP format in IPv", subnet.version(), " '", value.as_string(), "'"));
    }
    if (!subnet.contains(*ip)) return invalid(where, value, outside(subnet));
    return ip;
  }

  Result<std::optional<Ip>> gateway(const AddressSpace& space) {
    const json::Value& value = spec["gateway"];
    if (value.is_null()) return std::optional<Ip>();
    DIBS_TRY(const Ip gateway, address(path.child("gateway"), value, space.subnet));
    if (!space.total.contains(gateway)) return std::optional(gateway);
    std::size_t i = 0;
    for (const json::Value& text : spec["ips"].items()) {
      if (IpRange::parse(text.as_string())->contains(gateway)) {
        const api::Path ips = path.child("ips");
        return invalid(ips.index(i), text,
                       cat("conflicts with 'spec.gateway' ", value.as_string(),
                           ", add the gateway IP address to 'spec.excludeIPs' or remove it from "
                           "'spec.ips'"));
      }
      ++i;
    }
    return std::optional(gateway);
  }

  Result<std::vector<Route>> routes(const Subnet& subnet) {
    std::vector<Route> routes;
    const json::Value& list = spec["routes"];
    const api::Path where = path.child("routes");
    if (!list.is_null() && !list.is_array()) return invalid(where, list, "must be a list");
    std::set<std::string> seen;
    for (const json::Value& item : list.items()) {
      const api::Path entry = where.index(routes.size());
      const api::Path dst = entry.child("dst");
      const auto parsed = Subnet::parse_lenient(item["dst"].as_string());
      const bool right = parsed.ok() && parsed->version() == subnet.version();
      if (right && parsed->prefix == 0) {
        return invalid(dst, item["dst"],
                       "please specify 'spec.gateway' to configure the default route");
      }
      if (!right) {
        return invalid(dst, item["dst"],
                       cat("invalid CIDR format in IPv", subnet.version(), " '",
                           item["dst"].as_string(), "'"));
      }
      if (!seen.insert(parsed->str()).second) {
        return invalid(dst, item["dst"], "duplicate route with the same dst");
      }
      DIBS_TRY(const Ip gw, address(entry.child("gw"), item["gw"], subnet));
      routes.push_back({*parsed, gw});
    }
    return routes;
  }

  Result<> vlan() {
    const json::Value& value = spec["vlan"];
    if (value.is_null()) return success();
    if (value.is_integer() && value.as_int() >= 0 && value.as_int() <= kMaxVlan) return success();
    return invalid(path.child("vlan"), value, cat("must be between 0 and ", kMaxVlan));
  }
};

}  // namespace

int version_of(const json::Value& spec) {
  const json::Value& given = spec["ipVersion"];
  if (given.is_integer()) {
    const std::int64_t number = given.as_int();
    return number == 4 || number == 6 ? static_cast<int>(number) : -1;
  }
  if (!given.is_null()) return -1;
  const auto subnet = Subnet::parse_lenient(spec["subnet"].as_string());
  return subnet.ok() ? subnet->version() : 0;
}

Result<AddressSpace> parse_address_space(const json::Value& object, const Families& families) {
  Judge judge{.spec = object["spec"]};
  AddressSpace space;
  space.name = object["metadata"]["name"].str();
  space.uid = object["metadata"]["uid"].str();
  space.terminating = is_terminating(object);
  DIBS_TRY(space.version, judge.version(families));
  DIBS_TRY(space.subnet, judge.subnet(space.version));
  DIBS_TRY(space.ips, judge.ranges("ips", space.subnet));
  DIBS_TRY(space.excluded, judge.ranges("excludeIPs", space.subnet));
  space.total = space.ips.minus(space.excluded);
  DIBS_TRY(space.gateway, judge.gateway(space));
  DIBS_TRY(space.routes, judge.routes(space.subnet));
  DIBS_CHECK(judge.vlan());
  return space;
}

Result<IpSubnet> parse_ip_subnet(const json::Value& object, const Families& families) {
  DIBS_TRY(AddressSpace space, parse_address_space(object, families));
  return IpSubnet{std::move(space)};
}

std::string cidr_label(const Subnet& subnet) {
  std::string text = subnet.str();
  for (char& c : text) {
    if (c == '.' || c == ':' || c == '/') c = '-';
  }
  return text.front() == '-' ? "0" + text : text;  // "::/64": a label begins with a letter or digit
}

}  // namespace dibs::drivers::net
