#include "net/dial.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/strings.h"
#include "net/route.h"

namespace dibs::net {
namespace {

std::string host_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  if (address->sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  ::inet_ntop(address->sa_family, bytes, text, sizeof text);
  return text;
}

std::string text_of(const sockaddr* address) {
  if (address->sa_family == AF_INET6) {
    return cat('[', host_of(address),
               "]:", ntohs(reinterpret_cast<const sockaddr_in6*>(address)->sin6_port));
  }
  return cat(host_of(address), ':', ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port));
}

bool is_global(std::uint32_t v4) {
  const auto top = v4 >> 24;
  return v4 != 0 && v4 != 0xffffffff && top != 127 && (v4 >> 16) != 0xa9fe && (top >> 4) != 14;
}

bool is_global(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return is_global(ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr));
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    std::uint32_t v4 = 0;
    std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
    return is_global(ntohl(v4));
  }
  return !IN6_IS_ADDR_UNSPECIFIED(&v6) && !IN6_IS_ADDR_LOOPBACK(&v6) &&
         !IN6_IS_ADDR_LINKLOCAL(&v6) && !IN6_IS_ADDR_MULTICAST(&v6);
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  Url out;
  const std::string_view whole = text;
  const auto broken = [&](std::string_view why) {
    return Error::invalid(cat("URL ", quoted(whole), ": ", why));
  };
  const auto unsendable = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; };
  if (std::any_of(text.begin(), text.end(), unsendable)) {
    return broken("must not have spaces or control characters");
  }
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    out.tls = false;
    text.remove_prefix(7);
  } else {
    return broken("must begin with https:// or http://");
  }
  const auto slash = text.find('/');
  if (slash != std::string_view::npos) {
    out.path = text.substr(slash);
    while (out.path.ends_with('/')) out.path.pop_back();
    text = text.substr(0, slash);
  }
  std::string_view port;
  if (text.starts_with('[')) {
    const auto bracket = text.find(']');
    if (bracket == std::string_view::npos) return broken("missing ]");
    out.host = text.substr(1, bracket - 1);
    port = text.substr(bracket + 1);
    if (!port.empty() && port.front() != ':') return broken("bad port");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const auto colon = text.rfind(':');
    out.host = text.substr(0, colon);
    if (colon != std::string_view::npos) port = text.substr(colon + 1);
  }
  if (out.host.empty() || out.host.find_first_of("@?#") != std::string::npos) {
    return broken("bad host");
  }
  out.port = out.tls ? 443 : 80;
  if (!port.empty()) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc() || end != port.data() + port.size() || out.port == 0) {
      return broken("bad port");
    }
  }
  return out;
}

std::string Url::host_port() const {
  return host.find(':') == std::string::npos ? cat(host, ':', port) : cat('[', host, "]:", port);
}

std::string Url::authority() const {
  if (port != (tls ? 443 : 80)) return host_port();
  return host.find(':') == std::string::npos ? host : cat('[', host, ']');
}

std::string SocketAddress::where() const {
  return cat("dial tcp ", text_of(reinterpret_cast<const sockaddr*>(&storage_)), ": ");
}

bool SocketAddress::is_global() const {
  return net::is_global(reinterpret_cast<const sockaddr*>(&storage_));
}

Result<> SocketAddress::check_route() const {
  const std::string host = host_of(reinterpret_cast<const sockaddr*>(&storage_));
  DIBS_TRY(const bool away, is_by_default_route(host));
  if (!away) return success();
  return Error::unavailable(cat("only the default route leads to ", host,
                                ", out of the cluster: this machine needs a "
                                "route to the network of pods and Services that has it"));
}

std::size_t descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return limit.rlim_cur;
}

bool needs_lookup(const Url& url) {
  in6_addr any{};
  const std::string& host = url.dialled_host();
  return host != "localhost" && ::inet_pton(AF_INET, host.c_str(), &any) != 1 &&
         ::inet_pton(AF_INET6, host.c_str(), &any) != 1;
}

Result<std::vector<SocketAddress>> resolve(const Url& url, Reach reach) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // localhost is the loopback also where no hosts file says so (RFC 6761); null stands for it.
  const std::string& name = url.dialled_host();
  const char* host = name == "localhost" ? nullptr : name.c_str();
  const int code = ::getaddrinfo(host, std::to_string(url.dialled_port()).c_str(), &hints, &found);
  if (code != 0) {
    return Error::unavailable(cat("dial tcp: lookup ", name, ": ",
                                  code == EAI_NONAME ? "no such host" : ::gai_strerror(code)));
  }
  std::vector<SocketAddress> out;
  for (const addrinfo* place = found; place != nullptr; place = place->ai_next) {
    if (place->ai_addrlen > sizeof(sockaddr_storage)) continue;
    SocketAddress& address = out.emplace_back();
    std::memcpy(&address.storage_, place->ai_addr, place->ai_addrlen);
    address.size_ = place->ai_addrlen;
    address.of_cluster_ = reach == Reach::cluster;
  }
  ::freeaddrinfo(found);
  if (out.empty()) return Error::unavailable(cat("dial tcp: lookup ", name, ": no such host"));
  if (reach != Reach::anywhere &&
      !std::all_of(out.begin(), out.end(), [](const auto& one) { return one.is_global(); })) {
    return Error::bad_request("address not allowed");
  }
  return out;
}

Result<int> begin_connect(const SocketAddress& address) {
  const auto* place = reinterpret_cast<const sockaddr*>(&address.storage_);
  if (address.of_cluster_) {
    if (auto routed = address.check_route(); !routed.ok())
      return Error::unavailable(cat(address.where(), "connect: ", routed.error().message()));
  }
  const int fd = ::socket(place->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return Error::unavailable(cat(address.where(), "socket: ", to_lower(std::strerror(errno))));
  }
  if (::connect(fd, place, address.size_) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    ::close(fd);
    return Error::unavailable(cat(address.where(), "connect: ", to_lower(std::strerror(error))));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A machine that is gone is found out after 30 s, also by who only listens.
  const int idle = 15;
  const int again = 5;
  const int probes = 3;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  return fd;
}

Result<> finish_connect(int fd, const SocketAddress& address) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return success();
  return Error::unavailable(cat(address.where(), "connect: ", to_lower(std::strerror(error))));
}

}  // namespace dibs::net
