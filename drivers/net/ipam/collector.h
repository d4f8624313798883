#pragma once
// What one process of a cluster does for all addresses, beside Ipam:
//   - admits pools: judges each alone and beside all others, as upstream's webhooks do. A pool that
//     is refused is not used and gets the Warning event InvalidPool; its addresses in use stay
//   - writes derived fields of SpiderIPPool, SpiderSubnet and SpiderReservedIP, their counts, and
//     takes their finalizer away when nothing is in use
//   - makes, resizes and reclaims the pools of applications whose pods name a SpiderSubnet
//   - frees addresses whose pod is gone, has ended, or was made anew with another uid; records that
//     no endpoint names; settled addresses without an endpoint. Never those of a live pod, or of
//     one that its StatefulSet will make again
//
// For whoever leads; a second one at once does no harm: every write carries the resourceVersion
// that it is based on, and of two new pools that overlap none is admitted. Life: start() returns at
// once. Thread-safe.

#include <memory>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "driver/plugin.h"
#include "drivers/net/model/pod_networks.h"

namespace dibs::drivers::net {

struct CollectorOptions {
  /// Pools for applications whose pods name a SpiderSubnet.
  bool subnets = true;
  PoolSize auto_pool_size = {};
  bool stateful_sets = true;
  /// As IpamOptions::records.
  std::size_t records = 256;
  /// Everything is looked at again so often.
  Duration scan_interval = std::chrono::minutes(10);
  /// A record of a live pod that no endpoint names is left alone so long.
  Duration record_patience = std::chrono::minutes(1);
  /// After the end of a pod's grace period, until its addresses are free.
  Duration delay = Duration(0);
};

class Collector {
 public:
  /// What the environment refers to must outlive it.
  static Result<std::unique_ptr<Collector>> start(driver::Environment environment,
                                                  CollectorOptions options = {});
  /// As stop().
  ~Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  /// All there is was read and looked at once.
  bool synced() const;
  void stop();

 private:
  Collector();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
