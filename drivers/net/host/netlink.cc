// Links as the kernel tells them, through libmnl.

#include <libmnl/libmnl.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>

#include "base/interface_name.h"
#include "base/strings.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/host/links.h"

namespace dibs::drivers::net {
namespace {

/// A dump that changed while it was read is read again, this often.
constexpr int kDumps = 5;
constexpr timeval kAnswerTime = {.tv_sec = 5, .tv_usec = 0};
/// Room for 8 KiB pages of a dump and more: a message that does not fit is lost.
constexpr std::size_t kBuffer = 64 * 1024;

struct CloseSocket {
  void operator()(mnl_socket* socket) const { mnl_socket_close(socket); }
};
using Socket = std::unique_ptr<mnl_socket, CloseSocket>;

Error system_error(std::string_view what) {
  return Error::unavailable(cat(what, ": ", std::strerror(errno)));
}

Result<Socket> open_socket(int bus, unsigned groups, int flags) {
  Socket socket(mnl_socket_open2(bus, flags | SOCK_CLOEXEC));
  if (!socket) return system_error("netlink socket");
  if (mnl_socket_bind(socket.get(), groups, MNL_SOCKET_AUTOPID) < 0) {
    return system_error("netlink socket: bind");
  }
  ::setsockopt(mnl_socket_get_fd(socket.get()), SOL_SOCKET, SO_RCVTIMEO, &kAnswerTime,
               sizeof kAnswerTime);
  return socket;
}

// -- Attributes: each may be missing, cut off or of any size
// ---------------------------------------

using Attributes = std::map<int, const nlattr*>;

Attributes attributes_between(const void* begin, const void* end) {
  Attributes found;
  const auto* attribute = static_cast<const nlattr*>(begin);
  const auto left = [&] {
    return static_cast<int>(static_cast<const char*>(end) -
                            reinterpret_cast<const char*>(attribute));
  };
  while (mnl_attr_ok(attribute, left())) {
    found[mnl_attr_get_type(attribute)] = attribute;
    attribute = mnl_attr_next(attribute);
  }
  return found;
}

Attributes attributes_of(const nlmsghdr* message, std::size_t header) {
  if (mnl_nlmsg_get_payload_len(message) < header) return {};
  return attributes_between(mnl_nlmsg_get_payload_offset(message, header),
                            reinterpret_cast<const char*>(message) + message->nlmsg_len);
}

Attributes attributes_in(const nlattr* nest) {
  if (nest == nullptr) return {};
  const auto* begin = static_cast<const char*>(mnl_attr_get_payload(nest));
  return attributes_between(begin, begin + mnl_attr_get_payload_len(nest));
}

const nlattr* find(const Attributes& attributes, int type) {
  const auto found = attributes.find(type);
  return found == attributes.end() ? nullptr : found->second;
}

template <typename Number>
Number number_of(const Attributes& attributes, int type) {
  Number number = 0;
  const nlattr* attribute = find(attributes, type);
  if (attribute != nullptr && mnl_attr_get_payload_len(attribute) == sizeof number) {
    std::memcpy(&number, mnl_attr_get_payload(attribute), sizeof number);
  }
  return number;
}

int index_of(const Attributes& attributes, int type) {
  const auto index = number_of<std::int32_t>(attributes, type);
  return index > 0 ? index : 0;
}

std::string bytes_of(const Attributes& attributes, int type) {
  const nlattr* attribute = find(attributes, type);
  if (attribute == nullptr) return {};
  return {static_cast<const char*>(mnl_attr_get_payload(attribute)),
          mnl_attr_get_payload_len(attribute)};
}

std::string text_of(const Attributes& attributes, int type) {
  const std::string bytes = bytes_of(attributes, type);
  return bytes.substr(0, bytes.find('\0'));
}

// -- Messages
// --------------------------------------------------------------------------------------

std::string hardware_address(const std::string& bytes) {
  std::string out;
  for (const char byte : bytes) {
    append(out, out.empty() ? "" : ":", hex_encode(std::string_view(&byte, 1)));
  }
  return out;
}

std::string oper_state_name(std::uint8_t state) {
  constexpr std::string_view kNames[] = {"unknown", "notpresent", "down", "lowerlayerdown",
                                         "testing", "dormant",    "up"};
  return std::string(state < std::size(kNames) ? kNames[state] : kNames[0]);
}

void read_link(const nlmsghdr* message, LinkFacts& facts) {
  if (mnl_nlmsg_get_payload_len(message) < sizeof(ifinfomsg)) return;
  const auto* header = static_cast<const ifinfomsg*>(mnl_nlmsg_get_payload(message));
  const Attributes attributes = attributes_of(message, sizeof(ifinfomsg));
  Link link;
  link.name = text_of(attributes, IFLA_IFNAME);
  link.index = header->ifi_index;
  if (!is_interface_name(link.name) || link.index <= 0) return;
  link.hardware_type = header->ifi_type;
  link.up = (header->ifi_flags & IFF_UP) != 0;
  link.mac = hardware_address(bytes_of(attributes, IFLA_ADDRESS));
  link.mtu = static_cast<int>(number_of<std::uint32_t>(attributes, IFLA_MTU) & 0x7fffffff);
  link.oper_state = oper_state_name(number_of<std::uint8_t>(attributes, IFLA_OPERSTATE));
  link.master = index_of(attributes, IFLA_MASTER);
  // The index of a link in another namespace says nothing here. A veth's own peer is not below it.
  const Attributes info = attributes_in(find(attributes, IFLA_LINKINFO));
  link.kind = text_of(info, IFLA_INFO_KIND);
  if (find(attributes, IFLA_LINK_NETNSID) == nullptr && link.kind != "veth") {
    link.parent = index_of(attributes, IFLA_LINK);
    if (link.parent == link.index) link.parent = 0;
  }
  if (link.kind == "vlan") {
    link.vlan_id =
        number_of<std::uint16_t>(attributes_in(find(info, IFLA_INFO_DATA)), IFLA_VLAN_ID);
  }
  facts.links.push_back(std::move(link));
}

void read_address(const nlmsghdr* message, LinkFacts& facts) {
  if (mnl_nlmsg_get_payload_len(message) < sizeof(ifaddrmsg)) return;
  const auto* header = static_cast<const ifaddrmsg*>(mnl_nlmsg_get_payload(message));
  const Attributes attributes = attributes_of(message, sizeof(ifaddrmsg));
  // Of a point-to-point link IFA_ADDRESS is the other end.
  std::string bytes = bytes_of(attributes, IFA_LOCAL);
  if (bytes.empty()) bytes = bytes_of(attributes, IFA_ADDRESS);
  const bool v6 = header->ifa_family == AF_INET6;
  if ((!v6 && header->ifa_family != AF_INET) || bytes.size() != (v6 ? 16U : 4U)) return;
  if (header->ifa_prefixlen > (v6 ? 128 : 32)) return;
  Ip ip{.v6 = v6, .bits = 0};
  for (const char byte : bytes) ip.bits = (ip.bits << 8) | static_cast<unsigned char>(byte);
  for (auto& link : facts.links) {
    if (link.index != static_cast<int>(header->ifa_index)) continue;
    link.addresses.push_back({ip.str(), header->ifa_prefixlen, header->ifa_scope >= RT_SCOPE_LINK});
    return;
  }
}

void read_message(const nlmsghdr* message, LinkFacts& facts) {
  if (message->nlmsg_type == RTM_NEWLINK) read_link(message, facts);
  if (message->nlmsg_type == RTM_NEWADDR) read_address(message, facts);
}

/// Messages one after the other, as long as they are whole. mnl_nlmsg_ok() takes a length of 2 GiB
/// and more for a negative one, and so for good.
void each_message(const void* bytes, std::size_t size,
                  const std::function<void(const nlmsghdr*)>& handle) {
  std::size_t at = 0;
  while (size - at >= sizeof(nlmsghdr)) {
    const auto* message = reinterpret_cast<const nlmsghdr*>(static_cast<const char*>(bytes) + at);
    if (message->nlmsg_len < sizeof(nlmsghdr) || message->nlmsg_len > size - at) return;
    handle(message);
    at += std::min<std::size_t>(MNL_ALIGN(message->nlmsg_len), size - at);
  }
}

// -- Talking to the kernel
// -------------------------------------------------------------------------

struct Answer {
  bool interrupted = false;  // what was read may be half old, half new
};

/// Sends the request and reads to the end of the answer.
Result<Answer> ask(mnl_socket* socket, nlmsghdr* request, std::uint32_t sequence,
                   const std::function<void(const nlmsghdr*)>& handle) {
  request->nlmsg_seq = sequence;
  if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0) {
    return system_error("netlink request");
  }
  Answer answer;
  std::vector<std::uint64_t> buffer(kBuffer / sizeof(std::uint64_t));
  for (;;) {
    const ssize_t size = mnl_socket_recvfrom(socket, buffer.data(), kBuffer);
    if (size < 0) return system_error("netlink answer");
    bool done = size == 0;
    int failed = 0;
    each_message(buffer.data(), static_cast<std::size_t>(size), [&](const nlmsghdr* message) {
      if (message->nlmsg_seq != sequence || done) return;
      if ((message->nlmsg_flags & NLM_F_DUMP_INTR) != 0) answer.interrupted = true;
      if (message->nlmsg_type == NLMSG_ERROR) {
        if (mnl_nlmsg_get_payload_len(message) >= sizeof(int)) {
          std::memcpy(&failed, mnl_nlmsg_get_payload(message), sizeof failed);
        }
        done = true;
      } else if (message->nlmsg_type == NLMSG_DONE) {
        done = true;
      } else {
        handle(message);
        done = (message->nlmsg_flags & NLM_F_MULTI) == 0;
      }
    });
    if (failed != 0) {
      errno = -failed;
      return system_error("netlink answer");
    }
    if (done) return answer;
  }
}

template <typename Header>
Result<Answer> dump(mnl_socket* socket, std::uint16_t type, std::uint32_t sequence,
                    LinkFacts& facts) {
  alignas(nlmsghdr) char bytes[256] = {};
  nlmsghdr* request = mnl_nlmsg_put_header(bytes);
  request->nlmsg_type = type;
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  mnl_nlmsg_put_extra_header(request, sizeof(Header));
  return ask(socket, request, sequence,
             [&](const nlmsghdr* message) { read_message(message, facts); });
}

/// "" where the kernel has no RDMA, or is too old to say.
std::string rdma_netns_mode() {
  const auto socket = open_socket(NETLINK_RDMA, 0, 0);
  if (!socket) return {};
  alignas(nlmsghdr) char bytes[256] = {};
  nlmsghdr* request = mnl_nlmsg_put_header(bytes);
  request->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET);
  request->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  std::string mode;
  (void)ask(socket->get(), request, 1, [&](const nlmsghdr* message) {
    const Attributes attributes = attributes_of(message, 0);
    if (find(attributes, RDMA_NLDEV_SYS_ATTR_NETNS_MODE) == nullptr) return;
    const bool shared = number_of<std::uint8_t>(attributes, RDMA_NLDEV_SYS_ATTR_NETNS_MODE) != 0;
    mode = shared ? "shared" : "exclusive";
  });
  return mode;
}

class NetlinkLinks : public Links {
 public:
  NetlinkLinks(Socket requests, Socket events)
      : requests_(std::move(requests)), events_(std::move(events)) {}

  Result<LinkFacts> read() override {
    for (int attempt = 1;; ++attempt) {
      LinkFacts facts;
      DIBS_TRY(const Answer links,
               dump<ifinfomsg>(requests_.get(), RTM_GETLINK, ++sequence_, facts));
      DIBS_TRY(const Answer addresses,
               dump<ifaddrmsg>(requests_.get(), RTM_GETADDR, ++sequence_, facts));
      if ((links.interrupted || addresses.interrupted) && attempt < kDumps) continue;
      facts.rdma_netns_mode = rdma_netns_mode();
      return facts;
    }
  }

  bool changed() override {
    bool any = false;
    std::vector<std::uint64_t> buffer(kBuffer / sizeof(std::uint64_t));
    for (;;) {
      const ssize_t size = mnl_socket_recvfrom(events_.get(), buffer.data(), kBuffer);
      // Lost events (ENOBUFS) are a change; that none is left is the end.
      if (size < 0 && errno != ENOBUFS && errno != EINTR) return any;
      any = true;
    }
  }

 private:
  Socket requests_;
  Socket events_;
  std::uint32_t sequence_ = 0;
};

}  // namespace

Result<std::unique_ptr<Links>> open_netlink() {
  DIBS_TRY(auto requests, open_socket(NETLINK_ROUTE, 0, 0));
  DIBS_TRY(auto events,
           open_socket(NETLINK_ROUTE, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
                       SOCK_NONBLOCK));
  return std::unique_ptr<Links>(
      std::make_unique<NetlinkLinks>(std::move(requests), std::move(events)));
}

void read_netlink_messages(std::span<const std::uint8_t> bytes, LinkFacts& facts) {
  // Copied for the sake of alignment.
  std::vector<std::uint64_t> aligned(bytes.size() / sizeof(std::uint64_t) + 1);
  if (!bytes.empty()) std::memcpy(aligned.data(), bytes.data(), bytes.size());
  each_message(aligned.data(), bytes.size(),
               [&](const nlmsghdr* message) { read_message(message, facts); });
}

}  // namespace dibs::drivers::net
