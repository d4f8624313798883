#include "proxy/conntrack.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/ipv4.h"
#include "base/strings.h"
#include "runtime/processes.h"

namespace dibs::proxy {
namespace {

constexpr std::uint16_t kTypeMask = 0x3fff;  // without the flags of nested attributes

Error failure(const char* what) {
  return Error::internal(cat("conntrack: ", what, ": ", std::strerror(errno)));
}

/// The payload of the first attribute of this type, empty where there is none.
std::string_view attribute(std::string_view attributes, std::uint16_t type) {
  while (attributes.size() >= sizeof(nlattr)) {
    nlattr head{};
    std::memcpy(&head, attributes.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > attributes.size()) return {};
    if ((head.nla_type & kTypeMask) == type) {
      return attributes.substr(sizeof head, head.nla_len - sizeof head);
    }
    attributes.remove_prefix(std::min<std::size_t>(NLA_ALIGN(head.nla_len), attributes.size()));
  }
  return {};
}

template <typename Number>
Number number(std::string_view payload) {
  Number value{};
  if (payload.size() >= sizeof value) std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

struct Tuple {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  int protocol = 0;
  int source_port = 0;
  int destination_port = 0;
};

Tuple read_tuple(std::string_view payload) {
  const std::string_view addresses = attribute(payload, CTA_TUPLE_IP);
  const std::string_view protocol = attribute(payload, CTA_TUPLE_PROTO);
  Tuple out;
  out.source = ntohl(number<std::uint32_t>(attribute(addresses, CTA_IP_V4_SRC)));
  out.destination = ntohl(number<std::uint32_t>(attribute(addresses, CTA_IP_V4_DST)));
  out.protocol = number<std::uint8_t>(attribute(protocol, CTA_PROTO_NUM));
  out.source_port = ntohs(number<std::uint16_t>(attribute(protocol, CTA_PROTO_SRC_PORT)));
  out.destination_port = ntohs(number<std::uint16_t>(attribute(protocol, CTA_PROTO_DST_PORT)));
  return out;
}

class Socket {
 public:
  static Result<Socket> open() {
    Socket out;
    out.fd_ = runtime::Fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    if (!out.fd_.ok()) return failure("socket");
    const timeval limit{5, 0};
    ::setsockopt(out.fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return out;
  }

  Result<> send(std::uint16_t message, std::uint16_t flags, std::string_view attributes) {
    const auto size =
        static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(nfgenmsg)) + NLMSG_ALIGN(attributes.size()));
    std::string bytes(size, '\0');
    nlmsghdr head{};
    head.nlmsg_len = size;
    head.nlmsg_type = static_cast<std::uint16_t>((NFNL_SUBSYS_CTNETLINK << 8) | message);
    head.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    nfgenmsg family{};
    family.nfgen_family = AF_INET;
    family.version = NFNETLINK_V0;
    std::memcpy(bytes.data(), &head, sizeof head);
    std::memcpy(bytes.data() + NLMSG_HDRLEN, &family, sizeof family);
    std::memcpy(bytes.data() + NLMSG_LENGTH(sizeof family), attributes.data(), attributes.size());
    if (::send(fd_.get(), bytes.data(), bytes.size(), 0) < 0) return failure("send");
    return success();
  }

  /// Calls `each` with the attributes of every answer, up to the end of a dump or an
  /// acknowledgement; what that says is returned.
  template <typename Each>
  Result<int> receive(Each each) {
    std::vector<char> buffer(256 * 1024);
    while (true) {
      const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failure("receive");
      std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
      while (rest.size() >= sizeof(nlmsghdr)) {
        nlmsghdr head{};
        std::memcpy(&head, rest.data(), sizeof head);
        if (head.nlmsg_len < sizeof head || head.nlmsg_len > rest.size()) break;
        const std::string_view body = rest.substr(NLMSG_HDRLEN, head.nlmsg_len - NLMSG_HDRLEN);
        if (head.nlmsg_type == NLMSG_DONE) return 0;
        if (head.nlmsg_type == NLMSG_ERROR) return -number<std::int32_t>(body);
        if (body.size() > sizeof(nfgenmsg)) each(body.substr(sizeof(nfgenmsg)));
        rest.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(head.nlmsg_len), rest.size()));
      }
    }
  }

 private:
  Socket() = default;
  runtime::Fd fd_;
};

}  // namespace

Result<> forget_udp_flows(const std::set<UdpBackend>& gone) {
  if (gone.empty()) return success();
  DIBS_TRY(Socket socket, Socket::open());
  DIBS_CHECK(socket.send(IPCTNL_MSG_CT_GET, NLM_F_DUMP, {}));
  std::vector<std::string> found;
  DIBS_TRY(const int dumped, socket.receive([&](std::string_view attributes) {
    const std::string_view original = attribute(attributes, CTA_TUPLE_ORIG);
    const Tuple there = read_tuple(original);
    const Tuple back = read_tuple(attribute(attributes, CTA_TUPLE_REPLY));
    if (there.protocol != IPPROTO_UDP || there.destination == back.source) return;
    if (!gone.contains({ipv4_text(back.source), back.source_port, there.destination_port})) return;
    nlattr head{};
    head.nla_len = static_cast<std::uint16_t>(sizeof head + original.size());
    head.nla_type = NLA_F_NESTED | CTA_TUPLE_ORIG;
    std::string flow(reinterpret_cast<const char*>(&head), sizeof head);
    found.push_back(flow.append(original));
  }));
  if (dumped != 0) return Error::internal(cat("conntrack: ", std::strerror(dumped)));
  for (const std::string& flow : found) {
    DIBS_CHECK(socket.send(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, flow));
    // One that is gone already is as good.
    DIBS_TRY(const int deleted, socket.receive([](std::string_view) {}));
    if (deleted != 0 && deleted != ENOENT) {
      return Error::internal(cat("conntrack: ", std::strerror(deleted)));
    }
  }
  return success();
}

}  // namespace dibs::proxy
