#include "net/client_connection.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.h"
#include "net/wire.h"

namespace dibs::net {
namespace {

// What one of several addresses of a name has to answer in.
constexpr std::chrono::seconds kTurn{2};

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

Result<int> connect_to(const SocketAddress& address, Deadline deadline) {
  DIBS_TRY(const int fd, begin_connect(address));
  Result<> connected = Error::timeout(cat(address.where(), "i/o timeout"));
  if (wait(fd, POLLOUT, deadline) != 0) connected = finish_connect(fd, address);
  if (connected.ok()) return fd;
  ::close(fd);
  return connected.error();
}

}  // namespace

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
    const Url& url, std::shared_ptr<TlsContext> context, Deadline deadline, Reach reach,
    const Lookups& lookups) {
  DIBS_TRY(const auto addresses, lookups.find_by(url, reach, deadline));
  Result<int> fd = Error::unavailable("");
  for (std::size_t i = 0; i < addresses.size() && !fd.ok(); ++i) {
    // A machine that is gone says nothing at all: others are asked while there is time.
    const bool last = i + 1 == addresses.size();
    fd = connect_to(
        addresses[i],
        last ? deadline : std::min<Deadline>(deadline, std::chrono::steady_clock::now() + kTurn));
  }
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
