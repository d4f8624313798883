#pragma once
// The gRPC service that the node's agent calls: prepare, unprepare, and the stream of health.
//
// One implementation answers under the names of all versions whose messages are the same: DRA v1,
// v1beta1, and what 1.31 called v1alpha4 (its path says v1alpha3). Only v1 knows shares of a
// device.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/client.h"
#include "driver/claims_lock.h"
#include "driver/metrics.h"
#include "driver/prepared_claims.h"
#include "rpc/server.h"
#include "runtime/runtime.h"

namespace dibs::driver {

class DraService {
 public:
  /// All must outlive it. `lock` null: calls may overlap.
  DraService(Driver& driver, client::Client& api, PreparedClaims& claims, ClaimsLock* lock,
             DriverMetrics& metrics, runtime::Runtime& runtime);

  rpc::Methods methods();
  /// Sends the health again, on every stream.
  void health_changed() { ++health_version_; }

 private:
  rpc::Reply prepare(std::string_view request, bool with_shares);
  rpc::Reply unprepare(std::string_view request);
  rpc::Status watch_health(rpc::StreamWriter& writer);
  std::string health_report();
  Result<std::vector<Claim>> fetch(const std::vector<ClaimName>& names);

  Driver& driver_;
  client::Client& api_;
  PreparedClaims& claims_;
  ClaimsLock* lock_;
  DriverMetrics& metrics_;
  runtime::Runtime& runtime_;
  std::atomic<std::uint64_t> health_version_{0};
};

/// As the agent's registration names them.
std::vector<std::string> supported_versions(bool with_health);

}  // namespace dibs::driver
