#pragma once
// One leader among several processes, by a Lease that it keeps renewing.
//
// A candidate takes the Lease when nobody holds it or when its holder has not renewed it for the
// lease duration, measured on the candidate's own clock from the moment it saw the last change:
// clocks of different machines need not agree. A leader that cannot renew within the renew deadline
// stops leading, which is before anybody else may start (10 s of 15 s).
//
// Runs on the runtime's executor; callbacks run one at a time.

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "runtime/runtime.h"

namespace dibs::client {

struct LeaderElectionOptions {
  std::string name_space = "kube-system";
  std::string name = {};      // of the Lease: "dibs-scheduler"
  std::string identity = {};  // unique among candidates: "host-1_5b4f..."
  Duration lease_duration = std::chrono::seconds(15);
  Duration renew_deadline = std::chrono::seconds(10);
  Duration retry_period = std::chrono::seconds(2);
  /// Gives the Lease back in stop(), so that the next leader need not wait for it to expire.
  bool release_on_stop = true;
  /// Told whether this process leads; null: nobody is. Must outlive the elector.
  metrics::Registry* metrics = nullptr;

  /// Errors: bad_request, where a leader could go on when another one has begun.
  Result<> check() const;
};

struct LeaderCallbacks {
  std::function<void()> started = {};  // leads from now on
  std::function<void()> stopped = {};  // does not lead any more; the elector tries again
  std::function<void(const std::string& identity)> new_leader = {};
};

/// Of a part that can be started again after stop().
template <typename Part>
LeaderCallbacks while_leading(Part& part) {
  return {.started = [&part] { part.start(); }, .stopped = [&part] { part.stop(); }};
}

class LeaderElector {
 public:
  /// `client` and `runtime` must outlive it.
  LeaderElector(Client& client, runtime::Runtime& runtime, LeaderElectionOptions options,
                LeaderCallbacks callbacks);
  /// As stop().
  ~LeaderElector();
  LeaderElector(const LeaderElector&) = delete;
  LeaderElector& operator=(const LeaderElector&) = delete;

  void start();
  /// Calls `stopped` when leading, then gives the Lease back and waits for the answer. No callback
  /// runs when it returns, except one that called it.
  void stop();

  bool leading() const;
  /// "" when unknown.
  std::string leader() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::client
