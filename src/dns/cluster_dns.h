#pragma once
// The cluster's DNS on one machine: a zone that follows the API, and the server that answers from
// it. What a process puts together for the machine whose pods it runs.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "runtime/runtime.h"

namespace dibs::dns {

struct ClusterDnsOptions {
  std::string domain = "cluster.local";
  /// Where to listen, at a port that is free.
  std::string host = {};
  /// The cluster's DNS address, which pods ask and which leads here.
  std::string service_address = {};
  /// "10.0.0.0/24", "10.130.0.0/16": their reverse names are the cluster's; pods may ask.
  std::string services = {};
  std::string pods = {};
  /// Addresses of the machine's own name servers, asked for again every few seconds.
  std::function<std::vector<std::string>()> servers = {};
  metrics::Registry* metrics = nullptr;
};

class ClusterDns {
 public:
  /// All outlive it. Errors name what is wrong in the options, or where it cannot listen.
  static Result<std::unique_ptr<ClusterDns>> start(ClusterDnsOptions options,
                                                   client::Client& client,
                                                   runtime::Runtime& runtime);
  ~ClusterDns();
  ClusterDns(const ClusterDns&) = delete;
  ClusterDns& operator=(const ClusterDns&) = delete;

  /// "HOST:PORT" of the server.
  const std::string& address() const;
  void stop();

 private:
  struct State;
  explicit ClusterDns(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dibs::dns
