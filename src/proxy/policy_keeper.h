#pragma once
// Keeps NetworkPolicies on this machine: follows them with pods and namespaces,
// and keeps a table of nftables true to them (policy_model.h).
//
// Life: what an earlier process left stays in force until all objects are read,
// then the table is replaced at once; later changes are gathered for some
// milliseconds and applied as one transaction. One that fails is tried again as
// a whole table, later each time. stop() leaves the rules: pods go on. As long
// as there is no policy at all, pods are not followed and there is no table.
//
// No threads of its own; work runs on the runtime's executor.

#include <memory>

#include "client/client.h"
#include "proxy/machine.h"
#include "proxy/policy_model.h"
#include "runtime/runtime.h"

namespace dibs::proxy {

class PolicyKeeper {
 public:
  /// All must outlive it.
  PolicyKeeper(PolicyOptions options, client::Client& client, runtime::Runtime& runtime,
               Applier& applier);
  ~PolicyKeeper();
  PolicyKeeper(const PolicyKeeper&) = delete;
  PolicyKeeper& operator=(const PolicyKeeper&) = delete;

  void start();
  void stop();
  /// Everything that was there at the start is applied.
  bool ready() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::proxy
