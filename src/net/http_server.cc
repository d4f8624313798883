#include "net/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <latch>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/dial.h"
#include "net/server_connection.h"

namespace dibs::net {
namespace {

// Between two looks for connections that have become idle.
constexpr Duration kDrainRound = std::chrono::milliseconds(50);

constexpr int kBacklog = 1024;
constexpr std::size_t kReadSize = 64 * 1024;

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
    return cat('[', text, "]:", ntohs(v6.sin6_port));
  }
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
  return cat(text, ':', ntohs(v4.sin_port));
}

/// What connections are counted by: an address, or the network that one customer has of IPv6.
std::string host_of(const sockaddr_storage& address) {
  constexpr std::size_t kNetwork = 8;
  if (address.ss_family != AF_INET6) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
    return {reinterpret_cast<const char*>(&v4), sizeof v4};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto* bytes = reinterpret_cast<const char*>(v6.s6_addr);
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return {bytes + 12, 4};
  return {bytes, kNetwork};
}

/// How many connections leave enough descriptors for stores, containers and streams to nodes.
std::size_t most_connections() {
  const std::size_t limit = descriptor_limit();
  return std::max<std::size_t>(1, limit - limit / 4);
}

void set_option(int fd, int level, int name, int value) {
  ::setsockopt(fd, level, name, &value, sizeof value);
}

Result<int> listen_on(const std::string& host, const std::string& device, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                 std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return Error::unavailable(cat("listen tcp ", host, ": ", ::gai_strerror(code)));
  const int fd = ::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  int error = fd < 0 ? errno : 0;
  if (error == 0) {
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (found->ai_family == AF_INET6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if ((!device.empty() && ::setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device.c_str(),
                                         static_cast<socklen_t>(device.size())) != 0) ||
        ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd, kBacklog) != 0) {
      error = errno;
      ::close(fd);
    }
  }
  ::freeaddrinfo(found);
  if (error != 0) {
    return Error::unavailable(cat("listen tcp ", host, ':', port, device.empty() ? "" : " on ",
                                  device, ": bind: ", to_lower(std::strerror(error))));
  }
  return fd;
}

std::uint16_t port_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

/// All of them, at one port.
Result<std::vector<int>> listen_everywhere(const ServerOptions& options) {
  // A port that is picked at one address may be taken at another.
  constexpr int kAttempts = 8;
  for (int attempt = 1;; ++attempt) {
    DIBS_TRY(const int first, listen_on(options.host, "", options.port));
    std::vector<int> all = {first};
    std::optional<Error> failed;
    for (const Listen& more : options.also) {
      auto fd = listen_on(more.host, more.device, port_of(first));
      if (!fd.ok()) {
        failed = fd.error();
        break;
      }
      all.push_back(*fd);
    }
    if (!failed) return all;
    for (const int fd : all) ::close(fd);
    if (options.port != 0 || attempt == kAttempts) return *failed;
  }
}

std::int64_t milliseconds(Duration span) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(span).count();
}

}  // namespace

ServerWorker::ServerWorker(ServerShared& server)
    : shared(server), loop(std::make_shared<EventLoop>()), scratch(kReadSize) {}

void ServerWorker::add(std::shared_ptr<Connection> connection) {
  connection->index = connections.size();
  connections.push_back(connection);
  connection->begin();
}

bool ServerWorker::shed(const std::string& address) {
  Connection* longest = nullptr;
  std::int64_t most = -1;
  for (const auto& one : connections) {
    if (!address.empty() && one->host() != address) continue;
    const std::int64_t waited = one->waited(loop->now());
    if (waited <= most) continue;
    most = waited;
    longest = one.get();
  }
  if (longest == nullptr) return false;
  ++shared.shed;
  longest->close();
  return true;
}

void ServerWorker::remove(Connection& connection) {
  const std::size_t at = connection.index;
  std::swap(connections[at], connections.back());
  connections[at]->index = at;
  {
    const MutexLock lock(shared.mutex);
    auto found = shared.per_address.find(connection.host());
    if (--found->second == 0) shared.per_address.erase(found);
  }
  connections.pop_back();
  --count;
  if (--shared.open == 0) {
    const MutexLock lock(shared.mutex);
    shared.changed.notify_all();
  }
}

void ServerWorker::tick() {
  const std::int64_t now = loop->now();
  // From the back: a connection that ends is replaced by one that was looked at already.
  for (std::size_t i = connections.size(); i-- > 0;) {
    if (i < connections.size()) connections[i]->on_tick(now);
  }
}

void ServerWorker::drain_all() {
  for (std::size_t i = connections.size(); i-- > 0;) {
    if (i < connections.size()) connections[i]->drain();
  }
}

void ServerWorker::close_all() {
  while (!connections.empty()) connections.back()->close();
}

const std::string& ServerWorker::date() {
  const std::time_t now = std::time(nullptr);
  if (now != date_second) {
    date_second = now;
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const auto two = [](int n) { return cat(n < 10 ? "0" : "", n); };
    date_text = cat("Date: ", kDays[parts.tm_wday], ", ", two(parts.tm_mday), ' ',
                    kMonths[parts.tm_mon], ' ', parts.tm_year + 1900, ' ', two(parts.tm_hour), ':',
                    two(parts.tm_min), ':', two(parts.tm_sec), " GMT\r\n");
  }
  return date_text;
}

struct HttpServer::Impl {
  struct Listener final : EventLoop::Source {
    Listener(Impl& server, int socket) : impl(server), fd(socket) {}
    void on_ready(EventLoop::Ready) override { impl.accept_all(fd); }
    Impl& impl;
    const int fd;
  };

  ServerShared shared;
  std::vector<std::unique_ptr<ServerWorker>> workers;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::uint16_t port = 0;
  bool out_of_descriptors = false;
  bool stopped = false;
  Mutex tls_mutex;
  std::shared_ptr<TlsContext> tls DIBS_GUARDED_BY(tls_mutex);

  void accept_all() {
    out_of_descriptors = false;
    for (const auto& listener : listeners) accept_all(listener->fd);
  }

  void accept_all(int listener) {
    for (;;) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&address), &size,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (fd < 0) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        // Whoever waits in the backlog is taken at a later tick.
        if (errno != EAGAIN && errno != EWOULDBLOCK) out_of_descriptors = true;
        return;
      }
      std::string host = host_of(address);
      if (!has_room(host)) {
        ++shared.refused;
        ::close(fd);
        continue;
      }
      take(fd, address, std::move(host));
    }
  }

  /// Asks for room where a bound is reached. That takes a moment, so a few more are let in
  /// meanwhile.
  bool has_room(const std::string& host) {
    const auto few = [](std::size_t bound) { return std::min<std::size_t>(64, bound / 8); };
    const std::size_t most = shared.options.max_connections;
    const std::size_t most_here = shared.options.max_per_address;
    std::size_t here = 0;
    {
      const MutexLock lock(shared.mutex);
      if (auto found = shared.per_address.find(host); found != shared.per_address.end())
        here = found->second;
    }
    const std::size_t open = shared.open;
    if (open < most && here < most_here) return true;
    // This thread's own first: what goes there goes at once.
    const std::string whose = here >= most_here ? host : "";
    if (workers[0]->shed(whose)) return true;
    if (open >= most + few(most) || here >= most_here + few(most_here)) return false;
    pass_on_shedding(whose, 1);
    return workers.size() > 1;
  }

  void pass_on_shedding(const std::string& whose, std::size_t next) {
    if (next >= workers.size()) return;
    workers[next]->loop->post([this, whose, next] {
      if (!workers[next]->shed(whose)) pass_on_shedding(whose, next + 1);
    });
  }

  void take(int fd, const sockaddr_storage& address, std::string host) {
    ++shared.accepted;
    {
      const MutexLock lock(shared.mutex);
      ++shared.per_address[host];
    }
    ++shared.open;
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 30);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    std::shared_ptr<TlsContext> context;
    {
      const MutexLock lock(tls_mutex);
      context = tls;
    }
    auto& worker = **std::min_element(
        workers.begin(), workers.end(),
        [](const auto& a, const auto& b) { return a->count.load() < b->count.load(); });
    ++worker.count;
    const bool secure = context != nullptr;
    auto connection = std::make_shared<Connection>(
        worker, secure ? Channel::tls_server(fd, std::move(context)) : Channel::plain(fd), secure,
        address_text(address), std::move(host));
    if (worker.loop->on_this_thread()) {
      worker.add(std::move(connection));
    } else {
      worker.loop->post([&worker, connection] { worker.add(connection); });
    }
  }

  /// Whether any request is in flight. Not on an io thread.
  bool is_busy() {
    std::atomic<bool> busy = false;
    std::latch asked(static_cast<std::ptrdiff_t>(workers.size()));
    for (auto& worker : workers) {
      worker->loop->post([&worker = *worker, &busy, &asked] {
        for (const auto& connection : worker.connections) {
          if (connection->is_busy()) busy = true;
        }
        asked.count_down();
      });
    }
    asked.wait();
    return busy;
  }

  /// On the first worker's loop. Events of this round may still name them.
  void close_listeners() {
    for (auto& listener : listeners) {
      workers[0]->loop->remove(listener->fd);
      ::close(listener->fd);
      workers[0]->loop->retire(std::shared_ptr<Listener>(std::move(listener)));
    }
    listeners.clear();
  }
};

HttpServer::HttpServer() : impl_(std::make_unique<Impl>()) {}

Result<> HttpServer::can_listen(const std::string& host, std::uint16_t port) {
  DIBS_TRY(const int fd, listen_on(host, "", port));
  ::close(fd);
  return success();
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(ServerOptions options, Handler handler) {
  std::unique_ptr<HttpServer> server(new HttpServer);
  Impl& impl = *server->impl_;
  impl.stopped = true;  // until threads run
  if (options.tls) DIBS_CHECK(server->set_tls(*options.tls));
  DIBS_TRY(const auto sockets, listen_everywhere(options));
  for (const int fd : sockets) impl.listeners.push_back(std::make_unique<Impl::Listener>(impl, fd));
  impl.port = port_of(sockets[0]);

  const std::int64_t shortest = milliseconds(std::min(
      {options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout}));
  const std::chrono::milliseconds interval(std::clamp<std::int64_t>(shortest / 4, 10, 500));
  options.max_connections = std::min(options.max_connections, most_connections());
  // Whoever takes his share leaves as much for others.
  options.max_per_address =
      std::min(options.max_per_address, std::max<std::size_t>(1, options.max_connections / 2));
  impl.shared.options = std::move(options);
  impl.shared.handler = std::move(handler);
  for (unsigned i = 0; i < std::max(1U, impl.shared.options.threads); ++i) {
    impl.workers.push_back(std::make_unique<ServerWorker>(impl.shared));
  }
  for (auto& worker : impl.workers) {
    const bool first = worker == impl.workers.front();
    worker->loop->set_tick(interval, [&impl, &worker = *worker, first] {
      worker.tick();
      if (first && impl.out_of_descriptors) impl.accept_all();
    });
  }
  impl.workers[0]->loop->post([&impl] {
    for (auto& listener : impl.listeners) impl.workers[0]->loop->add(listener->fd, listener.get());
  });
  for (auto& worker : impl.workers) {
    worker->thread = std::thread([&worker = *worker] { worker.loop->run(); });
  }
  impl.stopped = false;
  return server;
}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return impl_->port; }

Result<> HttpServer::set_tls(const TlsServerOptions& options) {
  DIBS_TRY(auto context, TlsContext::server(options));
  const MutexLock lock(impl_->tls_mutex);
  impl_->tls = std::move(context);
  return success();
}

void HttpServer::retire() { impl_->shared.draining = true; }

void HttpServer::drain(Duration deadline) {
  if (impl_->stopped) return;
  retire();
  const auto end = std::chrono::steady_clock::now() + deadline;
  if (impl_->shared.options.answers_while_draining) {
    while (impl_->is_busy() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kDrainRound);
    }
  }
  impl_->workers[0]->loop->post([impl = impl_.get()] {
    // Who is in the backlog was let in.
    impl->accept_all();
    impl->close_listeners();
  });
  while (impl_->shared.open > 0 && std::chrono::steady_clock::now() < end) {
    for (auto& worker : impl_->workers) {
      worker->loop->post([&worker = *worker] { worker.drain_all(); });
    }
    MutexLock lock(impl_->shared.mutex);
    impl_->shared.changed.wait_for(lock, kDrainRound, [this] { return impl_->shared.open == 0; });
  }
  stop();
}

void HttpServer::stop() {
  if (impl_->stopped) {
    for (const auto& listener : impl_->listeners) ::close(listener->fd);
    impl_->listeners.clear();
    return;
  }
  impl_->stopped = true;
  for (auto& worker : impl_->workers) worker->loop->stop();
  for (auto& worker : impl_->workers) worker->thread.join();
  // From here on this thread is every loop's thread.
  impl_->close_listeners();
  for (auto& worker : impl_->workers) {
    worker->loop->post([&worker = *worker] { worker.close_all(); });
    worker->loop->close();
  }
}

ServerStats HttpServer::stats() const {
  const ServerShared& shared = impl_->shared;
  return {.accepted = shared.accepted,
          .refused = shared.refused,
          .shed = shared.shed,
          .open = shared.open,
          .requests = shared.requests,
          .bad_requests = shared.bad_requests,
          .timeouts = shared.timeouts,
          .slow_clients = shared.slow_clients};
}

}  // namespace dibs::net
