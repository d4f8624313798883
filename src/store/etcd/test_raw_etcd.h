#pragma once
// For tests: what others do to an etcd, and what happens between it and us.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <list>
#include <thread>

#include "base/mutex.h"
#include "base/strings.h"
#include "proto/etcd.pb.h"
#include "rpc/remote.h"
#include "store/test_etcd.h"

namespace dibs::store::testing {

/// Speaks to a member directly.
class RawEtcd {
 public:
  explicit RawEtcd(int port) {
    rpc::RemoteOptions options;
    options.address = cat("127.0.0.1:", port);
    options.tls = false;
    remote_ = rpc::connect_remote(options);
  }

  template <typename Answer, typename Request>
  Answer call(const std::string& method, const Request& request) {
    const rpc::Reply reply = send(method, request.SerializeAsString());
    EXPECT_TRUE(reply.status.ok()) << method << ": " << reply.status.message;
    Answer answer;
    EXPECT_TRUE(answer.ParseFromString(reply.bytes));
    return answer;
  }
  rpc::Reply send(const std::string& method, const std::string& bytes,
                  const rpc::Metadata& metadata = {}) {
    auto promise = std::make_shared<std::promise<rpc::Reply>>();
    auto reply = promise->get_future();
    remote_->call(cat("/etcdserverpb.", method), bytes, std::chrono::seconds(10), metadata,
                  [promise](rpc::Reply answer) { promise->set_value(std::move(answer)); });
    return reply.get();
  }

  Revision put(const std::string& key, const std::string& value) {
    etcdserverpb::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    return call<etcdserverpb::PutResponse>("KV/Put", request).header().revision();
  }
  Revision remove(const std::string& key) {
    etcdserverpb::DeleteRangeRequest request;
    request.set_key(key);
    return call<etcdserverpb::DeleteRangeResponse>("KV/DeleteRange", request).header().revision();
  }
  /// "-" where there is no such key.
  std::string get(const std::string& key) {
    etcdserverpb::RangeRequest request;
    request.set_key(key);
    const auto answer = call<etcdserverpb::RangeResponse>("KV/Range", request);
    return answer.kvs().empty() ? "-" : answer.kvs(0).value();
  }
  void compact(Revision revision) {
    etcdserverpb::CompactionRequest request;
    request.set_revision(revision);
    request.set_physical(true);
    call<etcdserverpb::CompactionResponse>("KV/Compact", request);
  }
  /// Whether it is this one.
  bool leads() {
    const auto status =
        call<etcdserverpb::StatusResponse>("Maintenance/Status", etcdserverpb::StatusRequest());
    return status.leader() != 0 && status.leader() == status.header().member_id();
  }

 private:
  std::unique_ptr<rpc::Remote> remote_;
};

/// A port that passes everything on to another, and can be told not to.
class Proxy {
 public:
  explicit Proxy(int target) : target_(target) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    (void)::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    (void)::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    (void)::listen(listener_, 64);
    port_ = ntohs(address.sin_port);
    threads_.emplace_back([this] { accept_all(); });
  }
  ~Proxy() {
    ending_ = true;
    for (auto& thread : threads_) thread.join();
    ::close(listener_);
  }

  int port() const { return port_; }
  std::string endpoint() const { return cat("http://127.0.0.1:", port_); }
  /// Nothing goes through, and nobody is told.
  void stall() { stalled_ = true; }
  /// Nothing comes back on connections that are there; new ones are as they should be.
  void swallow_answers() { swallowed_ = made_.load(); }
  /// The same for what is sent.
  void swallow_requests() { swallowed_requests_ = made_.load(); }
  /// Connections end, and new ones at once.
  void cut() {
    cut_ = true;
    ended_ = made_.load();
  }
  void heal() {
    stalled_ = false;
    cut_ = false;
  }

 private:
  static int dial(int port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    ::close(fd);
    return -1;
  }

  void accept_all() {
    std::list<std::thread> serving;
    while (!ending_) {
      pollfd waiting{listener_, POLLIN, 0};
      if (::poll(&waiting, 1, 20) <= 0) continue;
      const int client = ::accept(listener_, nullptr, nullptr);
      const int number = ++made_;
      serving.emplace_back([this, client, number] { serve(client, number); });
    }
    for (auto& thread : serving) thread.join();
  }

  void serve(int client, int number) {
    const int server = cut_ ? -1 : dial(target_);
    while (!ending_ && server >= 0 && number > ended_) {
      if (stalled_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        continue;
      }
      pollfd both[2] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      if (::poll(both, 2, 20) <= 0) continue;
      if (both[0].revents != 0 && !pass(client, server, number > swallowed_requests_)) break;
      if (both[1].revents != 0 && !pass(server, client, number > swallowed_)) break;
    }
    ::close(client);
    if (server >= 0) ::close(server);
  }

  static bool pass(int from, int to, bool on) {
    char bytes[65536];
    const ssize_t got = ::recv(from, bytes, sizeof bytes, 0);
    if (got <= 0) return false;
    for (ssize_t sent = 0; on && sent < got;) {
      const ssize_t now =
          ::send(to, bytes + sent, static_cast<std::size_t>(got - sent), MSG_NOSIGNAL);
      if (now <= 0) return false;
      sent += now;
    }
    return true;
  }

  const int target_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<bool> stalled_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<int> made_ = 0;
  std::atomic<int> ended_ = 0;
  std::atomic<int> swallowed_ = 0;
  std::atomic<int> swallowed_requests_ = 0;
  std::list<std::thread> threads_;
};

}  // namespace dibs::store::testing
