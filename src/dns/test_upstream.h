#pragma once
// For tests: a name server that answers as it is told, and a client that asks over a socket.

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "dns/message.h"
#include "dns/socket_address.h"

namespace dibs::dns {

/// At 127.0.0.1, UDP and TCP at one port, on a thread of its own.
class TestUpstream {
 public:
  /// What to send back for a question, each as it is; over TCP the first.
  using Answers = std::function<std::vector<std::string>(const Message& query, bool tcp)>;

  explicit TestUpstream(Answers answers) : answers_(std::move(answers)) {
    auto address = *SocketAddress::parse("127.0.0.1:0", 0);
    udp_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    tcp_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)::bind(udp_, address.get(), address.size);
    ::getsockname(udp_, address.get(), &address.size);
    (void)::bind(tcp_, address.get(), address.size);
    (void)::listen(tcp_, 8);
    where_ = cat("127.0.0.1:", address.port());
    thread_ = std::thread([this] { serve(); });
  }
  ~TestUpstream() {
    over_ = true;
    thread_.join();
    ::close(udp_);
    ::close(tcp_);
  }
  const std::string& where() const { return where_; }
  int questions() const { return questions_; }

  /// The query as an answer with one address.
  static Message answer(const Message& query, const std::string& address, std::uint32_t ttl = 60) {
    Message out = query;
    out.response = true;
    out.recursion_available = true;
    out.answers = {{query.questions.at(0).name, type::a, kInternet, ttl, address}};
    return out;
  }

 private:
  void serve() {
    while (!over_) {
      pollfd fds[] = {{udp_, POLLIN, 0}, {tcp_, POLLIN, 0}};
      ::poll(fds, 2, 10);
      if (fds[0].revents != 0) datagram();
      if (fds[1].revents != 0) connection();
    }
  }
  void datagram() {
    char buffer[4096];
    SocketAddress from;
    const ssize_t got = ::recvfrom(udp_, buffer, sizeof buffer, 0, from.get(), &from.size);
    if (got <= 0) return;
    ++questions_;
    for (const auto& bytes : answers_(*parse({buffer, static_cast<std::size_t>(got)}), false)) {
      ::sendto(udp_, bytes.data(), bytes.size(), 0, from.get(), from.size);
    }
  }
  void connection() {
    const int fd = ::accept(tcp_, nullptr, nullptr);
    char buffer[4096];
    const ssize_t got = ::recv(fd, buffer, sizeof buffer, 0);
    ++questions_;
    for (const auto& bytes :
         answers_(*parse({buffer + 2, static_cast<std::size_t>(got - 2)}), true)) {
      const char size[] = {static_cast<char>(bytes.size() >> 8),
                           static_cast<char>(bytes.size() & 0xff)};
      const std::string whole = std::string(size, 2) + bytes;
      ::send(fd, whole.data(), whole.size(), MSG_NOSIGNAL);
    }
    ::close(fd);
  }

  const Answers answers_;
  int udp_ = -1;
  int tcp_ = -1;
  std::string where_;
  std::atomic<bool> over_ = false;
  std::atomic<int> questions_ = 0;
  std::thread thread_;
};

/// Waits ten seconds at most; "" when nothing comes.
class TestClient {
 public:
  explicit TestClient(const std::string& server, bool tcp = false, const char* from = "127.0.0.1")
      : tcp_(tcp) {
    const auto to = *SocketAddress::parse(server, 53);
    const auto own = *SocketAddress::parse(from, 0);
    fd_ = ::socket(AF_INET, (tcp ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
    (void)::bind(fd_, own.get(), own.size);
    (void)::connect(fd_, to.get(), to.size);
  }
  ~TestClient() { ::close(fd_); }

  void send(std::string bytes) const {
    if (tcp_) {
      bytes.insert(0,
                   {static_cast<char>(bytes.size() >> 8), static_cast<char>(bytes.size() & 0xff)});
    }
    ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  std::string receive(int wait_ms = 10'000) const {
    std::string out;
    char buffer[65536];
    while (true) {
      pollfd one{fd_, POLLIN, 0};
      if (::poll(&one, 1, wait_ms) != 1) return "";
      const ssize_t got = ::recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) return "";
      out.append(buffer, static_cast<std::size_t>(got));
      if (!tcp_) return out;
      if (out.size() < 2) continue;
      const std::size_t size =
          static_cast<std::uint8_t>(out[0]) * std::size_t{256} + static_cast<std::uint8_t>(out[1]);
      if (out.size() >= 2 + size) return out.substr(2, size);
    }
  }
  Message ask(const Message& query) const {
    send(write(query));
    auto answer = parse(receive());
    return answer ? *answer : Message();
  }

 private:
  const bool tcp_;
  int fd_ = -1;
};

}  // namespace dibs::dns
