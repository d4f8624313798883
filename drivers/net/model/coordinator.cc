#include "drivers/net/model/coordinator.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

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

void check_number(const FieldReader& in, std::string_view key, std::int64_t least,
                  std::int64_t most) {
  if (!in.has(key)) return;
  const std::int64_t value = in.number(key, std::numeric_limits<std::int64_t>::min());
  if (value < least || value > most) {
    in.fail(key, cat("Invalid value: ", value, ": must be ", least, " to ", most));
  }
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
  check_mac_prefix(in);
  in.text("podDefaultRouteNIC");
  for (const char* key : {"tunePodRoutes", "detectIPConflict", "detectGateway"}) in.flag(key);
  check_number(in, "txQueueLen", 0, 1'000'000);
  check_number(in, "vethMTU", 1, 65'535);
  check_number(in, "hostRuleTable", 1, std::numeric_limits<std::int32_t>::max());
  if (const auto table = in.number("hostRuleTable"); table >= 253 && table <= 255) {
    in.fail("hostRuleTable", cat("Invalid value: ", table, ": 253 to 255 are the kernel's own"));
  }
  // -1 leaves it as it is.
  for (const char* key : {"hostRPFilter", "podRPFilter"}) check_number(in, key, -1, 2);
  // Nothing here does what the newest original does by these.
  if (in.list("policyRoutes").size() > 0) in.fail("policyRoutes", "Forbidden: is not supported");
  if (!in.text("vethLinkAddress").empty()) {
    in.fail("vethLinkAddress", "Forbidden: is not supported");
  }
  if (error) return *error;
  return success();
}

Value coordinator_plugin(const Value& settings) {
  Value out = Value::object({{"txQueueLen", settings["txQueueLen"].as_int()},
                             {"detectIPConflict", settings["detectIPConflict"].as_bool()},
                             {"detectGateway", settings["detectGateway"].as_bool()}});
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
  return out;
}

}  // namespace dibs::drivers::net
