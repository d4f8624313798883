#include "node/runtime/machine_network.h"

#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "node/runtime/image_record.h"
#include "node/runtime/traces.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFlag = "--service-cluster-ip-range";
constexpr Duration kCommandLimit = std::chrono::seconds(20);

std::uint32_t hex_number(std::string_view text) {
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

std::string short_digest(const std::string& name) { return digest_of(name).substr(7, 8); }

/// Of another network here.
struct Claim {
  std::string folder;
  std::string owner;
  std::string bridge;
  std::vector<Ipv4Range> ranges;  // of pods and of Services
};

std::string read_or_empty(const std::string& path) {
  auto text = runtime::system_files().read(path);
  return text.ok() ? std::move(*text) : "";
}

std::vector<Ipv4Range> ranges_in(const std::string& state) {
  std::vector<Ipv4Range> out;
  for (const char* file : {"/range", "/services"}) {
    if (auto range = Ipv4Range::parse(read_or_empty(state + file)); range.ok()) {
      out.push_back(*range);
    }
  }
  return out;
}

/// The owner's folder is gone, and no pod is on the bridge.
bool is_orphan(const Claim& claim) {
  std::error_code failed;
  if (!claim.owner.starts_with('/') || fs::exists(claim.owner, failed) || failed) return false;
  // Without a bridge, too, there is nothing to begin with.
  return fs::is_empty(cat("/sys/class/net/", claim.bridge, "/brif"), failed) || failed;
}

std::vector<Claim> claims_in(const std::string& home) {
  std::vector<Claim> out;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(home, failed)) {
    const std::string folder = entry.path().string();
    if (!entry.path().filename().string().starts_with("net-")) continue;
    const std::string owner = read_or_empty(folder + "/owner");
    std::vector<Ipv4Range> ranges = ranges_in(folder);
    if (owner.empty() || ranges.empty()) continue;
    out.push_back({folder, owner, bridge_name(owner), std::move(ranges)});
  }
  return out;
}

std::vector<Claim> claims_of_others(const std::string& state) {
  auto claims = claims_in(fs::path(state).parent_path());
  std::erase_if(claims, [&](const Claim& claim) { return claim.folder == state; });
  return claims;
}

bool is_of(const Claim& claim, const std::string& folder) {
  return claim.owner == folder || claim.owner.starts_with(folder + "/");
}

/// What is taken on this machine, each with the words for it.
struct Taken {
  std::vector<Ipv4Range> ranges;
  std::vector<std::string> by;

  void add(const Ipv4Range& range, std::string who) {
    ranges.push_back(range);
    by.push_back(std::move(who));
  }
  /// "": it is free.
  std::string meets(const Ipv4Range& range) const {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].overlaps(range)) return cat(ranges[i].text(), " is ", by[i]);
    }
    return "";
  }
};

Taken taken_by_others(const NetworkOptions& options) {
  Taken taken;
  const auto others = claims_of_others(options.state);
  for (const Claim& claim : others) {
    if (is_orphan(claim)) continue;
    for (const Ipv4Range& range : claim.ranges) {
      taken.add(range, cat("of another cluster on this machine (", claim.owner, ")"));
    }
  }
  const std::string routes = read_or_empty("/proc/thread-self/net/route");
  for (const Ipv4Range& range : routes_of(routes, bridge_name(options.name))) {
    bool claimed = false;
    for (const Claim& claim : others) {
      for (const Ipv4Range& own : claim.ranges) claimed = claimed || own == range;
    }
    // Claims tell of other clusters' routes, and which of those are orphans.
    if (!claimed) taken.add(range, "a route of this machine");
  }
  return taken;
}

Error refusal(const ServiceRange& services, const std::string& why, const Taken& taken) {
  const std::string what = cat(kFlag, ' ', quoted(services.range), ": ", why);
  if (services.kept) {
    return Error::conflict(cat(what,
                               ", and this cluster's Services have it for life; take the other "
                               "away first (of a cluster that has ended: its folder)"));
  }
  const std::string free = pick_service_range(taken.ranges);
  return Error::bad_request(
      cat(what, "; give one that is free", free.empty() ? "" : cat(", for example ", free)));
}

/// The range of Services as it was asked for, or one that is free.
Result<std::string> choose_services(const NetworkOptions& options, const ServiceRange& services,
                                    Taken taken) {
  const std::string& asked = services.range;
  const std::string known = read_or_empty(options.state + "/services");
  if (!known.empty() && (asked.empty() || asked == known)) return known;
  if (auto pods = Ipv4Range::parse(read_or_empty(options.state + "/range")); pods.ok()) {
    taken.add(*pods, "the range of this cluster's pods");
  }
  if (asked.empty()) {
    std::string picked = pick_service_range(taken.ranges);
    if (picked.empty()) {
      return Error::unavailable(
          cat("no free range of addresses for Services; name one by ", kFlag));
    }
    return picked;
  }
  auto range = parse_service_range(asked);
  if (!range.ok()) return range.error().within(kFlag);
  if (const std::string why = taken.meets(*range); !why.empty())
    return refusal(services, why, taken);
  return asked;
}

Result<std::string> choose_pods(const NetworkOptions& options, const std::string& services,
                                Taken taken) {
  if (std::string known = read_or_empty(options.state + "/range"); !known.empty()) return known;
  if (auto range = Ipv4Range::parse(services); range.ok()) taken.add(*range, "of Services");
  std::string picked = pick_range(options.name, taken.ranges);
  if (picked.empty()) {
    return Error::unavailable("no free range of addresses for pods from 10.64.0.0 to 10.191.0.0");
  }
  return picked;
}

MachineRanges ranges_of(const NetworkOptions& options, const std::string& pods,
                        const std::string& services) {
  auto range = Ipv4Range::parse(pods);
  return {bridge_name(options.name), pods, range.ok() ? range->address(1) : "", services};
}

Result<> note(const std::string& path, const std::string& text) {
  if (read_or_empty(path) == text) return success();
  return runtime::system_files().write(path, text, 0644);
}

/// `asked` null: of pods alone.
Result<MachineRanges> claim(const NetworkOptions& options, const ServiceRange* asked) {
  const fs::path home = fs::path(options.state).parent_path();
  DIBS_CHECK(runtime::system_files().make_dirs(home.string(), 0755));
  // One at a time on the machine: two that look at the same moment would find the same one free.
  DIBS_TRY(const auto lock, wait_for_lock((home / "ranges.lock").string()));
  const Taken taken = taken_by_others(options);
  std::string services = read_or_empty(options.state + "/services");
  if (asked != nullptr) {
    DIBS_TRY(services, choose_services(options, *asked, taken));
  }
  DIBS_TRY(const std::string pods, choose_pods(options, services, taken));
  for (const Claim& other : claims_of_others(options.state)) {
    if (is_orphan(other)) remove_machine_network({.name = other.owner, .state = other.folder});
  }
  DIBS_CHECK(runtime::system_files().make_dirs(options.state, 0755));
  DIBS_CHECK(note(options.state + "/owner", options.name));
  DIBS_CHECK(note(options.state + "/range", pods));
  if (!services.empty()) DIBS_CHECK(note(options.state + "/services", services));
  return ranges_of(options, pods, services);
}

Result<> run_ip(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "ip");
  auto output = runtime::run({.argv = std::move(arguments)}, {}, kCommandLimit);
  if (!output.ok()) return output.error();
  if (output->status.code == 0) return success();
  return Error::internal(std::string(trim(output->err)));
}

/// Whether it did what it should.
bool run_quietly(std::vector<std::string> argv) {
  const auto output = runtime::run({.argv = std::move(argv)}, {}, kCommandLimit);
  return output.ok() && output->status.code == 0;
}

/// Nodes that start at the same moment may each have made the rule.
void remove_rule(std::vector<std::string> rule) {
  constexpr int kMost = 32;
  rule.insert(rule.begin(), {"iptables", "--wait", "5"});
  for (int i = 0; i < kMost && run_quietly(rule); ++i) {
  }
}

/// The module br_netfilter is there and on.
bool rules_see_bridged() {
  return trim(read_or_empty("/proc/sys/net/bridge/bridge-nf-call-iptables")) == "1";
}

/// A setting of the network namespace that this is in.
Result<> set_kernel(const std::string& name, std::string_view value) {
  const std::string path = "/proc/sys/net/ipv4/" + name;
  if (trim(read_or_empty(path)) == value) return success();
  std::ofstream file(path);
  file << value << std::flush;
  if (!file) return Error::internal(cat("cannot set ", path, " to ", value));
  return success();
}

}  // namespace

NetworkOptions network_of_folder(NetworkOptions options) {
  std::error_code failed;
  options.name = fs::weakly_canonical(fs::absolute(options.name, failed), failed).string();
  if (options.state.empty()) options.state = cat(kRunHome, "/net-", short_digest(options.name));
  return options;
}

std::string policy_table(const std::string& bridge) { return bridge + "-policy"; }

std::string bridge_name(const std::string& network) { return cat("dibs-", short_digest(network)); }

namespace {

/// Routes but the default one, by interface.
std::vector<std::pair<std::string, Ipv4Range>> read_routes(std::string_view text) {
  std::vector<std::pair<std::string, Ipv4Range>> out;
  for (const auto line : split(text, '\n')) {
    std::vector<std::string_view> fields;
    for (const auto field : split(line, '\t')) fields.push_back(trim(field));
    if (fields.size() < 8 || fields[0] == "Iface") continue;
    // As the machine's memory has it: the first byte of the address is the lowest.
    const std::uint32_t mask = __builtin_bswap32(hex_number(fields[7]));
    if (mask == 0) continue;
    const Ipv4Range range{__builtin_bswap32(hex_number(fields[1])) & mask,
                          __builtin_popcount(mask)};
    out.emplace_back(fields[0], range);
  }
  return out;
}

}  // namespace

std::vector<Ipv4Range> routes_of(std::string_view text, std::string_view except) {
  std::vector<Ipv4Range> out;
  for (const auto& [interface, range] : read_routes(text)) {
    if (interface != except) out.push_back(range);
  }
  return out;
}

std::string other_owner_of(const NetworkOptions& options, const Ipv4Range& range) {
  const auto routes = read_routes(read_or_empty("/proc/thread-self/net/route"));
  for (const Claim& claim : claims_of_others(options.state)) {
    if (is_orphan(claim)) continue;
    std::vector<Ipv4Range> ranges = claim.ranges;
    // Ranges that were added to a cluster are claimed by nothing but their routes.
    for (const auto& [interface, to] : routes) {
      if (interface == claim.bridge) ranges.push_back(to);
    }
    for (const Ipv4Range& own : ranges) {
      if (own.overlaps(range))
        return cat("another cluster on this machine, ", own.text(), " (", claim.owner, ")");
    }
  }
  return "";
}

namespace {

bool is_free(const Ipv4Range& range, const std::vector<Ipv4Range>& taken) {
  for (const Ipv4Range& other : taken) {
    if (other.overlaps(range)) return false;
  }
  return true;
}

}  // namespace

std::string pick_range(const std::string& name, const std::vector<Ipv4Range>& taken) {
  constexpr unsigned kFirst = 64, kCount = 128;
  const unsigned start = hex_number(digest_of(name).substr(7, 4));
  for (unsigned i = 0; i < kCount; ++i) {
    const Ipv4Range range{(10U << 24) | ((kFirst + (start + i) % kCount) << 16), 16};
    if (is_free(range, taken)) return range.text();
  }
  return "";
}

std::string pick_service_range(const std::vector<Ipv4Range>& taken) {
  // Below those of pods; where a machine has all of 10.0.0.0/8, at the end of 172.16.0.0/12.
  for (std::uint32_t i = 0; i < 64; ++i) {
    const Ipv4Range range{(10U << 24) | (i << 16), 24};
    if (is_free(range, taken)) return range.text();
  }
  for (std::uint32_t i = 255; i > 0; --i) {
    const Ipv4Range range{(172U << 24) | (31U << 16) | (i << 8), 24};
    if (is_free(range, taken)) return range.text();
  }
  return "";
}

Result<> check_service_range(const NetworkOptions& options, const std::string& services) {
  auto range = parse_service_range(services);
  if (!range.ok()) return range.error().within(kFlag);
  if (auto chosen = choose_services(options, {services}, taken_by_others(options)); !chosen.ok()) {
    return chosen.error();
  }
  return success();
}

Result<MachineRanges> claim_ranges(const NetworkOptions& options, const ServiceRange& services) {
  return claim(options, &services);
}

Result<MachineRanges> claim_pod_range(const NetworkOptions& options) {
  const std::string known = read_or_empty(options.state + "/range");
  if (known.empty()) return claim(options, nullptr);
  return ranges_of(options, known, read_or_empty(options.state + "/services"));
}

Result<> make_bridge(const MachineRanges& ranges) {
  const std::string& bridge = ranges.bridge;
  const auto make = [&]() -> Result<> {
    // An address of its own: else it would be that of its lowest port, and change with the pods.
    const std::string digest = digest_of(bridge).substr(7, 10);
    std::string mac = "02";
    for (std::size_t i = 0; i < digest.size(); i += 2) append(mac, ':', digest.substr(i, 2));
    (void)run_ip({"link", "add", bridge, "address", mac, "type", "bridge"}).ok();
    const auto bits = ranges.pods.substr(ranges.pods.find('/'));
    DIBS_CHECK(run_ip({"address", "replace", ranges.gateway + bits, "dev", bridge}));
    DIBS_CHECK(run_ip({"link", "set", bridge, "up"}));
    DIBS_CHECK(set_kernel("ip_forward", "1"));
    // Pods reach each other through this machine, not past it: it answers for them.
    DIBS_CHECK(
        set_kernel(cat("conf/", bridge, "/proxy_arp_pvlan"), rules_see_bridged() ? "0" : "1"));
    std::error_code failed;
    for (const auto& port :
         fs::directory_iterator(cat("/sys/class/net/", bridge, "/brif"), failed)) {
      // One that is gone meanwhile is no harm.
      (void)isolate_port(port.path().filename().string()).ok();
    }
    if (ranges.services.empty()) return success();
    // A metric of its own: nodes of one cluster may share a machine, and none takes another's away.
    const std::string metric = std::to_string(1 + hex_number(digest.substr(0, 4)));
    return run_ip({"route", "replace", ranges.services, "dev", bridge, "metric", metric});
  };
  if (auto made = make(); !made.ok()) {
    return made.error().within(cat("cannot make the pods' network ", bridge));
  }
  return success();
}

Result<> isolate_port(const std::string& interface) {
  // As `bridge link set dev … isolated on`, without the process: pods wait for this.
  struct {
    nlmsghdr head;
    ifinfomsg link;
    nlattr port;
    nlattr isolated;
    std::uint8_t on;
    std::uint8_t padding[3];
  } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_SETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  request.link.ifi_family = AF_BRIDGE;
  request.link.ifi_index = static_cast<int>(::if_nametoindex(interface.c_str()));
  request.port.nla_len = sizeof request.port + sizeof request.isolated + 4;
  request.port.nla_type = IFLA_PROTINFO | NLA_F_NESTED;
  request.isolated.nla_len = sizeof request.isolated + 1;
  request.isolated.nla_type = IFLA_BRPORT_ISOLATED;
  request.on = rules_see_bridged() ? 0 : 1;
  const auto failure = [&](int code) {
    return Error::internal(
        cat("cannot isolate ", interface, " on its bridge: ", std::strerror(code)));
  };
  const runtime::Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.ok() || ::send(socket.get(), &request, sizeof request, 0) < 0) return failure(errno);
  struct {
    nlmsghdr head;
    nlmsgerr error;
    char rest[512];
  } answer = {};
  if (::recv(socket.get(), &answer, sizeof answer, 0) < 0) return failure(errno);
  if (answer.head.nlmsg_type == NLMSG_ERROR && answer.error.error != 0) {
    return failure(-answer.error.error);
  }
  return success();
}

void remove_machine_network(const NetworkOptions& options) {
  const std::string bridge = bridge_name(options.name);
  if (const std::string pods = read_or_empty(options.state + "/range"); !pods.empty()) {
    remove_rule(
        {"-t", "nat", "-D", "POSTROUTING", "-s", pods, "!", "-d", pods, "-j", "MASQUERADE"});
  }
  for (const char* way : {"-i", "-o"}) {
    remove_rule({"-D", "FORWARD", way, bridge, "-j", "ACCEPT"});
  }
  run_quietly({"nft", "delete", "table", "inet", bridge});
  run_quietly({"nft", "delete", "table", "inet", policy_table(bridge)});
  run_quietly({"ip", "link", "delete", bridge});
  std::error_code failed;
  fs::remove_all(options.state, failed);
}

bool has_network(const std::string& folder) {
  const auto claims = claims_in(kRunHome);
  return std::any_of(claims.begin(), claims.end(),
                     [&](const Claim& claim) { return is_of(claim, folder); });
}

void remove_networks_of(const std::string& folder) {
  for (const Claim& claim : claims_in(kRunHome)) {
    if (is_of(claim, folder)) remove_machine_network({.name = claim.owner, .state = claim.folder});
  }
}

void remove_abandoned_networks() {
  const auto lock = wait_for_lock(cat(kRunHome, "/ranges.lock"));
  for (const Claim& claim : claims_in(kRunHome)) {
    if (is_orphan(claim)) remove_machine_network({.name = claim.owner, .state = claim.folder});
  }
}

}  // namespace dibs::node
