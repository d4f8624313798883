#pragma once
// The TCP ports of a driver that is a program of its own: metrics, and the gRPC health service that
// a liveness probe asks.
//
// Healthy means: both of the driver's own sockets answer. The probe calls GetInfo on the one and an
// empty NodePrepareResources on the other, as the node's agent would. A controller has no sockets:
// it is healthy when it can answer.

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "driver/plugin.h"
#include "rpc/server.h"

namespace dibs::driver {

struct ProcessOptions;

class ProcessServers {
 public:
  /// `registry` and `plugin` must outlive it; `plugin` null: there is none. Errors name the flag.
  static Result<std::unique_ptr<ProcessServers>> start(const ProcessOptions& options,
                                                       metrics::Registry& registry, Plugin* plugin);
  /// As stop().
  ~ProcessServers();
  void stop();

 private:
  ProcessServers();
  struct State;
  std::unique_ptr<State> state_;
};

/// grpc.health.v1.Health, and what the plugin's sockets say.
rpc::Methods health_methods(std::function<bool()> is_serving);
rpc::Methods health_methods(const std::string& registration_socket,
                            const std::string& service_socket);

}  // namespace dibs::driver
