#include "drivers/net/cni/netlink.h"

#include <libmnl/libmnl.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/strings.h"
#include "drivers/net/cni/netlink_message.h"

namespace dibs::drivers::net {
namespace {

/// Ours, among the protocols that `ip route` shows.
constexpr std::uint8_t kRouteProtocol = RTPROT_STATIC;

Ip any_of(bool v6) { return {v6, 0}; }
std::uint8_t family_of(bool v6) { return v6 ? AF_INET6 : AF_INET; }

void put_ip(Message& message, std::uint16_t type, const Ip& ip) {
  const auto bytes = ip_bytes(ip);
  message.put(type, bytes.data(), bytes.size());
}

std::optional<Ip> get_ip(const nlattr* attribute) {
  if (attribute == nullptr) return std::nullopt;
  return ip_of(static_cast<const std::uint8_t*>(mnl_attr_get_payload(attribute)),
               mnl_attr_get_payload_len(attribute));
}

int get_int(const nlattr* attribute, int fallback = 0) {
  if (attribute == nullptr || mnl_attr_get_payload_len(attribute) < 4) return fallback;
  return static_cast<int>(mnl_attr_get_u32(attribute));
}

void read_kind(const nlattr* info, KernelLink& link) {
  const Attributes parts(info);
  if (const nlattr* kind = parts[IFLA_INFO_KIND]) link.kind = mnl_attr_get_str(kind);
  const nlattr* data = parts[IFLA_INFO_DATA];
  if (data == nullptr) return;
  const Attributes values(data);
  if (link.kind == "vlan" && values[IFLA_VLAN_ID] != nullptr) {
    link.vlan_id = mnl_attr_get_u16(values[IFLA_VLAN_ID]);
  }
  if (link.kind == "bond" && values[IFLA_BOND_MODE] != nullptr) {
    link.bond_mode = mnl_attr_get_u8(values[IFLA_BOND_MODE]);
  }
}

KernelLink read_link(const nlmsghdr* header) {
  const auto* info = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(header));
  const Attributes attributes(header, sizeof(ifinfomsg));
  KernelLink link;
  link.index = info->ifi_index;
  link.up = (info->ifi_flags & IFF_UP) != 0;
  if (const nlattr* name = attributes[IFLA_IFNAME]) link.name = mnl_attr_get_str(name);
  if (const nlattr* mac = attributes[IFLA_ADDRESS]) {
    link.mac = mac_text(static_cast<const std::uint8_t*>(mnl_attr_get_payload(mac)),
                        mnl_attr_get_payload_len(mac));
  }
  link.mtu = get_int(attributes[IFLA_MTU]);
  link.parent = get_int(attributes[IFLA_LINK]);
  link.master = get_int(attributes[IFLA_MASTER]);
  if (const nlattr* kind = attributes[IFLA_LINKINFO]) read_kind(kind, link);
  return link;
}

void put_route(Message& message, const KernelRoute& route) {
  auto& header = message.extra<rtmsg>();
  header.rtm_family = family_of(route.v6());
  header.rtm_dst_len = static_cast<std::uint8_t>(route.dst.prefix);
  header.rtm_table = route.table < 256 ? static_cast<std::uint8_t>(route.table) : 0;
  header.rtm_protocol = kRouteProtocol;
  header.rtm_type = RTN_UNICAST;
  header.rtm_scope = route.gateway || route.v6() ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK;
  if (route.dst.prefix > 0) put_ip(message, RTA_DST, route.dst.base);
  message.put_u32(RTA_TABLE, static_cast<std::uint32_t>(route.table));
  message.put_u32(RTA_OIF, static_cast<std::uint32_t>(route.device));
  if (route.gateway) {
    // It need not be of a subnet that the device has: the way to the host is not.
    header.rtm_flags = RTNH_F_ONLINK;
    put_ip(message, RTA_GATEWAY, *route.gateway);
  }
  if (route.source) put_ip(message, RTA_PREFSRC, *route.source);
}

/// The ways of a route that has several, each as a route of its own.
void read_ways(const nlattr* several, const KernelRoute& route, std::vector<KernelRoute>& out) {
  const auto* way = static_cast<const rtnexthop*>(mnl_attr_get_payload(several));
  int left = mnl_attr_get_payload_len(several);
  while (RTNH_OK(way, left)) {
    KernelRoute one = route;
    one.device = way->rtnh_ifindex;
    const nlattr* attribute = reinterpret_cast<const nlattr*>(RTNH_DATA(way));
    int rest = static_cast<int>(way->rtnh_len) - static_cast<int>(sizeof(rtnexthop));
    for (; mnl_attr_ok(attribute, rest);
         rest -= MNL_ALIGN(attribute->nla_len), attribute = mnl_attr_next(attribute)) {
      if (mnl_attr_get_type(attribute) == RTA_GATEWAY) one.gateway = get_ip(attribute);
    }
    out.push_back(std::move(one));
    left -= static_cast<int>(RTNH_ALIGN(way->rtnh_len));
    way = RTNH_NEXT(way);
  }
}

void read_route(const nlmsghdr* header, std::vector<KernelRoute>& out) {
  const auto* info = static_cast<const rtmsg*>(mnl_nlmsg_get_payload(header));
  if (info->rtm_family != AF_INET && info->rtm_family != AF_INET6) return;
  if ((info->rtm_flags & RTM_F_CLONED) != 0) return;
  const Attributes attributes(header, sizeof(rtmsg));
  KernelRoute route;
  route.dst.base = any_of(info->rtm_family == AF_INET6);
  route.dst.prefix = info->rtm_dst_len;
  if (auto dst = get_ip(attributes[RTA_DST])) route.dst.base = *dst;
  route.gateway = get_ip(attributes[RTA_GATEWAY]);
  route.source = get_ip(attributes[RTA_PREFSRC]);
  route.device = get_int(attributes[RTA_OIF]);
  route.table = get_int(attributes[RTA_TABLE], info->rtm_table);
  route.unicast = info->rtm_type == RTN_UNICAST;
  if (const nlattr* several = attributes[RTA_MULTIPATH]) return read_ways(several, route, out);
  out.push_back(std::move(route));
}

void put_rule(Message& message, const KernelRule& rule) {
  auto& header = message.extra<fib_rule_hdr>();
  header.family = family_of(rule.v6);
  header.action = FR_ACT_TO_TBL;
  header.table = rule.table < 256 ? static_cast<std::uint8_t>(rule.table) : 0;
  if (rule.from) {
    header.src_len = static_cast<std::uint8_t>(rule.from->prefix);
    put_ip(message, FRA_SRC, rule.from->base);
  }
  message.put_u32(FRA_TABLE, static_cast<std::uint32_t>(rule.table));
  message.put_u32(FRA_PRIORITY, static_cast<std::uint32_t>(rule.priority));
}

std::optional<KernelRule> read_rule(const nlmsghdr* header) {
  const auto* info = static_cast<const fib_rule_hdr*>(mnl_nlmsg_get_payload(header));
  if (info->family != AF_INET && info->family != AF_INET6) return std::nullopt;
  const Attributes attributes(header, sizeof(fib_rule_hdr));
  KernelRule rule;
  rule.v6 = info->family == AF_INET6;
  if (auto from = get_ip(attributes[FRA_SRC])) rule.from = Subnet{*from, info->src_len};
  rule.table = get_int(attributes[FRA_TABLE], info->table);
  rule.priority = get_int(attributes[FRA_PRIORITY]);
  return rule;
}

std::string name_of(const KernelRoute& route) {
  return cat(route.dst.str(), route.gateway ? cat(" via ", route.gateway->str()) : "", " table ",
             route.table);
}

struct BondOption {
  std::string_view name;
  std::uint16_t attribute;
  int bytes;
  /// Words for the values 0, 1, …
  std::array<std::string_view, 6> words = {};
};

constexpr BondOption kBondOptions[] = {
    {"miimon", IFLA_BOND_MIIMON, 4},
    {"updelay", IFLA_BOND_UPDELAY, 4},
    {"downdelay", IFLA_BOND_DOWNDELAY, 4},
    {"use_carrier", IFLA_BOND_USE_CARRIER, 1},
    {"arp_interval", IFLA_BOND_ARP_INTERVAL, 4},
    {"fail_over_mac", IFLA_BOND_FAIL_OVER_MAC, 1, {"none", "active", "follow"}},
    {"xmit_hash_policy",
     IFLA_BOND_XMIT_HASH_POLICY,
     1,
     {"layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"}},
    {"resend_igmp", IFLA_BOND_RESEND_IGMP, 4},
    {"num_grat_arp", IFLA_BOND_NUM_PEER_NOTIF, 1},
    {"all_slaves_active", IFLA_BOND_ALL_SLAVES_ACTIVE, 1},
    {"min_links", IFLA_BOND_MIN_LINKS, 4},
    {"lp_interval", IFLA_BOND_LP_INTERVAL, 4},
    {"lacp_rate", IFLA_BOND_AD_LACP_RATE, 1, {"slow", "fast"}},
    {"ad_select", IFLA_BOND_AD_SELECT, 1, {"stable", "bandwidth", "count"}},
};

Result<> put_bond_option(Message& message, std::string_view text) {
  const auto equals = text.find('=');
  const std::string_view name = trim(text.substr(0, equals));
  const std::string_view value =
      equals == std::string_view::npos ? "" : trim(text.substr(equals + 1));
  for (const auto& option : kBondOptions) {
    if (option.name != name) continue;
    std::uint32_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    bool known =
        !value.empty() && read.ec == std::errc() && read.ptr == value.data() + value.size();
    for (std::size_t i = 0; i < option.words.size() && !known; ++i) {
      if (value.empty() || option.words[i] != value) continue;
      number = static_cast<std::uint32_t>(i);
      known = true;
    }
    if (!known) return Error::invalid(cat("bond option ", name, ": no such value ", quoted(value)));
    if (option.bytes == 4) {
      message.put_u32(option.attribute, number);
    } else {
      message.put_u8(option.attribute, static_cast<std::uint8_t>(number));
    }
    return success();
  }
  return Error::invalid(cat("bond option ", quoted(name), " is not supported"));
}

}  // namespace

struct Netlink::State {
  Talker talker;
};

Netlink::Netlink(std::unique_ptr<State> state) : state_(std::move(state)) {}
Netlink::~Netlink() = default;
Netlink::Netlink(Netlink&&) noexcept = default;

Result<Netlink> Netlink::open() {
  DIBS_TRY(Talker talker, Talker::open());
  return Netlink(std::make_unique<State>(State{std::move(talker)}));
}

Result<std::vector<KernelLink>> Netlink::links() {
  std::vector<KernelLink> out;
  Message request(RTM_GETLINK, NLM_F_DUMP);
  request.extra<ifinfomsg>().ifi_family = AF_UNSPEC;
  DIBS_CHECK(state_->talker.dump(request, "list links", [&](const nlmsghdr* header) {
    if (header->nlmsg_type == RTM_NEWLINK) out.push_back(read_link(header));
  }));
  return out;
}

Result<std::optional<KernelLink>> Netlink::find_link(std::string_view name) {
  DIBS_TRY(const auto all, links());
  for (const auto& link : all) {
    if (link.name == name) return std::optional<KernelLink>(link);
  }
  return std::optional<KernelLink>();
}

Result<KernelLink> Netlink::link(std::string_view name) {
  DIBS_TRY(auto found, find_link(name));
  if (!found) return Error::not_found(cat("there is no interface ", quoted(name)));
  return std::move(*found);
}

Result<> Netlink::change_link(int index, const LinkChange& change) {
  Message request(RTM_NEWLINK, 0);
  auto& header = request.extra<ifinfomsg>();
  header.ifi_index = index;
  if (change.up) {
    header.ifi_change = IFF_UP;
    header.ifi_flags = *change.up ? IFF_UP : 0;
  }
  if (change.tx_queue) request.put_u32(IFLA_TXQLEN, static_cast<std::uint32_t>(*change.tx_queue));
  if (change.master) request.put_u32(IFLA_MASTER, static_cast<std::uint32_t>(*change.master));
  if (!change.mac.empty()) {
    const auto bytes = mac_bytes(change.mac);
    if (bytes.empty()) return Error::invalid(cat(quoted(change.mac), " is not a MAC address"));
    request.put(IFLA_ADDRESS, bytes.data(), bytes.size());
  }
  return state_->talker.change(request, cat("change link ", index));
}

Result<> Netlink::remove_link(int index) {
  Message request(RTM_DELLINK, 0);
  request.extra<ifinfomsg>().ifi_index = index;
  return state_->talker.change(request, cat("remove link ", index), ENODEV);
}

Result<> Netlink::add_veth(const std::string& name, const std::string& peer, int peer_namespace,
                           int mtu) {
  Message request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.extra<ifinfomsg>();
  request.put_text(IFLA_IFNAME, name);
  if (mtu > 0) request.put_u32(IFLA_MTU, static_cast<std::uint32_t>(mtu));
  const Nest info(request, IFLA_LINKINFO);
  request.put_text(IFLA_INFO_KIND, "veth");
  {
    const Nest data(request, IFLA_INFO_DATA);
    const Nest other(request, VETH_INFO_PEER);
    request.more<ifinfomsg>();
    request.put_text(IFLA_IFNAME, peer);
    if (mtu > 0) request.put_u32(IFLA_MTU, static_cast<std::uint32_t>(mtu));
    request.put_u32(IFLA_NET_NS_FD, static_cast<std::uint32_t>(peer_namespace));
  }
  info.end();
  return state_->talker.change(request, cat("make veth pair ", name, " and ", peer));
}

Result<> Netlink::add_vlan(const std::string& name, int parent, int id) {
  Message request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.extra<ifinfomsg>();
  request.put_text(IFLA_IFNAME, name);
  request.put_u32(IFLA_LINK, static_cast<std::uint32_t>(parent));
  const Nest info(request, IFLA_LINKINFO);
  request.put_text(IFLA_INFO_KIND, "vlan");
  {
    const Nest data(request, IFLA_INFO_DATA);
    request.put_u16(IFLA_VLAN_ID, static_cast<std::uint16_t>(id));
  }
  info.end();
  return state_->talker.change(request, cat("make VLAN device ", name, " (module 8021q)"), EEXIST);
}

Result<> Netlink::add_bond(const std::string& name, const BondOptions& bond) {
  Message request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
  request.extra<ifinfomsg>();
  request.put_text(IFLA_IFNAME, name);
  const Nest info(request, IFLA_LINKINFO);
  request.put_text(IFLA_INFO_KIND, "bond");
  {
    const Nest data(request, IFLA_INFO_DATA);
    request.put_u8(IFLA_BOND_MODE, static_cast<std::uint8_t>(bond.mode));
    for (const auto option : split(bond.options, ';')) {
      if (!trim(option).empty()) DIBS_CHECK(put_bond_option(request, option));
    }
  }
  info.end();
  return state_->talker.change(request, cat("make bond ", name, " (module bonding)"), EEXIST);
}

Result<std::vector<KernelAddress>> Netlink::addresses() {
  std::vector<KernelAddress> out;
  Message request(RTM_GETADDR, NLM_F_DUMP);
  request.extra<ifaddrmsg>().ifa_family = AF_UNSPEC;
  DIBS_CHECK(state_->talker.dump(request, "list addresses", [&](const nlmsghdr* header) {
    if (header->nlmsg_type != RTM_NEWADDR) return;
    const auto* info = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(header));
    const Attributes attributes(header, sizeof(ifaddrmsg));
    auto ip = get_ip(attributes[IFA_LOCAL]);
    if (!ip) ip = get_ip(attributes[IFA_ADDRESS]);
    if (!ip) return;
    const auto flags = static_cast<std::uint32_t>(get_int(attributes[IFA_FLAGS], info->ifa_flags));
    out.push_back({static_cast<int>(info->ifa_index), *ip, info->ifa_prefixlen,
                   info->ifa_scope >= RT_SCOPE_LINK, (flags & IFA_F_DADFAILED) != 0});
  }));
  return out;
}

Result<std::vector<KernelRoute>> Netlink::routes() {
  std::vector<KernelRoute> out;
  for (const bool v6 : {false, true}) {
    Message request(RTM_GETROUTE, NLM_F_DUMP);
    request.extra<rtmsg>().rtm_family = family_of(v6);
    DIBS_CHECK(state_->talker.dump(request, "list routes", [&](const nlmsghdr* header) {
      if (header->nlmsg_type != RTM_NEWROUTE) return;
      read_route(header, out);
    }));
  }
  return out;
}

Result<> Netlink::replace_route(const KernelRoute& route) {
  Message request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
  put_route(request, route);
  return state_->talker.change(request, cat("set route ", name_of(route)));
}

Result<> Netlink::remove_route(const KernelRoute& route) {
  Message request(RTM_DELROUTE, 0);
  put_route(request, route);
  auto& header = request.again<rtmsg>();
  header.rtm_protocol = RTPROT_UNSPEC;
  header.rtm_scope = RT_SCOPE_NOWHERE;
  header.rtm_flags = 0;
  return state_->talker.change(request, cat("remove route ", name_of(route)), ESRCH);
}

Result<std::vector<KernelRule>> Netlink::rules() {
  std::vector<KernelRule> out;
  for (const bool v6 : {false, true}) {
    Message request(RTM_GETRULE, NLM_F_DUMP);
    request.extra<fib_rule_hdr>().family = family_of(v6);
    DIBS_CHECK(state_->talker.dump(request, "list rules", [&](const nlmsghdr* header) {
      if (header->nlmsg_type != RTM_NEWRULE) return;
      if (auto rule = read_rule(header)) out.push_back(std::move(*rule));
    }));
  }
  return out;
}

Result<> Netlink::add_rule(const KernelRule& rule) {
  Message request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
  put_rule(request, rule);
  return state_->talker.change(request, cat("add rule for table ", rule.table), EEXIST);
}

Result<> Netlink::remove_rule(const KernelRule& rule) {
  Message request(RTM_DELRULE, 0);
  put_rule(request, rule);
  return state_->talker.change(request, cat("remove rule of table ", rule.table), ENOENT);
}

Result<> Netlink::set_neighbour(int device, const Ip& ip, const std::string& mac) {
  Message request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  auto& header = request.extra<ndmsg>();
  header.ndm_family = family_of(ip.v6);
  header.ndm_ifindex = device;
  header.ndm_state = NUD_PERMANENT;
  put_ip(request, NDA_DST, ip);
  const auto bytes = mac_bytes(mac);
  request.put(NDA_LLADDR, bytes.data(), bytes.size());
  return state_->talker.change(request, cat("set neighbour ", ip.str()));
}

Result<> Netlink::resolve_neighbour(int device, const Ip& ip) {
  Message request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
  auto& header = request.extra<ndmsg>();
  header.ndm_family = family_of(ip.v6);
  header.ndm_ifindex = device;
  header.ndm_flags = NTF_USE;
  put_ip(request, NDA_DST, ip);
  return state_->talker.change(request, cat("ask for neighbour ", ip.str()));
}

Result<std::vector<KernelNeighbour>> Netlink::neighbours() {
  std::vector<KernelNeighbour> out;
  for (const bool v6 : {false, true}) {
    Message request(RTM_GETNEIGH, NLM_F_DUMP);
    request.extra<ndmsg>().ndm_family = family_of(v6);
    DIBS_CHECK(state_->talker.dump(request, "list neighbours", [&](const nlmsghdr* header) {
      if (header->nlmsg_type != RTM_NEWNEIGH) return;
      const auto* info = static_cast<const ndmsg*>(mnl_nlmsg_get_payload(header));
      const Attributes attributes(header, sizeof(ndmsg));
      const auto ip = get_ip(attributes[NDA_DST]);
      if (!ip) return;
      KernelNeighbour one{info->ndm_ifindex, *ip, "", (info->ndm_state & NUD_FAILED) != 0};
      constexpr int kKnown = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_PERMANENT;
      if (const nlattr* mac = attributes[NDA_LLADDR]; mac && (info->ndm_state & kKnown) != 0) {
        one.mac = mac_text(static_cast<const std::uint8_t*>(mnl_attr_get_payload(mac)),
                           mnl_attr_get_payload_len(mac));
      }
      out.push_back(std::move(one));
    }));
  }
  return out;
}

std::vector<std::uint8_t> mac_bytes(std::string_view text) {
  std::vector<std::uint8_t> out;
  for (const auto part : split(text, ':')) {
    std::uint8_t byte = 0;
    const auto read = std::from_chars(part.data(), part.data() + part.size(), byte, 16);
    if (part.size() != 2 || read.ec != std::errc() || read.ptr != part.data() + 2) return {};
    out.push_back(byte);
  }
  if (out.size() != 6) return {};
  return out;
}

std::string mac_text(const std::uint8_t* bytes, std::size_t size) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < size; ++i) {
    if (i > 0) out.push_back(':');
    out.push_back(kDigits[bytes[i] >> 4]);
    out.push_back(kDigits[bytes[i] & 15]);
  }
  return out;
}

std::vector<std::uint8_t> ip_bytes(const Ip& ip) {
  const std::size_t size = ip.v6 ? 16 : 4;
  std::vector<std::uint8_t> out(size);
  IpBits bits = ip.bits;
  for (std::size_t i = size; i-- > 0; bits >>= 8) out[i] = static_cast<std::uint8_t>(bits & 0xff);
  return out;
}

std::optional<Ip> ip_of(const std::uint8_t* bytes, std::size_t size) {
  if (size != 4 && size != 16) return std::nullopt;
  Ip ip{size == 16, 0};
  for (std::size_t i = 0; i < size; ++i) ip.bits = (ip.bits << 8) | bytes[i];
  return ip;
}

}  // namespace dibs::drivers::net
