#include "drivers/net/model/coordinator.h"

#include <algorithm>
#include <array>

#include "base/characters.h"
#include "base/strings.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/model/field_reader.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr std::array<std::string_view, 5> kModes = {"auto", "underlay", "overlay", "disabled",
                                                    "disable"};
constexpr std::array<std::string_view, 5> kPodCidrTypes = {"auto", "cluster", "calico", "cilium",
                                                           "none"};
constexpr std::int64_t kRuleTable = 500;

template <std::size_t N>
void check_word(const FieldReader& in, std::string_view key,
                const std::array<std::string_view, N>& words) {
  const std::string word = in.text(key);
  if (word.empty()) return;
  std::string all;
  for (const auto& known : words) {
    if (known == word) return;
    append(all, all.empty() ? "" : ", ", quoted(known));
  }
  in.fail(key, cat("Unsupported value: ", quoted(word), ": supported values: ", all));
}

bool is_address_or_subnet(const std::string& text) {
  return Ip::parse(text).ok() || Subnet::parse_lenient(text).ok();
}

bool is_hex(std::string_view text) { return std::all_of(text.begin(), text.end(), is_hex_digit); }

void check_mac_prefix(const FieldReader& in) {
  const std::string prefix = in.text("podMACPrefix");
  if (prefix.empty()) return;
  const std::string value = cat("Invalid value: ", quoted(prefix), ": ");
  if (prefix.size() != 5 || prefix[2] != ':' || !is_hex(prefix.substr(0, 2)) ||
      !is_hex(prefix.substr(3))) {
    in.fail("podMACPrefix", value + "not a valid MAC prefix");
    return;
  }
  if (std::string_view("02468aceACE").find(prefix[1]) == std::string_view::npos) {
    in.fail("podMACPrefix",
            value + "not a unicast MAC: the lowest bit of the first byte must be 0");
  }
}

void check_routes(const FieldReader& in) {
  for (std::size_t i = 0; i < in.list("policyRoutes").size(); ++i) {
    const FieldReader route = in.item("policyRoutes", i);
    const std::string dst = route.text("dst");
    const std::string gw = route.text("gw");
    if (!is_address_or_subnet(dst)) {
      route.fail("dst", cat("Invalid value: ", quoted(dst), ": invalid IP address or CIDR"));
    }
    if (!Ip::parse(gw)) {
      route.fail("gw", cat("Invalid value: ", quoted(gw), ": gw is an invalid IP address"));
    }
    if ((dst.find(':') == std::string::npos) != (gw.find(':') == std::string::npos)) {
      route.fail("", "dst and gw must use the same IP family");
    }
  }
}

void copy(const Value& from, Value& to, const char* key) {
  if (!from[key].is_null()) to.set(key, from[key]);
}

void copy_text(const Value& from, Value& to, const char* key, const char* as) {
  if (!from[key].as_string().empty()) to.set(as, from[key]);
}

}  // namespace

Result<> check_coordinator(const Value& settings, const std::string& path) {
  std::optional<Error> error;
  const FieldReader in(settings, path, error);
  check_word(in, "mode", kModes);
  check_word(in, "podCIDRType", kPodCidrTypes);
  const auto cidrs = in.texts("hijackCIDR");
  for (std::size_t i = 0; i < cidrs.size(); ++i) {
    if (is_address_or_subnet(cidrs[i])) continue;
    in.fail(cat("hijackCIDR[", i, "]"),
            cat("Invalid value: ", quoted(cidrs[i]), ": invalid IP address or CIDR"));
  }
  check_routes(in);
  check_mac_prefix(in);
  in.text("podDefaultRouteNIC");
  for (const char* key : {"tunePodRoutes", "detectIPConflict", "detectGateway"}) in.flag(key);
  in.number("txQueueLen");
  in.number("hostRuleTable", 1);
  for (const char* key : {"hostRPFilter", "podRPFilter"}) {
    // A negative one means that nothing is set.
    if (in.number(key, std::numeric_limits<std::int64_t>::min()) > 2) {
      in.fail(key, cat("Unsupported value: ", settings[key].as_int(),
                       ": supported values: \"0\", \"1\", \"2\""));
    }
  }
  const std::string link = in.text("vethLinkAddress");
  if (!link.empty() && !Ip::parse(link)) {
    in.fail("vethLinkAddress",
            cat("Invalid value: ", quoted(link), ": vethLinkAddress is an invalid IP address"));
  }
  if (in.has("vethMTU") && in.number("vethMTU", 1) == 0) {
    in.fail("vethMTU", "vethMTU must be greater than 0");
  }
  if (error) return *error;
  return success();
}

Value coordinator_plugin(const Value& settings) {
  Value out = Value::object({{"txQueueLen", settings["txQueueLen"].as_int()},
                             {"detectIPConflict", settings["detectIPConflict"].as_bool()},
                             {"detectGateway", settings["detectGateway"].as_bool()}});
  copy_text(settings, out, "vethLinkAddress", "vethLinkAddress");
  copy(settings, out, "vethMTU");
  out.set("tunePodRoutes", settings["tunePodRoutes"].as_bool(true));
  copy_text(settings, out, "podMACPrefix", "podMACPrefix");
  out.set("mode", settings["mode"].as_string("auto"));
  out.set("type", "coordinator");
  // The plugin's key ends in small letters, the object's does not.
  copy_text(settings, out, "podDefaultRouteNIC", "podDefaultRouteNic");
  copy(settings, out, "podRPFilter");
  if (settings["hostRPFilter"].as_int() != 0) copy(settings, out, "hostRPFilter");
  if (settings["hostRuleTable"].as_int(kRuleTable) != kRuleTable) {
    copy(settings, out, "hostRuleTable");
  }
  copy_text(settings, out, "podCIDRType", "podCIDRType");
  if (!settings["hijackCIDR"].empty()) copy(settings, out, "hijackCIDR");
  if (!settings["policyRoutes"].empty()) copy(settings, out, "policyRoutes");
  return out;
}

}  // namespace dibs::drivers::net
