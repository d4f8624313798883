#include "proxy/rules.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/strings.h"

namespace dibs::proxy {
namespace {

/// A bit of the packet's mark, as kube-proxy's: the packet leaves with the machine's address.
constexpr const char* kMasquerade = "meta mark set meta mark or 0x4000";
/// How long a client's backend is remembered beyond its last connection; more than any affinity.
constexpr const char* kHomeTime = "7d";
constexpr int kClients = 65535;

/// A node's name in the table's: as it is, or by its digest, which no other node can be named.
std::string part_of(const std::string& node) {
  constexpr std::size_t kLongest = 63;
  return node.size() <= kLongest ? node : cat("sha256_", sha256_hex(node).substr(0, 40));
}

/// Builds the piece of one port of a Service.
class PortWriter {
 public:
  PortWriter(Piece& piece, const std::string& key, const ServiceView& service,
             const ServicePort& port, const Machine& machine)
      : piece_(piece), service_(service), port_(port), machine_(machine) {
    id_ = cat(key, '/', port.protocol, '/', port.port);
  }

  void write() {
    const auto anywhere = pick_anywhere(port_.backends, only_node(), machine_);
    const auto here = pick_local(port_.backends, "", machine_);
    const bool inside = service_.internal_local ? !here.empty() : !anywhere.empty();
    const std::string all = cat("svc/", id_);
    if (!anywhere.empty()) {
      by_node(all, anywhere,
              [&](const auto& node) { return pick_anywhere(port_.backends, node, machine_); });
    }
    std::string internal = all;
    if (service_.internal_local && !here.empty()) {
      internal = cat("int/", id_);
      by_node(internal, here,
              [&](const auto& node) { return pick_local(port_.backends, node, machine_); });
    }
    if (inside) element("services", at(service_.cluster_ip), cat("goto ", internal));
    outside(all, anywhere, here);
  }

 private:
  using Backends = std::vector<Backend>;

  /// With one node all that the machine sends is that node's.
  std::string only_node() const {
    return machine_.nodes.size() == 1 ? machine_.nodes.begin()->first : "";
  }
  std::string at(const std::string& address) const {
    return cat(address, " . ", port_.protocol, " . ", port_.port);
  }
  void element(const char* set, std::string key, std::string value) {
    piece_.elements[{set, std::move(key)}] = std::move(value);
  }

  /// Addresses beside the cluster's own.
  void outside(const std::string& all, const Backends& anywhere, const Backends& here) {
    const bool used =
        port_.node_port > 0 || !service_.external_ips.empty() || !service_.balancer_ips.empty();
    if (!used) return;
    const std::string port = cat(port_.protocol, " . ", port_.node_port);
    if (anywhere.empty()) {
      for (const auto* list : {&service_.external_ips, &service_.balancer_ips}) {
        for (const std::string& address : *list) element("refused", at(address), "");
      }
      if (port_.node_port > 0) element("refused-ports", port, "");
      return;
    }
    const std::string chain = cat("ext/", id_);
    auto& rules = piece_.chains[chain];
    const std::string inner = cat("ip saddr ", machine_.pods.text());
    if (service_.external_local) {
      // Who is in the cluster gets to any backend; others keep their address.
      rules.push_back(cat(inner, " goto ", all));
      rules.push_back(cat("fib saddr type local ", kMasquerade, " goto ", all));
      if (here.empty()) {
        rules.emplace_back("drop");
      } else {
        pick(rules, chain, here);
      }
    } else {
      rules.push_back(cat("ip saddr != ", machine_.pods.text(), ' ', kMasquerade));
      rules.push_back(cat("goto ", all));
    }
    for (const std::string& address : service_.external_ips) {
      element("external", at(address), cat("goto ", chain));
    }
    for (const std::string& address : service_.balancer_ips) {
      element("services", at(address), cat("goto ", balancer_chain(chain)));
    }
    if (port_.node_port > 0) element("node-ports", port, cat("goto ", chain));
  }

  std::string balancer_chain(const std::string& chain) {
    if (service_.balancer_sources.empty()) return chain;
    const std::string guarded = cat("lb/", id_);
    std::vector<std::string> rules;
    rules.push_back(cat("ip saddr != { ", join(service_.balancer_sources, ", "), " } drop"));
    rules.push_back(cat("goto ", chain));
    piece_.chains[guarded] = std::move(rules);
    return guarded;
  }

  /// A chain that picks one of `general`, or of what `of_node` gives for the sender's node.
  template <typename OfNode>
  void by_node(const std::string& chain, const Backends& general, OfNode of_node) {
    std::vector<std::string> rules;
    if (machine_.nodes.size() > 1) {
      for (const auto& [node, zone] : machine_.nodes) {
        const Backends own = of_node(node);
        if (own == general || !is_plain_name(node)) continue;
        piece_.by_node = true;
        const std::string from = cat("ip saddr @", pods_set(node));
        if (own.empty()) {
          // It keeps the Service's address, which is refused.
          rules.push_back(cat(from, " return"));
          continue;
        }
        const std::string branch = cat(chain, '/', part_of(node));
        pick(piece_.chains[branch], branch, own);
        rules.push_back(cat(from, " goto ", branch));
      }
    }
    pick(rules, chain, general);
    piece_.chains[chain] = std::move(rules);
  }

  void pick(std::vector<std::string>& rules, const std::string& chain, const Backends& backends) {
    for (const Backend& backend : backends) {
      element("hairpin", cat(backend.address, " . ", backend.address), "");
      if (port_.protocol == "udp") {
        piece_.udp.insert({backend.address, backend.port, port_.port});
        if (port_.node_port > 0) {
          piece_.udp.insert({backend.address, backend.port, port_.node_port});
        }
      }
    }
    if (service_.sticky_seconds > 0) return pick_sticky(rules, chain, backends);
    rules.push_back(cat(dnat(), one_of(backends)));
  }

  std::string dnat() const { return cat("meta l4proto ", port_.protocol, " dnat ip to "); }

  static std::string one_of(const Backends& backends) {
    if (backends.size() == 1) return cat(backends[0].address, ':', backends[0].port);
    std::string out = cat("numgen random mod ", backends.size(), " map { ");
    for (std::size_t i = 0; i < backends.size(); ++i) {
      append(out, i == 0 ? "" : ", ", i, " : ", backends[i].element());
    }
    return out + " }";
  }

  void pick_sticky(std::vector<std::string>& rules, const std::string& chain,
                   const Backends& backends) {
    const std::string live = cat("live/", chain);
    const std::string home = cat("home/", chain);
    const std::string back = cat("back/", chain);
    piece_.sets[live] =
        cat("set ", live, " { type ipv4_addr; flags dynamic,timeout; size ", kClients, "; }");
    piece_.sets[home] =
        cat("map ", home, " { type ipv4_addr : ipv4_addr . inet_service; flags dynamic,timeout; ",
            "timeout ", kHomeTime, "; size ", kClients, "; }");
    const std::string renew =
        cat("update @", live, " { ip saddr timeout ", service_.sticky_seconds, "s }");
    piece_.chains[back] = {renew, cat(dnat(), "ip saddr map @", home)};
    // Not found at home: it comes back from there, and gets another.
    rules.push_back(cat("ip saddr @", live, " jump ", back));
    std::string verdicts;
    auto& homes = piece_.homes[home];
    for (std::size_t i = 0; i < backends.size(); ++i) {
      const std::string one = cat("to/", chain, '/', backends[i].address, '/', backends[i].port);
      // An element that is there keeps its value: it has to go first. A client that no set has room
      // for is served without a home.
      piece_.chains[one] = {renew,
                            cat("delete @", home, " { ip saddr : ", backends[i].element(), " }"),
                            cat("update @", home, " { ip saddr : ", backends[i].element(), " }"),
                            cat(dnat(), backends[i].address, ':', backends[i].port)};
      homes.insert(backends[i].element());
      append(verdicts, i == 0 ? "" : ", ", i, " : goto ", one);
    }
    rules.push_back(cat("numgen random mod ", backends.size(), " vmap { ", verdicts, " }"));
  }

  Piece& piece_;
  const ServiceView& service_;
  const ServicePort& port_;
  const Machine& machine_;
  std::string id_;
};

}  // namespace

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kLongest = 253;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

std::string pods_set(const std::string& node) { return cat("pods/", part_of(node)); }

Piece make_piece(const std::string& key, const ServiceView& service, const Machine& machine) {
  Piece piece;
  const auto slash = key.find('/');
  if (slash == key.npos || !is_plain_name(key.substr(0, slash)) ||
      !is_plain_name(key.substr(slash + 1)) || service.cluster_ip.empty()) {
    return piece;
  }
  for (const ServicePort& port : service.ports) {
    PortWriter(piece, key, service, port, machine).write();
  }
  return piece;
}

namespace {

/// Each once: nft refuses a set one of whose ranges lies in another.
std::vector<std::string> service_ranges(const TableOptions& options) {
  std::vector<Ipv4Range> all = options.machine.more_services;
  all.insert(all.begin(), options.machine.services);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bool inside = false;
    for (std::size_t k = 0; k < all.size(); ++k) {
      const bool larger = all[k].bits < all[i].bits || (all[k] == all[i] && k < i);
      inside = inside || (k != i && larger && all[k].overlaps(all[i]));
    }
    if (!inside) out.push_back(all[i].text());
  }
  return out;
}

}  // namespace

std::string table_frame(const TableOptions& options) {
  const std::string pods = options.machine.pods.text();
  const std::vector<std::string> ranges = service_ranges(options);
  const std::string listed = join(ranges, ", ");
  const std::string services = ranges.size() == 1 ? listed : cat("{ ", listed, " }");
  const std::string& bridge = options.machine.bridge;
  std::string out;
  append(out, R"(map services { type ipv4_addr . inet_proto . inet_service : verdict; }
map external { type ipv4_addr . inet_proto . inet_service : verdict; }
map node-ports { type inet_proto . inet_service : verdict; }
set refused { type ipv4_addr . inet_proto . inet_service; }
set refused-ports { type inet_proto . inet_service; }
set hairpin { type ipv4_addr . ipv4_addr; }
)");
  for (const auto& [node, zone] : options.machine.nodes) {
    if (is_plain_name(node)) append(out, "set ", pods_set(node), " { type ipv4_addr; }\n");
  }
  if (!options.local_dns.empty()) {
    append(out, "chain dns {\n meta l4proto { tcp, udp } dnat ip to ", options.local_dns, "\n}\n");
  }
  append(out, R"(chain find {
 ip daddr )",
         services, " ip saddr != ", pods, " ", kMasquerade, R"(
 ip daddr . meta l4proto . th dport vmap @services
}
chain find-port {
 fib daddr type local meta l4proto . th dport vmap @node-ports
}
chain prerouting {
 type nat hook prerouting priority dstnat - 5; policy accept;
 jump find
 ip daddr . meta l4proto . th dport vmap @external
 jump find-port
}
chain output {
 type nat hook output priority -105; policy accept;
 jump find
 jump find-port
}
chain postrouting {
 type nat hook postrouting priority srcnat - 5; policy accept;
 meta mark and 0x4000 == 0x4000 meta mark set meta mark xor 0x4000 masquerade
 oifname != "lo" ip saddr . ip daddr @hairpin masquerade
}
chain refuse {
 meta l4proto tcp reject with tcp reset
 reject
}
chain check {
 ip daddr )",
         services, R"( goto refuse
}
chain check-outside {
 ip daddr . meta l4proto . th dport @refused goto refuse
}
chain forward {
 type filter hook forward priority filter - 5; policy accept;
 jump check
 jump check-outside
}
chain local-output {
 type filter hook output priority filter - 5; policy accept;
 jump check
 icmp type redirect oifname ")",
         bridge, R"(" drop
}
chain input {
 type filter hook input priority filter - 5; policy accept;
 jump check
 jump check-outside
 meta l4proto . th dport @refused-ports goto refuse
}
chain loopback {
 type filter hook prerouting priority raw; policy accept;
 iifname ")",
         bridge, R"(" ip daddr 127.0.0.0/8 drop
}
chain leaving {
 type filter hook postrouting priority 200; policy accept;
 ip daddr { )",
         listed, ", ", pods, R"( } oifname != { "lo", ")", bridge, R"(" } drop
}
)");
  return out;
}

std::map<std::pair<std::string, std::string>, std::string> frame_elements(
    const TableOptions& options) {
  std::map<std::pair<std::string, std::string>, std::string> out;
  if (options.local_dns.empty()) return out;
  for (const char* protocol : {"tcp", "udp"}) {
    out[{"services", cat(options.dns_address, " . ", protocol, " . 53")}] = "goto dns";
  }
  return out;
}

}  // namespace dibs::proxy
