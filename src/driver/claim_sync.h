#pragma once
// What a classic driver's controller does with one claim, and with one pod that is being scheduled.
//
//   claim    in use: nothing. To be freed: deallocate, clear the status, let go of the finalizer.
//            Immediate and ours: allocate.
//   context  tell the scheduler which nodes cannot serve the pod; once a node is selected that can,
//            allocate what the pod still lacks, and reserve it for the pod in the same write.
//
// A claim has the driver's finalizer before it is allocated, so that it cannot go without being
// deallocated. Whether a write of an allocation happened can be unknown: its answer got lost, or
// who sent it was killed. Such a claim, which has the finalizer and no allocation, is settled
// before anything else is allocated: deallocated, and the finalizer taken away, after which a write
// that is still on its way finds another version and fails. So no device is given away twice. What
// was begun to be freed is freed to its end, though after the first write nothing else asks for it.
//
// For one worker: nothing here is thread-safe.

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "driver/allocator.h"
#include "driver/own_writes.h"

namespace dibs::driver {

inline const client::Gvr kClassicClaims = {"resource.k8s.io", "v1alpha2", "resourceclaims"};
inline const client::Gvr kClassicClasses = {"resource.k8s.io", "v1alpha2", "resourceclasses"};
inline const client::Gvr kContexts = {"resource.k8s.io", "v1alpha2", "podschedulingcontexts"};

/// By the driver that allocated, in the informer of claims.
inline constexpr const char* kByDriver = "driver";
/// By finalizer.
inline constexpr const char* kByFinalizer = "finalizer";

/// What is to be done with a key after it was worked on without an error.
enum class Next : std::uint8_t { done, retry, recheck };

struct SyncViews {
  client::Informer& claims;  // with both indexes
  client::Informer& classes;
  client::Informer& contexts;
};

class ClaimSync {
 public:
  /// All must outlive it.
  ClaimSync(Allocator& allocator, client::Client& api, SyncViews views,
            client::EventRecorder& events, std::string driver);

  /// Before the first sync of either kind, with the informers filled.
  void take_over();
  Result<Next> claim(const std::string& key);
  Result<Next> context(const std::string& key);

 private:
  using Value = json::Value;
  /// What a pod lacks.
  struct Wanted {
    std::vector<PendingClaim> claims = {};
    /// Its entries and which claim each means: two may mean one.
    std::vector<std::pair<std::string, std::size_t>> entries = {};
  };

  bool has_finalizer(const Value& claim) const;
  Result<Value> write(const Value& claim, bool status);
  Result<> release(Value claim);
  Result<> settle();

  /// Null when the class is another driver's, or the scheduler's.
  Result<Value> own_class(const Value& claim);
  Result<> look_up(PendingClaim& pending, bool tell_claim);
  Result<std::optional<PendingClaim>> pending(const Value& pod, const Value& entry);
  Result<std::optional<Value>> claim_of(const Value& pod, const Value& entry);
  Result<Wanted> wanted_by(const Value& pod);
  Taken allocated();
  Result<NodeLists> ask_unsuitable(const Value& pod, const std::vector<PendingClaim>& claims,
                                   const Value& spec);
  /// `user`: an entry of reservedFor, or null.
  Result<> allocate(std::vector<PendingClaim> claims, const std::string& node, const Value& user);
  Result<> record(const Value& claim, const Result<Allocation>& answer, const Value& user);
  Result<> tell(Value context, const Wanted& wanted, const NodeLists& lists);
  void warn(const Value& object, const std::string& note, const char* reason = "Failed");

  Allocator& allocator_;
  client::Client& api_;
  SyncViews views_;
  client::EventRecorder& events_;
  const std::string driver_;
  const std::string finalizer_;
  ObjectFinder objects_;
  OwnWrites claims_;
  OwnWrites contexts_;
  // Keys of claims.
  std::set<std::string> unsettled_;  // may be allocated
  std::set<std::string> releasing_;  // begun, and not ended
};

/// At most 128 of `nodes` that are among `asked`, each once; `kept` stays if it is one of them.
std::vector<std::string> cut_nodes(const std::vector<std::string>& nodes,
                                   const std::vector<std::string>& asked, const std::string& kept);

}  // namespace dibs::driver
