#pragma once
// Takes back the ResourceSlices of drivers that are not there, so that nothing is scheduled onto
// devices that nobody can prepare.
//
// A wipe is tried until it succeeds, with growing pauses. One that is scheduled keeps its time; it
// is called off when the driver comes back first, and waits while some plugin is in the middle of
// its registration: on a busy machine that may be the one. At the start of the agent no driver is
// registered: each that has slices gets the same time to come. Where a release is answered as
// exactly, all slices of the node go at once, as there, and drivers publish again.
//
// Thread-safe.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "node/plugins/release.h"
#include "runtime/runtime.h"

namespace dibs::node {

class SliceWiper {
 public:
  /// `api` and `runtime` must outlive it.
  SliceWiper(std::string node_name, NodeRelease release, client::Client& api,
             runtime::Runtime& runtime);
  ~SliceWiper();
  SliceWiper(const SliceWiper&) = delete;
  SliceWiper& operator=(const SliceWiper&) = delete;

  /// What the agent knows of its drivers.
  struct Drivers {
    std::function<bool(const std::string& driver)> usable = {};
    /// Somebody, it is not known who, is about to become usable or to be refused.
    std::function<bool()> settling = {};
  };

  /// At the start of the agent, in the background. `done` runs once, after the first attempt; from
  /// then on drivers that are usable are spared.
  void begin(std::function<void()> done, Drivers drivers);
  /// In a while; as it is when one is pending already.
  void schedule(const std::string& driver);
  void cancel(const std::string& driver);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
