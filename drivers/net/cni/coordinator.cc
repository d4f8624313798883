// The plugin `coordinator`, last in a list.
//
// Underlay: the pod's eth0 is on a network of the machine's own (macvlan and the like), by which
// the machine itself cannot be reached. So there is a pair of devices, veth0 in the pod and one on
// the host, with routes to the other side's addresses at both ends; what shall go through the host
// (services, other pods) goes that way, too. Overlay: eth0 reaches the host already.
//
// On the host, routes to pods lie in a table of their own, with one rule that leads there. They go
// away with the host's end of the pair, so nothing is left of a sandbox whose namespace is gone.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/strings.h"
#include "drivers/net/cni/coordinator_config.h"
#include "drivers/net/cni/neighbour_probe.h"
#include "drivers/net/cni/netlink.h"
#include "drivers/net/cni/network_namespace.h"
#include "drivers/net/cni/plugin_call.h"
#include "drivers/net/cni/pod_routes.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

constexpr const char* kFirst = "eth0";
constexpr const char* kToHost = "veth0";
constexpr const char* kLockFolder = "/run/spidernet";
constexpr Duration kCallLimit = std::chrono::seconds(20);
constexpr std::size_t kMostHostAddresses = 64;
constexpr int kLoopback = 1;  // its index in every namespace

std::string socket_of(const PluginCall& call) {
  struct stat there = {};
  if (!call.socket.empty() && ::stat(call.socket.c_str(), &there) == 0) return call.socket;
  return std::string(kDefaultSocket);
}

/// Held while the host's rule comes or goes: one plugin must not take away what another needs.
Result<runtime::Fd> lock_host() {
  std::error_code failed;
  std::filesystem::create_directories(kLockFolder, failed);
  const std::string path = cat(kLockFolder, "/coordinator.lock");
  runtime::Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.ok()) return Error::internal(cat("cannot open ", path, ": ", std::strerror(errno)));
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR)
      return Error::internal(cat("cannot lock ", path, ": ", std::strerror(errno)));
  }
  return file;
}

/// Of the namespace in which it is called. An interface that came and went is no failure.
void set_rp_filter(const std::string& interface, int value) {
  std::ofstream(cat("/proc/sys/net/ipv4/conf/", interface, "/rp_filter")) << value;
}

Result<> bring_up(Netlink& kernel, const KernelLink& link) {
  if (link.up) return success();
  LinkChange change;
  change.up = true;
  return kernel.change_link(link.index, change);
}

Subnet host_route(const Ip& ip) { return {ip, ip.width()}; }

bool has_family(const std::vector<Ip>& ips, bool v6) {
  return std::any_of(ips.begin(), ips.end(), [&](const Ip& ip) { return ip.v6 == v6; });
}

/// One ADD.
class Attachment {
 public:
  Attachment(const PluginCall& call, const CoordinatorConfig& config, NetworkNamespace space)
      : call_(call), config_(config), space_(std::move(space)), result_(pass_on(call)) {}

  Result<Value> run() {
    DIBS_CHECK(read_result());
    DIBS_CHECK(read_host());
    DIBS_CHECK(space_.inside([this] { return check_interface(); }));
    if (underlay_) DIBS_CHECK(connect_host());
    DIBS_CHECK(space_.inside([this] { return finish_pod(); }));
    return result_;
  }

  const KernelLink& link() const { return link_; }

 private:
  bool is_first() const { return call_.interface == kFirst; }

  Result<> read_result() {
    nic_.name = call_.interface;
    for (const auto& one : result_addresses(result_)) {
      DIBS_TRY(const Ip ip, Ip::parse(one.address.substr(0, one.address.find('/'))));
      nic_.ips.push_back(ip);
      if (one.gateway.empty()) continue;
      DIBS_TRY(const Ip gateway, Ip::parse(one.gateway));
      nic_.gateways.push_back(gateway);
    }
    return success();
  }

  Result<> read_host() {
    DIBS_TRY(Netlink kernel, Netlink::open());
    DIBS_TRY(const auto addresses, kernel.addresses());
    // Those of loopback, which stand for services, come last: the first one is a gateway.
    for (const bool loopback : {false, true}) {
      for (const auto& address : addresses) {
        if (address.link_scope || (address.device == kLoopback) != loopback) continue;
        if (!has_family(nic_.ips, address.ip.v6)) continue;
        if (host_ips_.size() < kMostHostAddresses) host_ips_.push_back(address.ip);
      }
    }
    return success();
  }

  /// In the pod: what the address and the interface must be before anybody uses them.
  Result<> check_interface() {
    DIBS_TRY(Netlink kernel, Netlink::open());
    DIBS_TRY(link_, kernel.link(call_.interface));
    DIBS_TRY(const auto to_host, kernel.find_link(kToHost));
    underlay_ = config_.mode == CoordinatorMode::underlay ||
                (config_.mode == CoordinatorMode::automatic && (is_first() || to_host));
    if (config_.detect_conflict) {
      for (const auto& ip : nic_.ips) DIBS_CHECK(check_conflict(kernel, link_, ip));
    }
    LinkChange change;
    if (!config_.mac_prefix.empty() && !nic_.ips.empty()) {
      change.mac = mac_with_prefix(config_.mac_prefix, nic_.ips.front());
    }
    if (config_.tx_queue > 0) change.tx_queue = config_.tx_queue;
    if (!change.mac.empty() || change.tx_queue) {
      DIBS_CHECK(kernel.change_link(link_.index, change));
      DIBS_TRY(link_, kernel.link(call_.interface));
      tell_mac();
    }
    nic_.device = link_.index;
    if (config_.detect_gateway) {
      for (const auto& gateway : nic_.gateways) DIBS_CHECK(check_gateway(kernel, link_, gateway));
    }
    return success();
  }

  void tell_mac() {
    for (std::size_t i = 0; i < result_["interfaces"].size(); ++i) {
      const Value& one = result_["interfaces"][i];
      if (one["name"].as_string() != call_.interface || one["sandbox"].as_string().empty()) {
        continue;
      }
      result_.mut("interfaces").mut(i).set("mac", link_.mac);
    }
  }

  /// On the host: the pair, and the pod's addresses behind it.
  Result<> connect_host() {
    DIBS_TRY(const runtime::Fd lock, lock_host());
    DIBS_TRY(Netlink kernel, Netlink::open());
    DIBS_TRY(const KernelLink outside, make_pair(kernel));
    if (config_.host_rp_filter) set_rp_filter(outside.name, *config_.host_rp_filter);
    host_mac_ = outside.mac;
    for (const auto& ip : nic_.ips) {
      KernelRoute route;
      route.dst = host_route(ip);
      route.device = outside.index;
      route.table = config_.host_table;
      DIBS_CHECK(kernel.replace_route(route));
      DIBS_CHECK(kernel.set_neighbour(outside.index, ip, pod_mac_));
    }
    for (const bool v6 : {false, true}) {
      if (!has_family(nic_.ips, v6)) continue;
      DIBS_CHECK(kernel.add_rule({v6, std::nullopt, config_.host_table, kRulePriority}));
    }
    return success();
  }

  Result<KernelLink> make_pair(Netlink& kernel) {
    const std::string name = host_veth_name(call_.container);
    const auto find_inside = [this](std::optional<KernelLink>& out) {
      return space_.inside([&out]() -> Result<> {
        DIBS_TRY(Netlink pod, Netlink::open());
        DIBS_TRY(out, pod.find_link(kToHost));
        if (out) DIBS_CHECK(bring_up(pod, *out));
        return success();
      });
    };
    std::optional<KernelLink> inside;
    DIBS_CHECK(find_inside(inside));
    DIBS_TRY(auto outside, kernel.find_link(name));
    // Halves of two pairs are of no use.
    if (outside && !inside) DIBS_CHECK(kernel.remove_link(outside->index));
    if (!inside) {
      const int mtu = config_.veth_mtu > 0 ? config_.veth_mtu : link_.mtu;
      DIBS_CHECK(kernel.add_veth(name, kToHost, space_.fd(), mtu));
      DIBS_CHECK(find_inside(inside));
    }
    DIBS_TRY(const KernelLink made, kernel.link(name));
    DIBS_CHECK(bring_up(kernel, made));
    if (inside) pod_mac_ = inside->mac;
    return made;
  }

  /// In the pod: routes to and by the host, the tables of its interfaces, news for neighbours.
  Result<> finish_pod() {
    DIBS_TRY(Netlink kernel, Netlink::open());
    DIBS_TRY(const int way, underlay_ ? routes_by_pair(kernel) : routes_by_first(kernel));
    if (config_.pod_rp_filter) {
      for (const auto& name : {std::string("all"), call_.interface, std::string(kToHost)}) {
        set_rp_filter(name, *config_.pod_rp_filter);
      }
    }
    if (config_.tune_routes && !is_first()) DIBS_CHECK(tune(kernel, way));
    for (const auto& ip : nic_.ips) DIBS_CHECK(announce(link_, ip));
    return success();
  }

  /// The address that packets to the host have: the pod's own, of eth0.
  std::optional<Ip> source(const std::vector<Ip>& ips, bool v6) const {
    for (const auto& ip : ips) {
      if (ip.v6 == v6) return ip;
    }
    return std::nullopt;
  }

  Result<int> routes_by_pair(Netlink& kernel) {
    DIBS_TRY(const KernelLink way, kernel.link(kToHost));
    DIBS_TRY(const PodInterface first, interface(kernel, kFirst));
    const auto& sources = first.ips.empty() ? nic_.ips : first.ips;
    for (const auto& ip : host_ips_) {
      KernelRoute route;
      route.dst = host_route(ip);
      route.device = way.index;
      route.source = source(sources, ip.v6);
      DIBS_CHECK(kernel.replace_route(route));
      DIBS_CHECK(kernel.set_neighbour(way.index, ip, host_mac_));
    }
    for (const auto& subnet : config_.by_host) {
      const auto gateway = source(host_ips_, subnet.base.v6);
      if (!gateway) continue;  // the pod or the host has no address of that family
      KernelRoute route;
      route.dst = subnet;
      route.gateway = gateway;
      route.device = way.index;
      route.source = source(sources, subnet.base.v6);
      DIBS_CHECK(kernel.replace_route(route));
    }
    return way.index;
  }

  /// So that they stay with eth0 whichever interface has the default route.
  Result<int> routes_by_first(Netlink& kernel) {
    DIBS_TRY(const auto first, kernel.find_link(kFirst));
    if (!first || is_first()) return 0;
    DIBS_TRY(const auto present, kernel.routes());
    std::vector<Subnet> subnets = config_.by_host;
    for (const auto& ip : host_ips_) subnets.push_back(host_route(ip));
    for (const auto& subnet : subnets) {
      for (const auto& route : present) {
        if (route.device != first->index || route.table != kMainTable || route.dst.prefix != 0 ||
            !route.gateway || route.v6() != subnet.base.v6 || *route.gateway == subnet.base) {
          continue;
        }
        KernelRoute by_first = route;
        by_first.dst = subnet;
        DIBS_CHECK(kernel.replace_route(by_first));
      }
    }
    return first->index;
  }

  /// An interface of the pod as the kernel has it.
  Result<PodInterface> interface(Netlink& kernel, const std::string& name) {
    PodInterface out;
    out.name = name;
    DIBS_TRY(const auto link, kernel.find_link(name));
    if (!link) return out;
    out.device = link->index;
    DIBS_TRY(const auto addresses, kernel.addresses());
    for (const auto& address : addresses) {
      if (address.device == link->index && !address.link_scope) out.ips.push_back(address.ip);
    }
    return out;
  }

  Result<> tune(Netlink& kernel, int way) {
    DIBS_TRY(const PodInterface first, interface(kernel, kFirst));
    for (const PodInterface* one : {&first, static_cast<const PodInterface*>(&nic_)}) {
      if (one->device == 0) continue;
      DIBS_TRY(const auto rules, kernel.rules());
      DIBS_TRY(const auto present, kernel.routes());
      const PodRouting routing = routing_of(*one, table_of(*one, rules), way, present);
      for (const auto& route : routing.routes) DIBS_CHECK(kernel.replace_route(route));
      for (const auto& rule : routing.rules) DIBS_CHECK(kernel.add_rule(rule));
    }
    DIBS_TRY(const auto present, kernel.routes());
    const bool wanted = config_.default_route_nic == call_.interface;
    const DefaultChange change = change_defaults(nic_, wanted, present);
    for (const auto& route : change.set) DIBS_CHECK(kernel.replace_route(route));
    for (const auto& route : change.remove) DIBS_CHECK(kernel.remove_route(route));
    return success();
  }

  const PluginCall& call_;
  const CoordinatorConfig& config_;
  const NetworkNamespace space_;
  Value result_;
  PodInterface nic_;
  KernelLink link_;
  bool underlay_ = false;
  std::vector<Ip> host_ips_;
  std::string host_mac_;
  std::string pod_mac_;
};

/// Takes the host's end away once no interface of the pod needs it.
Result<> disconnect_host(const PluginCall& call, const CoordinatorConfig& config, bool all) {
  DIBS_TRY(const runtime::Fd lock, lock_host());
  DIBS_TRY(Netlink kernel, Netlink::open());
  DIBS_TRY(const auto outside, kernel.find_link(host_veth_name(call.container)));
  DIBS_TRY(const auto routes, kernel.routes());
  std::vector<Ip> own;
  for (const auto& one : result_addresses(call.previous())) {
    const auto ip = Ip::parse(one.address.substr(0, one.address.find('/')));
    if (ip.ok()) own.push_back(*ip);
  }
  // Where its routes are: the configuration of its time may have named another table.
  std::set<int> tables = {config.host_table};
  for (const auto& route : routes) {
    if (outside && route.unicast && route.device == outside->index && route.table != kMainTable) {
      tables.insert(route.table);
    }
  }
  bool needed = false;
  std::set<std::pair<int, bool>> used;  // by whom else: table, and whether of IPv6
  for (const auto& route : routes) {
    if (!route.unicast || !tables.contains(route.table)) continue;
    if (!outside || route.device != outside->index) {
      used.emplace(route.table, route.v6());
    } else if (std::find(own.begin(), own.end(), route.dst.base) != own.end()) {
      DIBS_CHECK(kernel.remove_route(route));
    } else {
      needed = true;
    }
  }
  if (outside && (all || !needed)) {
    DIBS_CHECK(kernel.remove_link(outside->index));
    needed = false;
  }
  if (needed) return success();
  for (const int table : tables) {
    for (const bool v6 : {false, true}) {
      if (used.contains({table, v6})) continue;
      DIBS_CHECK(kernel.remove_rule({v6, std::nullopt, table, kRulePriority}));
    }
  }
  return success();
}

/// Rules and routes of one interface, where its namespace is still there.
Result<> forget_interface(const PluginCall& call) {
  DIBS_TRY(Netlink kernel, Netlink::open());
  PodInterface nic;
  nic.name = call.interface;
  for (const auto& one : result_addresses(call.previous())) {
    const auto ip = Ip::parse(one.address.substr(0, one.address.find('/')));
    if (ip.ok()) nic.ips.push_back(*ip);
  }
  DIBS_TRY(const auto rules, kernel.rules());
  const int table = table_of(nic, rules);
  for (const auto& rule : rules) {
    if (rule.table == table && rule.priority == kRulePriority) {
      DIBS_CHECK(kernel.remove_rule(rule));
    }
  }
  DIBS_TRY(const auto routes, kernel.routes());
  for (const auto& route : routes) {
    if (route.table == table && route.unicast) DIBS_CHECK(kernel.remove_route(route));
  }
  return success();
}

Result<> remove(const PluginCall& call, const CoordinatorConfig& config) {
  bool gone = call.network_namespace.empty();
  if (!gone) {
    const auto space = NetworkNamespace::open(call.network_namespace);
    gone = !space.ok();
    if (space.ok()) DIBS_CHECK(space->inside([&] { return forget_interface(call); }));
  }
  return disconnect_host(call, config, gone || call.interface == kFirst);
}

NicRequest request_of(const PluginCall& call) {
  NicRequest request;
  request.pod = call.pod;
  request.interface = call.interface;
  request.container = call.container;
  return request;
}

/// Nothing where no driver is there: other IPAM plugins need none.
Result<CoordinatorFacts> ask_driver(const PluginCall& call, LocalClient& client) {
  if (call.pod.name.empty()) return CoordinatorFacts{};
  auto facts = client.coordinator(request_of(call), kCallLimit);
  if (!facts.ok() && facts.error().code() == Code::unavailable) return CoordinatorFacts{};
  if (!facts.ok()) return facts.error().within("coordinator");
  return facts;
}

Result<> tell_driver(const PluginCall& call, const Value& result, const std::string& mac,
                     LocalClient& client) {
  if (call.pod.name.empty()) return success();
  AttachedNic nic;
  nic.pod = call.pod;
  nic.interface = call.interface;
  nic.container = call.container;
  nic.mac = mac;
  for (const auto& one : result_addresses(result)) nic.ips.push_back(one.address);
  auto told = client.attached(nic, kCallLimit);
  if (told.ok() || told.error().code() == Code::unavailable) return success();
  return told.error().within("coordinator");
}

std::string mac_in(const Value& result, std::string_view interface) {
  for (const auto& one : result["interfaces"].items()) {
    if (one["name"].as_string() == interface && !one["sandbox"].as_string().empty()) {
      return one["mac"].str();
    }
  }
  return "";
}

}  // namespace

Result<Value> run_coordinator(const PluginCall& call) {
  if (call.command == "DEL") {
    // What was added is known by its names: neither a driver that is away nor a configuration that
    // was refused may hold it up.
    const auto config = read_coordinator_config(call.config, {});
    DIBS_CHECK(remove(call, config.ok() ? *config : CoordinatorConfig{}));
    return Value();
  }
  LocalClient client(socket_of(call));
  DIBS_TRY(const CoordinatorFacts facts, ask_driver(call, client));
  DIBS_TRY(const CoordinatorConfig config, read_coordinator_config(call.config, facts));
  if (call.command == "CHECK") {
    DIBS_TRY(const auto space, NetworkNamespace::open(call.network_namespace));
    DIBS_CHECK(space.inside([&call]() -> Result<> {
      DIBS_TRY(Netlink kernel, Netlink::open());
      DIBS_CHECK(kernel.link(call.interface));
      return success();
    }));
    return Value();
  }
  if (!call.previous().is_object()) {
    return Error::invalid("coordinator: prevResult: it must come after another plugin");
  }
  Value result = pass_on(call);
  std::string mac = mac_in(result, call.interface);
  if (config.mode != CoordinatorMode::disabled) {
    DIBS_TRY(auto space, NetworkNamespace::open(call.network_namespace));
    Attachment attachment(call, config, std::move(space));
    DIBS_TRY(result, attachment.run());
    mac = attachment.link().mac;
  }
  DIBS_CHECK(tell_driver(call, result, mac, client));
  return result;
}

}  // namespace dibs::drivers::net
