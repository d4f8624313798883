#pragma once
// Prepares the claims of pods through their drivers, and takes them back: PodClaims over
// DriverPlugins and ClaimCache.
//
// Prepare: every claim is read anew from the API server and checked, the pod is noted with it and
// that is written to the checkpoint, each driver gets one call with all claims of the pod that are
// not prepared yet, the answer is written to the checkpoint. So after a crash at any point the next
// agent knows which drivers may have prepared what. A second pod joins a prepared claim without a
// call; while a call is under way for a claim, others wait for their turn (claim_turns.h).
//
// Unprepare: needs only what is noted here, not the claim. The last pod's leaving is told to the
// drivers; when all agreed the entry goes. From the first attempt on no pod can join.
//
// Thread-safe; calls block.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/client.h"
#include "node/plugins/claim_cache.h"
#include "node/plugins/claim_rules.h"
#include "node/plugins/claim_turns.h"
#include "node/plugins/device_health.h"
#include "node/plugins/driver_plugins.h"
#include "node/plugins/pod_claims.h"

namespace dibs::node {

struct ClaimManagerOptions {
  NodeRelease release = {};
  bool enabled = true;               // gate DynamicResourceAllocation; off: pods have no claims
  bool optional_operations = false;  // gate DRAOptionalNodeOperations
  bool health = true;                // gate ResourceHealthStatus
  bool health_message = true;        // gate ResourceHealthStatusMessage
};

class ClaimManager : public PodClaims {
 public:
  /// All must outlive it.
  ClaimManager(ClaimManagerOptions options, client::Client& api, runtime::Clock& clock,
               DriverPlugins& plugins, ClaimCache& cache, DeviceHealth& health,
               PluginMetrics& metrics);

  Result<> prepare(const json::Value& pod) override;
  Result<> unprepare(const json::Value& pod) override;
  Result<ContainerDevices> devices_of(const json::Value& pod, std::string_view container) override;
  bool holds(std::string_view pod_uid) override;
  json::Value health_of(const json::Value& pod, std::string_view container) override;
  void on_health_change(std::function<void(const std::string& pod_uid)> changed) override;

  /// Takes back what is noted for pods that are not among the uids that `active` gives. False when
  /// it gives none yet, or something could not be taken back.
  bool release_gone(const std::function<std::optional<std::set<std::string>>()>& active);
  /// The health of these devices changed.
  void health_changed(const std::string& driver, const std::vector<DeviceName>& devices);
  /// The entry's devices; nothing when there is no entry.
  std::optional<ClaimInfo> find(std::string_view name_space, std::string_view claim);

 private:
  /// Claims of one driver in one call.
  struct Batch {
    std::string driver;
    std::vector<ClaimRef> claims;
  };
  using Turns = std::vector<ClaimTurns::Turn>;

  /// Adds what the driver is told of the claim to its batch.
  static void add_to(std::vector<Batch>& batches, const ClaimInfo& info, const std::string& driver);
  Result<std::vector<ClaimInfo>> load_all(const json::Value& pod);
  Result<> prepare_all(const json::Value& pod);
  Result<> unprepare_uid(const std::string& pod_uid);
  Result<ClaimInfo> load(const json::Value& pod, const PodClaim& wanted);
  Result<json::Value> read_claim(const json::Value& pod, const std::string& name);
  Result<> need_plugins(const ClaimInfo& info);
  Result<> check_entry(const ClaimInfo& info) const DIBS_REQUIRES(cache_.mutex);
  Result<std::vector<Batch>> note(const std::string& pod_uid, const std::vector<ClaimInfo>& infos,
                                  Turns& turns);
  Result<> checkpoint();
  std::vector<std::string> claims_noted_for(const std::string& pod_uid);
  std::vector<Batch> take_leave(const std::string& pod_uid, Turns& turns);
  Result<> prepare_batch(const Batch& batch);
  Result<> unprepare_batch(const Batch& batch);
  void count();

  const ClaimManagerOptions options_;
  client::Client& api_;
  runtime::Clock& clock_;
  DriverPlugins& plugins_;
  ClaimCache& cache_;
  DeviceHealth& health_;
  PluginMetrics& metrics_;
  ClaimTurns turns_;
  Mutex listener_mutex_;
  std::function<void(const std::string&)> health_listener_ DIBS_GUARDED_BY(listener_mutex_);
};

}  // namespace dibs::node
