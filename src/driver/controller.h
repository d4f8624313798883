#pragma once
// A classic driver's controller that runs: one for a whole cluster, beside a plugin (plugin.h) on
// every node.
//
// Life: start() returns at once. The controller comes to life when the server has answered, and,
// with leader election, while this process leads; until then another one does the work. stop() ends
// it; claims stay as they are for the next instance, which first settles what this one may have
// left open (claim_sync.h).
//
// Works on one thing at a time: claims, and pods that are being scheduled. What fails is told in an
// event `Failed` and tried again, later each time (5 ms to 1000 s); what waits is looked at every
// 30 seconds, and when a class comes or a claim is freed.
//
// Thread-safe.

#include <memory>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "driver/allocator.h"
#include "driver/plugin.h"
#include "runtime/runtime.h"

namespace dibs::driver {

struct ControllerOptions {
  std::string driver_name = {};
  /// Several instances may run: one of them works.
  bool leader_election = false;
  std::string lease_namespace = "kube-system";
  /// "": the driver's name.
  std::string lease_name = {};
  /// Unique among instances; "": made up.
  std::string identity = {};
};

class Controller {
 public:
  /// `allocator` and what the environment refers to must outlive it. Errors: a driver without a
  /// name.
  static Result<std::unique_ptr<Controller>> start(Allocator& allocator, Environment environment,
                                                   ControllerOptions options);
  /// As stop().
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  /// It leads, and knows all there is.
  bool is_working() const;
  /// Something changed that the allocator goes by: whoever waits is looked at soon.
  void look_again();

  void stop();

 private:
  Controller();
  struct State;
  std::unique_ptr<State> state_;
};

/// A controller with its allocator: it ends when `keep` is dropped. Errors: as Controller::start().
Result<Running> start_controller(std::unique_ptr<Allocator> allocator, Environment environment,
                                 ControllerOptions options);

}  // namespace dibs::driver
