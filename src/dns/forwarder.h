#pragma once
// Asks the machine's own name servers what is not of the cluster.
//
// A question goes to the servers in turn, each time from a socket of its own with an id drawn anew;
// what comes back counts only from that server, with that id, to that question. An answer that was
// cut off is asked for again over TCP. The same question is asked once at a time, however many
// wait for it: servers that lead back to here, over whatever detour, cannot make one question many.
//
// Lives on an event loop: every function runs on its thread.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "dns/cache.h"
#include "dns/message.h"
#include "net/event_loop.h"
#include "runtime/runtime.h"

namespace dibs::dns {

struct ForwarderOptions {
  /// Addresses of servers, with or without a port (53): asked for again every few seconds.
  std::function<std::vector<std::string>()> servers = {};
  /// Addresses that lead back here, which are no servers to ask.
  std::vector<std::string> never = {};
};

class Forwarder {
 public:
  static constexpr std::size_t kMostPending = 512;
  static constexpr std::size_t kMostWaiting = 256;  // for one question
  static constexpr int kTries = 3;
  static constexpr std::int64_t kTryFor = 1500;  // milliseconds

  struct Asking {
    Question question = {};
    bool dnssec_ok = false;
    bool checking_disabled = false;
  };
  /// Told once, perhaps at once. A server failure when nobody answers.
  using Done = std::function<void(const Message& answer)>;

  Forwarder(std::shared_ptr<net::EventLoop> loop, runtime::Random& random,
            ForwarderOptions options);
  ~Forwarder();

  void ask(const Asking& asking, Done done);
  /// About every tenth of a second.
  void tick();
  /// Answers everybody who waits; nothing is asked any more.
  void close();
  std::size_t pending() const { return pending_.size(); }

 private:
  struct Exchange;

  void refresh_servers();
  void attempt(const std::shared_ptr<Exchange>& exchange);
  void next_attempt(const std::shared_ptr<Exchange>& exchange);
  void received(const std::shared_ptr<Exchange>& exchange, std::string_view bytes);
  void take(const std::shared_ptr<Exchange>& exchange, std::string_view bytes);
  void finish(const std::shared_ptr<Exchange>& exchange, Message answer);

  const std::shared_ptr<net::EventLoop> loop_;
  runtime::Random& random_;
  const ForwarderOptions options_;
  std::vector<std::string> servers_;
  std::int64_t servers_until_ = 0;
  std::size_t preferred_ = 0;  // of the servers: who answered last
  Cache cache_;
  std::map<std::string, std::shared_ptr<Exchange>> pending_;
  bool closed_ = false;
};

}  // namespace dibs::dns
