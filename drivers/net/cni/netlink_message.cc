#include "drivers/net/cni/netlink_message.h"

#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/strings.h"

namespace dibs::drivers::net {
namespace {

// The kernel answers at once; where it does not, something is badly wrong.
constexpr timeval kAnswerLimit{.tv_sec = 10, .tv_usec = 0};
constexpr std::size_t kAnswerBytes = 64 << 10;

std::string word_for(int error) {
  if (error == EOPNOTSUPP) return "this kernel has no such device or function";
  return std::strerror(error);
}

Error failure(std::string_view what, int error) {
  return Error(error == EEXIST ? Code::already_exists : Code::internal,
               cat("cannot ", what, ": ", word_for(error)));
}

int hand_over(const nlmsghdr* header, void* each) {
  (*static_cast<const std::function<void(const nlmsghdr*)>*>(each))(header);
  return MNL_CB_OK;
}

}  // namespace

Result<Talker> Talker::open() {
  mnl_socket* socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
  if (socket == nullptr) return failure("open a netlink socket", errno);
  Talker talker(socket);
  if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
    return failure("bind a netlink socket", errno);
  }
  ::setsockopt(mnl_socket_get_fd(socket), SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit,
               sizeof kAnswerLimit);
  return talker;
}

Result<> Talker::dump(Message& message, std::string_view what,
                      const std::function<void(const nlmsghdr*)>& each) {
  nlmsghdr* header = message.header();
  header->nlmsg_seq = ++sequence_;
  const unsigned port = mnl_socket_get_portid(socket_.get());
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) return failure(what, errno);
  std::vector<char> buffer(kAnswerBytes);
  while (true) {
    const ssize_t size = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure(what, errno);
    const int ran = mnl_cb_run(buffer.data(), static_cast<std::size_t>(size), sequence_, port,
                               &hand_over, const_cast<void*>(static_cast<const void*>(&each)));
    // A dump during which something changed is as good as one a moment earlier.
    if (ran < 0 && errno != EINTR) return failure(what, errno);
    if (ran <= MNL_CB_STOP) return success();
  }
}

Result<> Talker::change(Message& message, std::string_view what, int fine) {
  message.header()->nlmsg_flags |= NLM_F_ACK;
  nlmsghdr* header = message.header();
  header->nlmsg_seq = ++sequence_;
  const unsigned port = mnl_socket_get_portid(socket_.get());
  if (mnl_socket_sendto(socket_.get(), header, header->nlmsg_len) < 0) return failure(what, errno);
  std::vector<char> buffer(kAnswerBytes);
  while (true) {
    const ssize_t size = mnl_socket_recvfrom(socket_.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure(what, errno);
    const int ran = mnl_cb_run(buffer.data(), static_cast<std::size_t>(size), sequence_, port,
                               nullptr, nullptr);
    if (ran < 0 && (fine == 0 || errno != fine)) return failure(what, errno);
    if (ran <= MNL_CB_STOP) return success();
  }
}

}  // namespace dibs::drivers::net
