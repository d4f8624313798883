#pragma once
// The objects of flowcontrol.apiserver.k8s.io: keeps those that a server cannot be without, tells
// in a FlowSchema's status whether its level is there, and has Fairness do as they say.
//
// Where they are not served (releases before 1.29, --runtime-config), the initial ones are in
// force.

#include <map>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "calls/call.h"
#include "runtime/runtime.h"
#include "server/fairness.h"
#include "server/plugins/store_follower.h"
#include "server/resource.h"
#include "server/wakes.h"
#include "store/store.h"

namespace dibs::server {

/// Runs from construction to stop(): looks at what changes, and every minute at what is missing.
class FlowControl {
 public:
  FlowControl(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
              Fairness& fairness);
  ~FlowControl() { stop(); }
  void stop();

 private:
  struct Object {
    Value object;
    store::Revision modified = 0;
  };
  /// Of one kind.
  struct Objects {
    std::unique_ptr<StoreFollower> follower;
    std::map<std::string, Object> all;
  };

  void schedule();
  /// Looks soon, on the executor.
  void wake();
  void look(bool mends);
  bool catch_up(Objects& objects) DIBS_REQUIRES(mutex_);
  /// Writes what is missing or is not as it has to be.
  void mend(const Resource& resource, const Objects& objects, const std::vector<Value>& wanted)
      DIBS_REQUIRES(mutex_);
  void tell_dangling(const Resource& schemas) DIBS_REQUIRES(mutex_);

  runtime::Runtime& runtime_;
  store::Store& store_;
  ResourceTable& resources_;
  Fairness& fairness_;
  Wakes wakes_;
  Mutex mutex_;
  runtime::TimerId timer_ DIBS_GUARDED_BY(mutex_) = 0;
  bool stopped_ DIBS_GUARDED_BY(mutex_) = false;
  Objects schemas_ DIBS_GUARDED_BY(mutex_);
  Objects levels_ DIBS_GUARDED_BY(mutex_);
};

/// The same, with the headers that tell schema and level of the request.
std::unique_ptr<calls::Exchange> labelled(std::unique_ptr<calls::Exchange> exchange,
                                          const Fairness::Flow& flow);

}  // namespace dibs::server
