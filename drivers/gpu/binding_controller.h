#pragma once
// Says that devices are ready to be bound.
//
// A device with binding conditions is allocated, but its pod waits until the conditions hold. Here
// they hold at once: for every claim with devices of the driver's pool the conditions are written
// into its status. One controller per pool, so that those of many nodes do not get in each other's
// way.

#include <memory>
#include <string>

#include "client/client.h"
#include "runtime/runtime.h"

namespace dibs::drivers {

class BindingController {
 public:
  /// `api`, which finds resource.k8s.io/v1 (client::ResourceClient), and `runtime` must outlive it.
  /// `pool` "": all pools.
  BindingController(client::Client& api, runtime::Runtime& runtime, std::string driver_name,
                    std::string pool);
  ~BindingController();
  BindingController(const BindingController&) = delete;
  BindingController& operator=(const BindingController&) = delete;

  void start();
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The claim with the conditions of its devices in status.devices; nothing changes when it has them
/// all.
json::Value with_conditions(const json::Value& claim, std::string_view driver_name,
                            std::string_view pool, Time now);

}  // namespace dibs::drivers
