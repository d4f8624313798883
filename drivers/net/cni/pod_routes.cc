#include "drivers/net/cni/pod_routes.h"

#include <algorithm>
#include <charconv>

namespace dibs::drivers::net {
namespace {

/// Of net<number>; 0 for any other name.
int number_of(std::string_view name) {
  if (!name.starts_with("net")) return 0;
  int number = 0;
  const auto digits = name.substr(3);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole && number > 0 && number < 150 ? number : 0;
}

bool is_link_local(const Subnet& subnet) {
  static const Subnet kLinkLocal{{true, static_cast<IpBits>(0xfe80) << 112}, 10};
  return subnet.base.v6 && kLinkLocal.contains(subnet.base);
}

}  // namespace

int table_of(const PodInterface& interface, const std::vector<KernelRule>& rules) {
  if (interface.name == "eth0") return kFirstTable;
  if (const int number = number_of(interface.name); number > 0) return kFirstTable + number;
  for (const auto& rule : rules) {
    if (!rule.from || rule.priority != kRulePriority) continue;
    for (const auto& ip : interface.ips) {
      if (rule.from->base == ip) return rule.table;
    }
  }
  // Beyond those that names decide.
  for (int table = kFirstTable + 150;; ++table) {
    if (table >= 253 && table <= 255) continue;
    if (std::none_of(rules.begin(), rules.end(),
                     [&](const auto& rule) { return rule.table == table; })) {
      return table;
    }
  }
}

PodRouting routing_of(const PodInterface& interface, int table, int to_host,
                      const std::vector<KernelRoute>& present) {
  PodRouting out;
  const auto add = [&](KernelRoute route) {
    route.table = table;
    out.routes.push_back(std::move(route));
  };
  // What leads to a subnet first, what goes by a gateway in it after.
  for (const bool by_gateway : {false, true}) {
    for (const auto& route : present) {
      if (route.table != kMainTable || !route.unicast || is_link_local(route.dst)) continue;
      if (route.gateway.has_value() != by_gateway) continue;
      const bool own = route.device == interface.device;
      const bool way = route.device == to_host && route.dst.prefix > 0;
      if (own || way) add(route);
    }
  }
  for (const auto& route : default_routes(interface)) add(route);
  for (const auto& ip : interface.ips) {
    out.rules.push_back({ip.v6, Subnet{ip, ip.width()}, table, kRulePriority});
  }
  return out;
}

std::vector<KernelRoute> default_routes(const PodInterface& interface) {
  std::vector<KernelRoute> out;
  for (const auto& gateway : interface.gateways) {
    KernelRoute route;
    route.dst = {{gateway.v6, 0}, 0};
    route.gateway = gateway;
    route.device = interface.device;
    out.push_back(route);
  }
  return out;
}

DefaultChange change_defaults(const PodInterface& interface, bool wanted,
                              const std::vector<KernelRoute>& present) {
  DefaultChange out;
  for (const bool v6 : {false, true}) {
    std::vector<KernelRoute> own;
    std::vector<KernelRoute> others;
    for (const auto& route : present) {
      if (route.table != kMainTable || !route.unicast || route.dst.prefix != 0) continue;
      if (route.v6() != v6) continue;
      (route.device == interface.device ? own : others).push_back(route);
    }
    std::vector<KernelRoute> new_ones;
    for (const auto& route : default_routes(interface)) {
      if (route.v6() == v6) new_ones.push_back(route);
    }
    if (wanted && !new_ones.empty()) {
      if (own.empty()) out.set.insert(out.set.end(), new_ones.begin(), new_ones.end());
      out.remove.insert(out.remove.end(), others.begin(), others.end());
    } else if (!others.empty()) {
      out.remove.insert(out.remove.end(), own.begin(), own.end());
    }
  }
  return out;
}

}  // namespace dibs::drivers::net
