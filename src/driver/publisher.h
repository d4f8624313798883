#pragma once
// Keeps the ResourceSlices of a driver as the driver wants them.
//
// update() says what is wanted and returns at once; the writes follow, pool by pool, and again when
// they fail. A slice that somebody else changes is put right 30 s later, one that he deletes at
// once, as no pod can be scheduled meanwhile; where that happens again within 30 s, then.
// Slices outlive the publisher: a driver that restarts finds them and writes only what differs.
//
// Work runs on the runtime's executor, one pool at a time. Thread-safe.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "driver/pool.h"
#include "runtime/runtime.h"

namespace dibs::driver {

struct PublisherOptions {
  std::string driver_name = {};
  /// Whose devices they are; the node owns the slices. "": slices for a whole cluster.
  std::string node_name = {};
  /// Nothing is written before begin(), or for ten seconds: a driver may have no agent at all.
  bool held = false;
  Duration heal_after = std::chrono::seconds(30);
  /// Another instance may publish beside this one and mean what it deletes: then that, too, is put
  /// right only after `heal_after`.
  bool may_have_successor = false;
  Duration look_again_after = std::chrono::minutes(1);
  Duration longest_retry = std::chrono::seconds(30);
  /// Told of every failure; the publisher goes on by itself. Called on the executor.
  std::function<void(const Error& error)> failed = {};
};

class Publisher {
 public:
  /// `api`, which finds resource.k8s.io/v1 (client::ResourceClient), and `runtime` must outlive it.
  Publisher(client::Client& api, runtime::Runtime& runtime, PublisherOptions options);
  /// As stop().
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// All pools there are; slices of any other pool of this driver and node are removed. Errors
  /// (invalid) are mistakes in a pool, and then nothing changes.
  Result<> update(const std::vector<Pool>& pools);
  /// The node's agent knows the driver. Until then an agent that starts takes the slices of the
  /// node for those of drivers that are gone, and deletes them. Called again when it knows the
  /// driver anew: what it took away meanwhile is put right now.
  void begin();
  /// All that update() asked for is written.
  bool is_done() const;
  /// Writes nothing any more when it returns. Slices stay.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::driver
