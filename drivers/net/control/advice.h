#pragma once
// Says why pods with claims of today's model find no node.
//
// There the scheduler decides, by the selectors of classes; that no device matches is all it can
// say. Here is known what the selectors stand for: which interface is missing on which node, or
// which pool has no address for it. So a pod that the scheduler could not place gets the same event
// `UnsuitableNodes` as one with a classic claim.
//
// Only looks and tells. Thread-safe.

#include <memory>

#include "client/event_recorder.h"
#include "driver/plugin.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/ipam/ipam.h"

namespace dibs::drivers::net {

class Advice {
 public:
  /// All must outlive it.
  Advice(const driver::Environment& environment, Ipam& ipam, const Networks& networks,
         const NodeStates& states, client::EventRecorder& events, SelectionOptions options);
  /// As stop().
  ~Advice();
  Advice(const Advice&) = delete;
  Advice& operator=(const Advice&) = delete;

  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
