#pragma once
// Today's claims, before their pod is bound: addresses are assigned, the pod's annotations say
// which interfaces it has, and the devices' conditions say that it may be bound, or why not.
//
// A device of this driver has the binding condition kAddressesAssigned and the failure condition
// kAddressesRefused where the server knows such conditions. Elsewhere only the annotations are
// written, and addresses are assigned when the interface is made.
//
// Works by pod: all of its claims together. What fails for a reason that may pass is tried again;
// what is refused is told in the condition and in an event of the pod, and the scheduler tries
// again by itself.
//
// Thread-safe.

#include <memory>
#include <string>

#include "client/event_recorder.h"
#include "driver/plugin.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/fit/fit.h"
#include "drivers/net/ipam/ipam.h"

namespace dibs::drivers::net {

class Binding {
 public:
  /// All must outlive it.
  Binding(const driver::Environment& environment, Ipam& ipam, const Networks& networks,
          const NodeStates& states, client::EventRecorder& events, SelectionOptions options);
  /// As stop().
  ~Binding();
  Binding(const Binding&) = delete;
  Binding& operator=(const Binding&) = delete;

  /// What the claims hold of a node.
  void add_used(const std::string& node, Used& used) const;
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
