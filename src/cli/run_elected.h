#pragma once
// A part of the cluster in a process of its own, of which several may run: one of them works.

#include <atomic>
#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "client/kubeconfig.h"
#include "client/leader_election.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::cli {

/// A part, and whether it is ready: one that waits for its turn is.
template <typename Part>
class LeadingPart {
 public:
  explicit LeadingPart(Part& part) : part_(part) {}
  void start() {
    works_ = true;
    part_.start();
  }
  void stop() {
    works_ = false;
    part_.stop();
  }
  bool ready() const { return !works_ || part_.ready(); }

 private:
  Part& part_;
  std::atomic<bool> works_{false};
};

/// As upstream's components have them.
struct ElectionFlags {
  bool elect = true;
  // 0 and "": the default of the part.
  Duration lease_duration{0};
  Duration renew_deadline{0};
  Duration retry_period{0};
  std::string name = {};
  std::string name_space = {};
  std::string lock = "leases";
};

/// What the flags say, and `otherwise` where they say nothing, with an identity of this process.
/// Errors: bad_request.
Result<client::LeaderElectionOptions> election_of(const ElectionFlags& flags,
                                                  client::LeaderElectionOptions otherwise,
                                                  runtime::Random& random);

/// Until a signal ends it, or the lease is lost: what was begun as the leader is not to be gone on
/// with, so the process ends, and whoever runs it starts another. The lease is kept over
/// connections of its own, whose requests do not wait longer than the leader may. Errors: of
/// `access`; unavailable when the lease was lost.
Result<> run_elected(const client::LeaderElectionOptions& election,
                     client::LeaderCallbacks callbacks, const client::Access& access,
                     runtime::Files& files, runtime::Runtime& runtime, std::string user_agent);

}  // namespace dibs::cli
