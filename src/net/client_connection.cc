#include "net/client_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/strings.h"
#include "net/wire.h"

namespace dibs::net {
namespace {

constexpr std::size_t kSlice = 128 * 1024;

Error expired() { return Error::timeout("context deadline exceeded"); }

/// What became ready; 0 at the deadline.
short wait(int fd, short events, Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now())
            .count();
    pollfd entry{fd, events, 0};
    const int count =
        ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
    if (count > 0) return entry.revents;
    if (count < 0 && errno == EINTR) continue;
    if (left <= 3'600'000) return 0;
  }
}

std::string text_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
    return cat('[', text, "]:", ntohs(v6->sin6_port));
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
  ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
  return cat(text, ':', ntohs(v4->sin_port));
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

Result<int> connect_to(const addrinfo& place, Deadline deadline) {
  const std::string where = cat("dial tcp ", text_of(place.ai_addr), ": ");
  const int fd = ::socket(place.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Error::unavailable(cat(where, "socket: ", to_lower(std::strerror(errno))));
  int error = ::connect(fd, place.ai_addr, place.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    if (wait(fd, POLLOUT, deadline) == 0) {
      ::close(fd);
      return Error::timeout(cat(where, "i/o timeout"));
    }
    socklen_t size = sizeof error;
    ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    ::close(fd);
    return Error::unavailable(cat(where, "connect: ", to_lower(std::strerror(error))));
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int idle = 30;
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle, sizeof idle);
  return fd;
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

Result<std::string> request_head(const Request& request, const Url& url) {
  DIBS_CHECK(check_sendable(request));
  std::string out = cat(request.method, ' ', url.path, request.target,
                        " HTTP/1.1\r\nHost: ", url.authority(), "\r\n");
  for (const auto& [name, value] : request.headers.fields()) {
    if (equals_ignoring_case(name, "Host") || equals_ignoring_case(name, "Content-Length") ||
        equals_ignoring_case(name, "Transfer-Encoding")) {
      continue;
    }
    append(out, name, ": ", value, "\r\n");
  }
  if (!request.body.empty() || request.method == "POST" || request.method == "PUT" ||
      request.method == "PATCH") {
    append(out, "Content-Length: ", request.body.size(), "\r\n");
  }
  out.append("\r\n");
  return out;
}

Result<std::unique_ptr<ClientConnection>> ClientConnection::dial(
    const Url& url, std::shared_ptr<TlsContext> context, Deadline deadline, Reach reach) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  // localhost is the loopback also where no hosts file says so (RFC 6761); null stands for it.
  const char* host = url.host == "localhost" ? nullptr : url.host.c_str();
  const int code = ::getaddrinfo(host, std::to_string(url.port).c_str(), &hints, &found);
  if (code != 0) {
    return Error::unavailable(cat("dial tcp: lookup ", url.host, ": ",
                                  code == EAI_NONAME ? "no such host" : ::gai_strerror(code)));
  }
  Result<int> fd = Error::unavailable(cat("dial tcp: lookup ", url.host, ": no such host"));
  for (const addrinfo* place = found; place != nullptr; place = place->ai_next) {
    // One that is out of reach condemns the name: it must not be a matter of order.
    if (reach == Reach::others && !is_global(place->ai_addr)) {
      if (fd.ok()) ::close(*fd);
      fd = Error::bad_request("address not allowed");
      break;
    }
    if (!fd.ok()) fd = connect_to(*place, deadline);
  }
  ::freeaddrinfo(found);
  if (!fd) return fd.error();
  auto channel =
      url.tls ? Channel::tls_client(*fd, std::move(context), url.host) : Channel::plain(*fd);
  std::unique_ptr<ClientConnection> connection(new ClientConnection(std::move(channel)));
  DIBS_CHECK(connection->handshake(deadline));
  return connection;
}

Result<> ClientConnection::handshake(Deadline deadline) {
  while (true) {
    const Io io = channel_->handshake();
    if (io == Io::error || io == Io::eof) {
      channel_->flush();
      return Error::unavailable(channel_->error_text());
    }
    DIBS_CHECK(flush(deadline));
    if (io == Io::ok) return success();
    if (wait(channel_->fd(), POLLIN, deadline) == 0) {
      return Error::timeout("net/http: TLS handshake timeout");
    }
  }
}

Result<> ClientConnection::flush(Deadline deadline) {
  while (true) {
    switch (channel_->flush()) {
      case Io::ok:
        return success();
      case Io::again:
        break;
      default:
        return Error::unavailable(cat("write: ", channel_->error_text()));
    }
    if (wait(channel_->fd(), POLLOUT, deadline) == 0) return expired();
  }
}

Result<> ClientConnection::write(std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const auto slice = bytes.substr(0, kSlice);
    bytes.remove_prefix(slice.size());
    if (!channel_->write(slice)) return Error::unavailable(channel_->error_text());
    while (true) {
      const Io io = channel_->flush();
      if (io == Io::ok) break;
      if (io != Io::again) return Error::unavailable(cat("write: ", channel_->error_text()));
      const short ready = wait(channel_->fd(), POLLOUT | POLLIN, deadline);
      if (ready == 0) return expired();
      if ((ready & POLLIN) == 0) continue;
      // An early answer, or just a session ticket.
      char buffer[4096];
      std::size_t got = 0;
      const Io early = channel_->read(buffer, sizeof buffer, got);
      if (early == Io::ok) {
        early_.append(buffer, got);
        return success();
      }
      if (early == Io::error || early == Io::eof) {
        return Error::unavailable(cat("write: ", channel_->error_text()));
      }
    }
  }
  return success();
}

Result<std::size_t> ClientConnection::read(char* data, std::size_t size, Deadline deadline) {
  if (!early_.empty()) {
    answered = true;
    const std::size_t got = early_.copy(data, size);
    early_.erase(0, got);
    return got;
  }
  while (true) {
    std::size_t got = 0;
    switch (channel_->read(data, size, got)) {
      case Io::ok:
        answered = true;
        return got;
      case Io::eof:
        return std::size_t{0};
      case Io::error:
        return Error::unavailable(cat("read: ", channel_->error_text()));
      case Io::again:
        break;
    }
    // Reading may have produced TLS messages of its own.
    if (channel_->output() > 0) DIBS_CHECK(flush(deadline));
    if (wait(channel_->fd(), POLLIN, deadline) == 0) return expired();
  }
}

bool ClientConnection::healthy() {
  char byte;
  std::size_t got = 0;
  return channel_->read(&byte, 1, got) == Io::again;
}

}  // namespace dibs::net
