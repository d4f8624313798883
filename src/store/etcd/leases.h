#pragma once
// Leases of etcd for keys that end by themselves. As kube-apiserver does it, one lease serves all
// keys of the same lifetime for a while: each stays a little longer than asked for, and a thousand
// events need a few leases.
//
// Thread-safe.

#include <chrono>
#include <functional>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/etcd/client.h"

namespace dibs::store::etcd {

class Leases {
 public:
  using Lease = std::int64_t;
  /// A lease that lasts at least `lifetime` from now. `done` is called once, from any thread,
  /// perhaps at once. Errors: as of a call.
  void get(const Connection& connection, std::chrono::seconds lifetime,
           std::function<void(Result<Lease>, rpc::Status)> done);
  /// etcd does not know it any more.
  void forget(Lease lease);

 private:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(Result<Lease>, rpc::Status)>;
  struct Shared {
    Lease id = 0;
    Clock::time_point until = {};  // for new keys
    int keys = 0;
    std::vector<Done> waiting = {};  // for one that is asked for
  };
  void granted(std::chrono::seconds lifetime, const rpc::Reply& reply, Clock::time_point until);

  Mutex mutex_;
  std::map<std::chrono::seconds, Shared> by_lifetime_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::store::etcd
