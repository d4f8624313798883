#include "net/route.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/strings.h"

namespace dibs::net {
namespace {

/// A VPN replaces the default route by its two halves, and 2000::/3 is all of IPv6's unicast.
constexpr int kWidestV4 = 1;
constexpr int kWidestV6 = 3;

Error silent(std::string_view what, int error) {
  return Error::unavailable(
      cat("the kernel's routes cannot be asked for: ", what, ": ", to_lower(std::strerror(error))));
}

struct Question {
  nlmsghdr head = {};
  rtmsg route = {};
  rtattr attribute = {};
  unsigned char address[sizeof(in6_addr)] = {};
};

Result<Question> question_for(const std::string& address) {
  Question out;
  std::size_t size = sizeof(in_addr);
  out.route.rtm_family = AF_INET;
  if (::inet_pton(AF_INET, address.c_str(), out.address) != 1) {
    if (::inet_pton(AF_INET6, address.c_str(), out.address) != 1)
      return Error::invalid(cat(quoted(address), ": no IP address"));
    in6_addr v6{};
    std::memcpy(&v6, out.address, sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      std::memcpy(out.address, v6.s6_addr + 12, size);
    } else {
      size = sizeof(in6_addr);
      out.route.rtm_family = AF_INET6;
    }
  }
  out.head.nlmsg_type = RTM_GETROUTE;
  out.head.nlmsg_flags = NLM_F_REQUEST;
  out.head.nlmsg_len = static_cast<std::uint32_t>(offsetof(Question, address) + size);
  out.route.rtm_dst_len = static_cast<unsigned char>(size * 8);
  // The route itself, not what it means for this one address.
  out.route.rtm_flags = RTM_F_FIB_MATCH;
  out.attribute.rta_type = RTA_DST;
  out.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(size));
  return out;
}

}  // namespace

Result<bool> read_route(std::string_view answer) {
  nlmsghdr head{};
  if (answer.size() < sizeof head) return silent("answer", EBADMSG);
  std::memcpy(&head, answer.data(), sizeof head);
  if (head.nlmsg_len > answer.size()) return silent("answer", EBADMSG);
  answer.remove_prefix(NLMSG_HDRLEN);
  if (head.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr refusal{};
    if (answer.size() < sizeof refusal.error) return silent("answer", EBADMSG);
    std::memcpy(&refusal.error, answer.data(), sizeof refusal.error);
    switch (-refusal.error) {
      case ENETUNREACH:   // no route
      case EHOSTUNREACH:  // unreachable
      case EACCES:        // prohibit
      case EINVAL:        // blackhole
        return false;
      default:
        return silent("answer", -refusal.error);
    }
  }
  rtmsg route{};
  if (head.nlmsg_type != RTM_NEWROUTE || answer.size() < sizeof route)
    return silent("answer", EBADMSG);
  std::memcpy(&route, answer.data(), sizeof route);
  if (route.rtm_type != RTN_UNICAST) return false;  // this machine itself, or nowhere
  return route.rtm_dst_len <= (route.rtm_family == AF_INET6 ? kWidestV6 : kWidestV4);
}

Result<bool> is_by_default_route(std::string_view address) {
  DIBS_TRY(const Question question, question_for(std::string(address)));
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return silent("socket", errno);
  const timeval limit{1, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char answer[4096];
  ssize_t size = ::send(fd, &question, question.head.nlmsg_len, 0);
  if (size >= 0) size = ::recv(fd, answer, sizeof answer, 0);
  const int error = errno;
  ::close(fd);
  if (size < 0) return silent("netlink", error);
  return read_route(std::string_view(answer, static_cast<std::size_t>(size)));
}

}  // namespace dibs::net
