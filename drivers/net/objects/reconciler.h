#pragma once
// Keeps true what follows from the driver's objects: a NetworkAttachmentDefinition and a
// DeviceClass for every SpiderMultusConfig, and the status of SpiderCoordinators. Installs the
// driver's kinds first (install.h).
//
// There is no admission webhook: an object that is wrong, or that names a SpiderMultusConfig that
// is not there, gets a Warning event, and nothing is made from it; what was made before stays.
//
// For one process of a cluster, whoever leads; a second one at once does no harm. Life: start()
// returns at once. Thread-safe.

#include <memory>
#include <string>

#include "base/result.h"
#include "driver/plugin.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct ReconcilerOptions {
  /// 30 for 1.30; 0: the server is asked.
  int release = 0;
  /// A DeviceClass takes only devices in the subnets of the pools that serve its config.
  bool match_subnets = true;
  /// Pools whose multusName names a config serve it where it names none, and no pool is a default.
  bool multus_name_selects = true;
  /// Of a multusName without one.
  std::string install_namespace = "kube-system";
};

class Reconciler {
 public:
  /// What the environment refers to must outlive it.
  static std::unique_ptr<Reconciler> start(driver::Environment environment,
                                           ReconcilerOptions options = {});
  /// As stop().
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  /// All is installed, and what there is was looked at once.
  bool synced() const;
  void stop();

 private:
  Reconciler();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
