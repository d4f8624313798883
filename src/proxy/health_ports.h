#pragma once
// healthCheckNodePort: what a load balancer asks to learn whether this machine has a backend of a
// Service that keeps to local ones. 200 with one, 503 without.
//
// One listener for each such port, as long as its Service is there. Thread-safe.

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "net/http_server.h"
#include "proxy/service_view.h"

namespace dibs::proxy {

class HealthPorts {
 public:
  HealthPorts() = default;
  ~HealthPorts();
  HealthPorts(const HealthPorts&) = delete;
  HealthPorts& operator=(const HealthPorts&) = delete;

  /// A port of 0 ends it. A port that is taken is tried again at the next call.
  void put(const std::string& key, int port, std::size_t backends);
  void stop();

 private:
  struct Listener {
    int port = 0;
    std::shared_ptr<std::atomic<std::size_t>> backends;
    std::unique_ptr<net::HttpServer> server;
  };
  Mutex mutex_;
  std::map<std::string, Listener> listeners_ DIBS_GUARDED_BY(mutex_);
};

/// The machine's backends that make it healthy, of all ports of the Service.
std::size_t local_backends(const ServiceView& service, const Machine& machine);
/// As kube-proxy answers.
net::Response health_answer(const std::string& key, std::size_t backends);

}  // namespace dibs::proxy
