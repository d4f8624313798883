#pragma once
// Who has which address: assigned and given back through the API, by any number of processes at
// once.
//
// What is true stands in objects. A SpiderIPPool's status has a record of every address that is
// taken (records.h), a SpiderEndpoint has the addresses of one pod. An assignment writes three
// times:
//   1. the pod's endpoint, without the new addresses: made, or taken over from an earlier pod
//   2. the pools: a record for each address, in one write for all pods that wait for the pool
//   3. the endpoint, with the addresses
// Every write carries the resourceVersion that it is based on. Who takes an address away goes the
// same way: the pools are read, then the endpoint is written (or seen not to be there), then the
// record goes. So of two that meet, one is refused: an assignment that stalls between 2 and 3
// while its record is collected finds that its endpoint has changed. That holds for:
//   - an address is named by one endpoint at most, and only while it is recorded
//   - a kill between any two writes loses nothing: records have the pod's uid, and the next
//     assign() takes them up; the collector (collector.h) frees those whose pod is gone
//
// A pool is used once the collector has looked at it beside all others (status.admittedIPs is what
// it admitted), as there is no webhook that could refuse a wrong one.
//
// Thread-safe; calls block. Whoever asks for the same pool at once shares writes.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/plugin.h"
#include "drivers/net/ipam/endpoint.h"
#include "drivers/net/ipam/selection.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct IpamOptions {
  SelectionOptions selection = {};
  /// Off: nothing is watched, what is needed is asked for with every call. For the many of a
  /// cluster that seldom assign: its nodes.
  bool watch = true;
  /// Pods of a StatefulSet get the addresses back that their predecessors of the same name had.
  bool stateful_sets = true;
  /// Writes of one pool that may be refused in a row because others were faster.
  int tries = 30;
  /// Pools have at most so many records that name the pod; further ones only name the address, and
  /// the endpoint says whose it is.
  std::size_t records = 256;
};

class Ipam {
 public:
  /// Returns at once. What the environment refers to must outlive it.
  static Result<std::unique_ptr<Ipam>> start(driver::Environment environment, IpamOptions options);
  /// As stop().
  ~Ipam();
  Ipam(const Ipam&) = delete;
  Ipam& operator=(const Ipam&) = delete;

  /// Pools, reserved addresses, namespaces and nodes are known. Until then calls are unavailable.
  bool synced() const;
  /// Calls that wait end with an error.
  void stop();

  /// Addresses for all of these interfaces, or an error and nothing taken. Repeatable: interfaces
  /// that the pod (by uid) has addresses for keep them. `pod` is the object, `node` where it runs
  /// or is to run. Errors: invalid (annotations, pools that are not there), conflict (all used, all
  /// filtered out, the pod is dead; the text names pool and reason), unavailable (try again).
  Result<std::vector<Assigned>> assign(const json::Value& pod, const std::string& node,
                                       const std::vector<NicAsk>& nics);
  /// Would assign() succeed, as far as is known now? Writes nothing; the error is assign()'s.
  Result<> can_assign(const json::Value& pod, const std::string& node,
                      const std::vector<NicAsk>& nics);
  /// Gives back what the pod of this uid has. Success without a change: the pod lives, a later pod
  /// of its name has the addresses, or its StatefulSet will make it again.
  Result<> release(std::string_view name_space, std::string_view pod, std::string_view uid);

 private:
  Ipam();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
