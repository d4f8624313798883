#pragma once
// The cluster's name server on one machine: UDP and TCP at one address and port, on a thread of its
// own.
//
// A flood costs that thread only, and those who ask too much first (clients.h). Nothing grows
// without bound: connections, questions that wait for other servers, bytes that wait to be sent.

#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "dns/forwarder.h"
#include "dns/zone.h"
#include "runtime/runtime.h"

namespace dibs::dns {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: one that is free
  /// Of who may ask beside this machine itself; empty: everybody.
  std::vector<Range> clients = {};
  ForwarderOptions forwarding = {};
  metrics::Registry* metrics = nullptr;
};

class Server {
 public:
  /// `zone`, `random` and the metrics outlive it.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, const Zone& zone,
                                               runtime::Random& random);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  /// "HOST:PORT"
  const std::string& address() const;
  void stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dibs::dns
