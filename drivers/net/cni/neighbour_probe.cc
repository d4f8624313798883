#include "drivers/net/cni/neighbour_probe.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/strings.h"
#include "runtime/processes.h"

namespace dibs::drivers::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The kernel asks three times, a second apart.
constexpr milliseconds kGatewayLimit{3500};
constexpr milliseconds kLook{20};
constexpr int kProbes = 3;
constexpr milliseconds kProbeWait{300};

Error failed(std::string_view what) {
  return Error::internal(cat("cannot ", what, ": ", std::strerror(errno)));
}

using ArpPacket = ether_arp;

ArpPacket arp(std::uint16_t operation, const std::string& mac, const Ip& sender, const Ip& target) {
  ArpPacket packet = {};
  packet.arp_hrd = htons(ARPHRD_ETHER);
  packet.arp_pro = htons(ETH_P_IP);
  packet.arp_hln = 6;
  packet.arp_pln = 4;
  packet.arp_op = htons(operation);
  const auto own = mac_bytes(mac);
  if (own.size() == 6) std::memcpy(packet.arp_sha, own.data(), 6);
  std::memcpy(packet.arp_spa, ip_bytes(sender).data(), 4);
  std::memcpy(packet.arp_tpa, ip_bytes(target).data(), 4);
  return packet;
}

Result<runtime::Fd> arp_socket(const KernelLink& link) {
  runtime::Fd fd(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP)));
  if (!fd.ok()) return failed("open a packet socket");
  sockaddr_ll address = {};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ARP);
  address.sll_ifindex = link.index;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return failed("bind a packet socket");
  }
  return fd;
}

Result<> send_arp(const runtime::Fd& fd, const KernelLink& link, const ArpPacket& packet) {
  sockaddr_ll to = {};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_ARP);
  to.sll_ifindex = link.index;
  to.sll_halen = 6;
  std::memset(to.sll_addr, 0xff, 6);
  if (::sendto(fd.get(), &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&to),
               sizeof to) < 0) {
    return failed(cat("send ARP by ", link.name));
  }
  return success();
}

/// The device that says it has the address; "" when nobody did until `end`.
std::string await_owner(const runtime::Fd& fd, const KernelLink& link, const Ip& ip,
                        steady_clock::time_point end) {
  while (true) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now()).count();
    pollfd wait{fd.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(left)) <= 0) return "";
    ArpPacket packet = {};
    if (::recv(fd.get(), &packet, sizeof packet, 0) < static_cast<ssize_t>(sizeof packet)) continue;
    const std::string mac = mac_text(packet.arp_sha, 6);
    if (std::memcmp(packet.arp_spa, ip_bytes(ip).data(), 4) == 0 && mac != link.mac) return mac;
  }
}

/// InfiniBand has longer addresses, and does all of this by itself.
bool has_ethernet(const KernelLink& link) { return !mac_bytes(link.mac).empty(); }

Error conflict(const KernelLink& link, const Ip& ip, std::string_view owner) {
  return Error::conflict(
      cat("IP ", ip.str(), " of interface ", link.name, " is in use by another machine", owner));
}

Result<> announce_v6(const KernelLink& link, const Ip& ip) {
  runtime::Fd fd(::socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6));
  if (!fd.ok()) return failed("open an ICMPv6 socket");
  const int hops = 255;
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops);
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_MULTICAST_IF, &link.index, sizeof link.index);
  struct {
    nd_neighbor_advert advert;
    nd_opt_hdr option;
    std::uint8_t mac[6];
  } packet = {};
  packet.advert.nd_na_type = ND_NEIGHBOR_ADVERT;
  packet.advert.nd_na_flags_reserved = ND_NA_FLAG_OVERRIDE;
  std::memcpy(&packet.advert.nd_na_target, ip_bytes(ip).data(), 16);
  packet.option.nd_opt_type = ND_OPT_TARGET_LINKADDR;
  packet.option.nd_opt_len = 1;
  const auto mac = mac_bytes(link.mac);
  if (mac.size() == 6) std::memcpy(packet.mac, mac.data(), 6);
  sockaddr_in6 to = {};
  to.sin6_family = AF_INET6;
  to.sin6_scope_id = static_cast<std::uint32_t>(link.index);
  ::inet_pton(AF_INET6, "ff02::1", &to.sin6_addr);
  if (::sendto(fd.get(), &packet, sizeof packet, 0, reinterpret_cast<const sockaddr*>(&to),
               sizeof to) < 0) {
    return failed(cat("announce ", ip.str(), " by ", link.name));
  }
  return success();
}

}  // namespace

Result<> check_gateway(Netlink& kernel, const KernelLink& link, const Ip& gateway) {
  DIBS_CHECK(kernel.resolve_neighbour(link.index, gateway));
  const auto end = steady_clock::now() + kGatewayLimit;
  while (true) {
    DIBS_TRY(const auto neighbours, kernel.neighbours());
    bool gone = false;
    for (const auto& neighbour : neighbours) {
      if (neighbour.device != link.index || neighbour.ip != gateway) continue;
      if (!neighbour.mac.empty()) return success();
      gone = neighbour.failed;
    }
    if (gone || steady_clock::now() > end) {
      return Error::internal(cat("gateway ", gateway.str(), " is unreachable by interface ",
                                 link.name, ": no answer to ", gateway.v6 ? "NDP" : "ARP"));
    }
    std::this_thread::sleep_for(kLook);
  }
}

Result<> check_conflict(Netlink& kernel, const KernelLink& link, const Ip& ip) {
  if (ip.v6) {
    DIBS_TRY(const auto addresses, kernel.addresses());
    for (const auto& address : addresses) {
      if (address.device == link.index && address.ip == ip && address.duplicate) {
        return conflict(link, ip, "");
      }
    }
    return success();
  }
  if (!has_ethernet(link)) return success();
  DIBS_TRY(const runtime::Fd fd, arp_socket(link));
  for (int i = 0; i < kProbes; ++i) {
    // Nobody's address as the sender: a probe changes no table.
    DIBS_CHECK(send_arp(fd, link, arp(ARPOP_REQUEST, link.mac, Ip{}, ip)));
    const std::string owner = await_owner(fd, link, ip, steady_clock::now() + kProbeWait);
    if (!owner.empty()) return conflict(link, ip, cat(" (", owner, ")"));
  }
  return success();
}

Result<> announce(const KernelLink& link, const Ip& ip) {
  if (!has_ethernet(link)) return success();
  if (ip.v6) return announce_v6(link, ip);
  DIBS_TRY(const runtime::Fd fd, arp_socket(link));
  // Some only heed the one, some only the other.
  DIBS_CHECK(send_arp(fd, link, arp(ARPOP_REQUEST, link.mac, ip, ip)));
  return send_arp(fd, link, arp(ARPOP_REPLY, link.mac, ip, ip));
}

}  // namespace dibs::drivers::net
