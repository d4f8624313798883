#pragma once
// A driver between the plugin and the real driver that gives devices the faults that somebody has
// set (faults.h): what fails is unhealthy and tainted, what vanished is neither published nor
// prepared, what is slow is waited for.
//
// It watches its own Node and no other. Until that is read nothing is published, so that a driver
// that starts does not show a failed device as a good one for a moment; where the node cannot be
// watched, the driver goes on without faults after a few seconds, and says that it takes none.
//
// Thread-safe, as Driver says.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "client/client.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "driver/driver.h"
#include "driver/faults.h"
#include "runtime/runtime.h"

namespace dibs::driver {

class FaultInjection : public Driver {
 public:
  /// All must outlive it; `api` finds resource.k8s.io/v1 (client::ResourceClient).
  FaultInjection(Driver& inner, client::Client& api, runtime::Runtime& runtime,
                 std::string driver_name, std::string node_name);
  ~FaultInjection() override;

  /// `changed`: devices or their health are others now. Called on the executor.
  void begin(std::function<void()> changed);
  /// Calls that wait for a slow device fail at once, and so do those that come.
  void end_waiting();
  /// `changed` is not called any more when it returns.
  void stop();

  void started(Plugin& plugin) override { inner_.started(plugin); }
  void stopping() override { inner_.stopping(); }
  Result<std::vector<Pool>> devices() override;
  Result<std::vector<PreparedDevice>> prepare(const Claim& claim) override;
  Result<> unprepare(const ClaimName& claim) override;
  bool reports_health() const override { return true; }
  std::vector<DeviceHealth> health() override;

 private:
  void see(const json::Value& node);
  client::WorkOutcome work(const std::string& what);
  Faults faults() const;
  Result<> linger(const std::vector<AllocatedDevice>& devices, Duration SlowFault::*which);
  Duration slowest(const std::vector<AllocatedDevice>& devices, Duration SlowFault::*which) const
      DIBS_REQUIRES(mutex_);

  Driver& inner_;
  client::Client& api_;
  runtime::Runtime& runtime_;
  const std::string driver_name_;
  const std::string annotation_;
  const std::string node_name_;
  std::function<void()> tell_;

  mutable Mutex mutex_;
  CondVar changed_;
  bool known_ DIBS_GUARDED_BY(mutex_) = false;    // what devices() says is worth publishing
  bool watches_ DIBS_GUARDED_BY(mutex_) = false;  // the node was read
  bool hurries_ DIBS_GUARDED_BY(mutex_) = false;
  std::string text_ DIBS_GUARDED_BY(mutex_);  // of the annotation, as taken
  Faults faults_ DIBS_GUARDED_BY(mutex_);
  std::set<std::string> failed_ DIBS_GUARDED_BY(mutex_);  // keys of those that ever did

  // Last: their ends stop the work before what it uses goes.
  std::unique_ptr<client::Informer> informer_;
  client::WorkQueue queue_;
};

}  // namespace dibs::driver
