#include "drivers/net/cni/coordinator_config.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/strings.h"
#include "drivers/net/cni/netlink.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// Of CNI itself, and of those who write them for other plugins.
constexpr std::array<std::string_view, 10> kOfCni = {
    "cniVersion", "name", "type",         "prevResult", "runtimeConfig",
    "args",       "dns",  "capabilities", "deviceID",   "pciBusID"};

/// Takes members out of the configuration, or of the default where it does not have them.
class Fields {
 public:
  Fields(const Value& config, const Value& fallback) : config_(config), fallback_(fallback) {
    known_.assign(kOfCni.begin(), kOfCni.end());
  }

  const Value& operator[](std::string_view name) {
    known_.push_back(name);
    const Value& own = config_[name];
    return own.is_null() ? fallback_[name] : own;
  }

  void text(std::string_view name, std::string& out) {
    const Value& value = (*this)[name];
    if (value.is_null()) return;
    if (!value.is_string()) return fail(name, "must be a text");
    out = value.str();
  }
  void flag(std::string_view name, bool& out) {
    const Value& value = (*this)[name];
    if (value.is_null()) return;
    if (!value.is_boolean()) return fail(name, "must be true or false");
    out = value.as_bool();
  }
  void number(std::string_view name, int least, int most, int& out) {
    const Value& value = (*this)[name];
    if (value.is_null()) return;
    if (!value.is_integer() || value.as_int() < least || value.as_int() > most) {
      return fail(name, cat("must be ", least, " to ", most));
    }
    out = static_cast<int>(value.as_int());
  }
  void subnets(std::string_view name, const Value& list, std::vector<Subnet>& out) {
    if (list.is_null()) return;
    if (!list.is_array()) return fail(name, "must be a list");
    for (const auto& item : list.items()) {
      // An address alone is a subnet of one.
      const auto ip = Ip::parse(item.as_string());
      const auto subnet =
          ip.ok() ? Result<Subnet>({*ip, ip->width()}) : Subnet::parse_lenient(item.as_string());
      if (!subnet.ok()) return fail(name, subnet.error().message());
      if (std::find(out.begin(), out.end(), *subnet) == out.end()) out.push_back(*subnet);
    }
  }

  void fail(std::string_view name, std::string_view why) {
    if (!error_) error_ = Error::invalid(cat("coordinator: ", name, ": ", why));
  }

  Result<CoordinatorConfig> finish(CoordinatorConfig out) {
    for (const auto& [key, value] : config_.members()) {
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        fail(key, "is not supported");
      }
    }
    if (error_) return *error_;
    return out;
  }

 private:
  const Value& config_;
  const Value& fallback_;
  std::vector<std::string_view> known_;
  std::optional<Error> error_;
};

void read_mode(Fields& fields, CoordinatorConfig& out) {
  std::string mode = "auto";
  fields.text("mode", mode);
  if (mode == "auto" || mode.empty()) {
    out.mode = CoordinatorMode::automatic;
  } else if (mode == "underlay") {
    out.mode = CoordinatorMode::underlay;
  } else if (mode == "overlay") {
    out.mode = CoordinatorMode::overlay;
  } else if (mode == "disabled" || mode == "disable") {
    out.mode = CoordinatorMode::disabled;
  } else {
    fields.fail("mode", "must be auto, underlay, overlay or disabled");
  }
}

void read_mac_prefix(Fields& fields, CoordinatorConfig& out) {
  fields.text("podMACPrefix", out.mac_prefix);
  if (out.mac_prefix.empty()) return;
  const auto bytes = mac_bytes(out.mac_prefix + ":00:00:00:00");
  if (bytes.empty() || (bytes[0] & 1) != 0) {
    fields.fail("podMACPrefix", "must be two bytes as 0a:1b, of one machine and not of a group");
  }
}

void read_rp_filter(Fields& fields, std::string_view name, std::optional<int>& out) {
  int value = 0;
  fields.number(name, -1, 2, value);
  if (value < 0) {
    out.reset();
  } else {
    out = value;
  }
}

Value texts(const std::vector<std::string>& list) {
  Value out = Value::array();
  for (const auto& text : list) out.push(text);
  return out;
}

void read_subnets(Fields& fields, const CoordinatorFacts& facts, CoordinatorConfig& out) {
  std::string type;
  fields.text("podCIDRType", type);
  const Value& pods = fields["overlayPodCIDR"];
  const Value& services = fields["serviceCIDR"];
  if (type != "none") {
    fields.subnets("overlayPodCIDR", pods.is_null() ? texts(facts.pod_cidrs) : pods, out.by_host);
  }
  fields.subnets("serviceCIDR", services.is_null() ? texts(facts.service_cidrs) : services,
                 out.by_host);
  fields.subnets("hijackCIDR", fields["hijackCIDR"], out.by_host);
}

}  // namespace

Result<CoordinatorConfig> read_coordinator_config(const Value& config,
                                                  const CoordinatorFacts& facts) {
  CoordinatorConfig out;
  Fields fields(config, facts.spec);
  read_mode(fields, out);
  read_subnets(fields, facts, out);
  read_mac_prefix(fields, out);
  fields.flag("tunePodRoutes", out.tune_routes);
  // The object and the plugin's own configuration spell it differently.
  fields.text("podDefaultRouteNIC", out.default_route_nic);
  fields.text("podDefaultRouteNic", out.default_route_nic);
  // What the pod itself says counts more.
  if (!facts.default_route_nic.empty()) out.default_route_nic = facts.default_route_nic;
  fields.number("hostRuleTable", 1, std::numeric_limits<int>::max(), out.host_table);
  if (out.host_table >= 253 && out.host_table <= 255) {
    fields.fail("hostRuleTable", "253 to 255 are the kernel's own");
  }
  read_rp_filter(fields, "hostRPFilter", out.host_rp_filter);
  read_rp_filter(fields, "podRPFilter", out.pod_rp_filter);
  fields.number("txQueueLen", 0, 1'000'000, out.tx_queue);
  fields.flag("detectIPConflict", out.detect_conflict);
  fields.flag("detectGateway", out.detect_gateway);
  fields.number("vethMTU", 0, 65535, out.veth_mtu);
  return fields.finish(std::move(out));
}

std::string mac_with_prefix(std::string_view prefix, const Ip& ip) {
  const auto bytes = ip_bytes(ip);
  return cat(prefix, ":", mac_text(bytes.data() + bytes.size() - 4, 4));
}

std::string host_veth_name(std::string_view container) {
  // Any text gives a name of 15 characters; the same text the same one.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : container) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  std::string name = "veth";
  for (int i = 0; i < 11; ++i, hash >>= 4) name.push_back("0123456789abcdef"[hash & 15]);
  return name;
}

}  // namespace dibs::drivers::net
