#pragma once
// The gRPC service that the node's agent calls: prepare, unprepare, and the stream of health.
//
// One implementation answers under the names of all versions whose messages are the same: DRA v1,
// v1beta1, and what 1.31 called v1alpha4 (its path says v1alpha3). Only v1 knows shares of a
// device.
//
// Claims of the classic model come by v1alpha3, on the paths of v1alpha4, or one a call by v1alpha2
// and v1alpha1 (releases 1.26 to 1.30), and are answered by CDI ids alone. The claim itself tells
// which of the two was meant. Its handles are read from the API as well: it has all of them, a call
// only one.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "driver/claims_lock.h"
#include "driver/metrics.h"
#include "driver/plugin.h"
#include "driver/prepared_claims.h"
#include "rpc/server.h"
#include "runtime/runtime.h"

namespace dibs::driver {

class DraService {
 public:
  /// All must outlive it. `lock` null: calls may overlap.
  DraService(Driver& driver, client::Client& api, PreparedClaims& claims, ClaimsLock* lock,
             DriverMetrics& metrics, runtime::Runtime& runtime);

  /// `named_resources`: the devices are offered to the agent, too.
  rpc::Methods methods(bool named_resources = false);
  /// Sends the health again, on every stream.
  void health_changed() { ++health_version_; }
  /// The same for the devices.
  void devices_changed() { ++devices_version_; }

 private:
  struct Prepared {
    std::string uid = {};
    Result<std::vector<Answer>> answers;
  };

  rpc::Reply prepare(std::string_view request, bool with_shares);
  rpc::Reply prepare_of_either_model(std::string_view request);
  rpc::Reply prepare_one(std::string_view request);
  rpc::Reply unprepare(std::string_view request);
  rpc::Reply unprepare_one(std::string_view request);
  Result<std::vector<Prepared>> prepare_all(std::vector<Claim> claims);
  /// In their order; each is done or has its error.
  Result<std::vector<Result<>>> unprepare_all(const std::vector<ClaimName>& names);
  rpc::Status watch_health(rpc::StreamWriter& writer);
  rpc::Status watch_devices(rpc::StreamWriter& writer);
  std::string health_report();
  Result<std::vector<Claim>> fetch(const std::vector<ClaimName>& names, bool classic);

  Driver& driver_;
  client::Client& api_;
  PreparedClaims& claims_;
  ClaimsLock* lock_;
  DriverMetrics& metrics_;
  runtime::Runtime& runtime_;
  std::atomic<std::uint64_t> health_version_{0};
  std::atomic<std::uint64_t> devices_version_{0};
};

/// As the agent's registration names them. Up to release 1.31 that was a number; an agent asks only
/// those for their devices that give nothing else.
std::vector<std::string> supported_versions(const PluginOptions& options, bool with_health);

}  // namespace dibs::driver
