#include "dns/server.h"

#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>
#include <set>

#include "base/strings.h"
#include "dns/responder.h"
#include "dns/socket_address.h"
#include "net/fd_stream.h"

namespace dibs::dns {
namespace {

constexpr std::chrono::milliseconds kTick(100);
constexpr std::int64_t kIdle = 10'000;  // milliseconds, of a connection
constexpr std::size_t kMostConnections = 256;
constexpr std::size_t kMostQueued = std::size_t{1} << 20;  // bytes for one connection
constexpr unsigned kMostWaiting = 64;                      // questions of one connection
constexpr int kTurn = 256;  // datagrams or connections before others have their turn
constexpr int kBacklog = 128;
constexpr int kReceive = 2 << 20;  // bytes of datagrams that wait
constexpr int kPortTries = 16;

struct Sockets {
  int udp = -1;
  int tcp = -1;
  std::uint16_t port = 0;
};

Error listen_error(const std::string& host, std::uint16_t port) {
  return Error::unavailable(
      cat("listen DNS at ", host, ':', port, ": ", to_lower(std::strerror(errno))));
}

/// Both at one port. A free one of UDP may be taken in TCP: then another is tried.
Result<Sockets> open_sockets(const std::string& host, std::uint16_t port) {
  auto address = SocketAddress::parse(host, port);
  if (!address) return Error::bad_request(cat("listen DNS at ", quoted(host), ": no address"));
  address->set_port(port);
  Error failed = listen_error(host, port);
  for (int i = 0; i < kPortTries; ++i) {
    Sockets out;
    const int flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
    SocketAddress bound = *address;
    out.udp = ::socket(address->family(), SOCK_DGRAM | flags, 0);
    out.tcp = ::socket(address->family(), SOCK_STREAM | flags, 0);
    const int on = 1;
    if (out.tcp >= 0) ::setsockopt(out.tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // A burst of one leaves room for others. Without the right to it, what the system allows.
    if (out.udp >= 0 &&
        ::setsockopt(out.udp, SOL_SOCKET, SO_RCVBUFFORCE, &kReceive, sizeof kReceive) != 0) {
      ::setsockopt(out.udp, SOL_SOCKET, SO_RCVBUF, &kReceive, sizeof kReceive);
    }
    if (out.udp >= 0 && out.tcp >= 0 && ::bind(out.udp, bound.get(), bound.size) == 0 &&
        ::getsockname(out.udp, bound.get(), &bound.size) == 0 &&
        ::bind(out.tcp, bound.get(), bound.size) == 0 && ::listen(out.tcp, kBacklog) == 0) {
      out.port = bound.port();
      return out;
    }
    failed = listen_error(host, bound.port());
    if (out.udp >= 0) ::close(out.udp);
    if (out.tcp >= 0) ::close(out.tcp);
    if (port != 0) break;
  }
  return failed;
}

}  // namespace

struct Server::Impl {
  /// A socket that something comes in at, a bounded piece at a time.
  class Door final : public net::EventLoop::Source {
   public:
    Door(net::EventLoop& loop, int fd, std::function<bool()> take)
        : loop_(loop), fd_(fd), take_(std::move(take)) {}
    ~Door() override { close(); }
    void open() { loop_.add(fd_, this); }
    void on_ready(net::EventLoop::Ready) override { take_all(); }
    void take_all() {
      for (int i = 0; i < kTurn && fd_ >= 0; ++i) {
        if (!take_()) return;
      }
      if (fd_ < 0) return;
      // More may be here, which nobody will tell again.
      loop_.post([this] { take_all(); });
    }
    void close() {
      if (fd_ < 0) return;
      loop_.remove(fd_);
      ::close(std::exchange(fd_, -1));
    }
    int fd() const { return fd_; }

   private:
    net::EventLoop& loop_;
    int fd_;
    std::function<bool()> take_;
  };

  struct Connection {
    std::shared_ptr<net::FdStream> stream;
    std::string address;
    std::string input;
    std::int64_t since = 0;
    unsigned waiting = 0;
    bool closed = false;
  };

  Impl(ServerOptions given, const Zone& zone, runtime::Random& random, const Sockets& sockets)
      : options(std::move(given)),
        port(sockets.port),
        where(cat(options.host.find(':') == std::string::npos ? options.host
                                                              : cat('[', options.host, ']'),
                  ':', port)),
        loop(thread.emplace().loop()),
        clients(options.clients),
        forwarder(loop, random, options.forwarding),
        responder(zone, forwarder, clients, random, options.metrics),
        udp(*loop, sockets.udp, [this] { return take_datagram(); }),
        tcp(*loop, sockets.tcp, [this] { return take_connection(); }),
        scratch(Responder::kLongestQuestion + 1, '\0') {}

  void start() {
    loop->post([this] {
      loop->set_tick(kTick, [this] { tick(); });
      udp.open();
      tcp.open();
    });
  }

  bool take_datagram() {
    SocketAddress from;
    const ssize_t got =
        ::recvfrom(udp.fd(), scratch.data(), scratch.size(), 0, from.get(), &from.size);
    if (got < 0) return errno != EAGAIN && errno != EWOULDBLOCK;
    responder.handle({scratch.data(), static_cast<std::size_t>(got)}, from.bytes(), loop->now(),
                     false, [this, from](const std::string& answer) {
                       // What the socket does not take is lost, as anything else on the way.
                       if (udp.fd() < 0) return;
                       ::sendto(udp.fd(), answer.data(), answer.size(), MSG_NOSIGNAL, from.get(),
                                from.size);
                     });
    return true;
  }

  bool take_connection() {
    SocketAddress from;
    const int fd = ::accept4(tcp.fd(), from.get(), &from.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return errno == EINTR || errno == ECONNABORTED;
    Client* client = clients.find(from.bytes(), loop->now());
    if (client == nullptr || client->connections >= Clients::kMostConnections ||
        connections.size() >= kMostConnections) {
      ::close(fd);
      return true;
    }
    ++client->connections;
    auto made = std::make_shared<Connection>();
    made->address = from.bytes();
    made->since = loop->now();
    connections.insert(made);
    const std::weak_ptr<Connection> weak = made;
    made->stream = net::FdStream::open(loop, fd,
                                       {.data =
                                            [this, weak](std::string_view bytes) {
                                              if (const auto self = weak.lock())
                                                take_stream(self, bytes);
                                            },
                                        .ended =
                                            [this, weak](bool) {
                                              if (const auto self = weak.lock()) close(self);
                                            }});
    return true;
  }

  void take_stream(const std::shared_ptr<Connection>& connection, std::string_view bytes) {
    connection->input += bytes;
    std::string_view rest = connection->input;
    while (!connection->closed && rest.size() >= 2) {
      const std::size_t size = static_cast<std::uint8_t>(rest[0]) * std::size_t{256} +
                               static_cast<std::uint8_t>(rest[1]);
      if (size < kHeader || size > Responder::kLongestQuestion) return close(connection);
      if (rest.size() < 2 + size) break;
      connection->since = loop->now();
      ask(connection, rest.substr(2, size));
      rest.remove_prefix(2 + size);
    }
    if (!connection->closed) connection->input.erase(0, connection->input.size() - rest.size());
  }

  void ask(const std::shared_ptr<Connection>& connection, std::string_view question) {
    ++connection->waiting;
    const bool taken =
        responder.handle(question, connection->address, loop->now(), true,
                         [this, weak = std::weak_ptr(connection)](const std::string& answer) {
                           const auto self = weak.lock();
                           if (!self || self->closed) return;
                           --self->waiting;
                           const char size[] = {static_cast<char>(answer.size() >> 8),
                                                static_cast<char>(answer.size() & 0xff)};
                           self->stream->write(cat(std::string_view(size, sizeof size), answer));
                         });
    // Who asks more than he listens to has himself to blame.
    if (!taken || connection->waiting > kMostWaiting ||
        connection->stream->queued() > kMostQueued) {
      close(connection);
    }
  }

  void close(const std::shared_ptr<Connection>& connection) {
    if (std::exchange(connection->closed, true)) return;
    if (Client* client = clients.known(connection->address)) --client->connections;
    if (connection->stream) connection->stream->close();
    connections.erase(connection);
  }

  void tick() {
    forwarder.tick();
    const std::int64_t now = loop->now();
    if (now >= next_look) {
      next_look = now + 1000;
      clients.forget_quiet(now);
      std::vector<std::shared_ptr<Connection>> idle;
      for (const auto& one : connections) {
        if (one->waiting == 0 && now - one->since > kIdle) idle.push_back(one);
      }
      for (const auto& one : idle) close(one);
    }
    // Connections that there were no descriptors for.
    tcp.take_all();
  }

  void stop() {
    if (!thread) return;
    std::promise<void> closed;
    loop->post([this, &closed] {
      udp.close();
      tcp.close();
      forwarder.close();
      for (const auto& one : std::set(connections)) close(one);
      loop->set_tick(kTick, {});
      // After what the streams have posted to close themselves.
      loop->post([&closed] { closed.set_value(); });
    });
    closed.get_future().wait();
    thread.reset();
  }

  const ServerOptions options;
  const std::uint16_t port;
  const std::string where;
  std::optional<net::LoopThread> thread;
  const std::shared_ptr<net::EventLoop> loop;
  Clients clients;
  Forwarder forwarder;
  Responder responder;
  Door udp;
  Door tcp;
  std::string scratch;
  std::set<std::shared_ptr<Connection>> connections;
  std::int64_t next_look = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() { stop(); }

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, const Zone& zone,
                                              runtime::Random& random) {
  DIBS_TRY(const Sockets sockets, open_sockets(options.host, options.port));
  std::unique_ptr<Server> server(
      new Server(std::make_unique<Impl>(std::move(options), zone, random, sockets)));
  server->impl_->start();
  return server;
}

std::uint16_t Server::port() const { return impl_->port; }
const std::string& Server::address() const { return impl_->where; }
void Server::stop() { impl_->stop(); }

}  // namespace dibs::dns
