#pragma once
// The load of a scheduling benchmark: objects made many at a time, and pods followed from the
// request that makes them to the watch event that shows their node.
//
// It runs in the same process and on the same cores as what it measures, so it reads as little of
// the answers as it can.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "runtime/runtime.h"

namespace dibs::bench {

/// A request with a body that is text already.
client::Request body_request(std::string method, std::string target, std::string body);

/// Sends `count` requests, `window` at a time, and waits for all answers; the first that is no
/// success ends it. `answered` may run in any thread.
Result<> send_many(client::Client& client, std::size_t count, std::size_t window,
                   const std::function<client::Request(std::size_t)>& request,
                   const std::function<void(std::size_t, const client::Response&)>& answered = {});

/// "namespace/name" of an object in the API's JSON, found without reading all of it.
std::string quick_key(std::string_view json);

/// Follows all pods of a cluster until they have a node.
class PodFollower {
 public:
  PodFollower(client::Client& client, runtime::Runtime& runtime);
  ~PodFollower();

  /// The request that made the pod was sent at `sent` (steady clock).
  void created(const std::string& key, Duration sent);
  /// Called for each pod that got a node, on the watch's thread; null for nobody.
  void on_bound(std::function<void(const std::string& key)> bound);
  std::size_t bound() const;
  /// False when the time is over first.
  bool wait_for(std::size_t bound, Duration timeout) const;
  /// Create-to-bound times since the last call, in seconds.
  std::vector<double> take_times();
  /// When the last pod got its node.
  Duration last_bound() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::unique_ptr<client::TransportStream> stream_;
};

}  // namespace dibs::bench
