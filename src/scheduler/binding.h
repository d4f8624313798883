#pragma once
// Makes a decision true in the API: claims allocated and reserved, then the pod bound.
//
// Claims are written at once, each with as few calls as possible: one for a claim that only needs
// the reservation, two for one without the finalizer (one where the server is ours). Claims that a
// driver allocates are allocated before the decision comes here, and only reserved. The pod is
// bound when all of them stand and their devices say that they are ready. Every step can be
// repeated: what is there already is left alone, so a scheduler that was killed in between goes on
// where it stopped.
//
// An answer that did not come tells nothing: the object is read until the server says what became
// of it, and until then the devices stay taken. Only then a failure is reported and the reservation
// given back.
//
// Owner: the scheduler's serial executor; answers are posted there.

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/event_recorder.h"
#include "runtime/runtime.h"
#include "scheduler/devices.h"
#include "scheduler/extenders.h"
#include "scheduler/metrics.h"
#include "scheduler/pod.h"

namespace dibs::scheduler {

inline const client::Gvr kPods = {"", "v1", "pods"};
inline const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
inline const client::Gvr kClassicClaims = {"resource.k8s.io", "v1alpha2", "resourceclaims"};

/// Where a claim of its model is written.
const client::Gvr& claims_of(const json::Value& claim);
/// How the scheduler writes a status.
client::WriteOptions status_write();
/// The server has, or may have, done what it was asked.
bool is_unknown(const Error& error);

struct ClaimWrite {
  std::string key;         // "" for one that has to be created
  json::Value allocation;  // null: allocated already, only reserve
  json::Value create;      // body of the claim to create, else null
  std::string flight;      // under which Devices knows the allocation
  std::string driver;      // of a claim of v1alpha2 to be allocated
  json::Value consumer;    // of status.reservedFor; null: the pod
};

/// Decisions about pods of one group. Claims that they share are allocated by one of them; where it
/// is all or none, nobody is bound before everything else stands for all.
struct Together {
  bool all_or_none = false;
  std::size_t expected = 0;
  std::string failure;  // of one of them, before anybody was bound
  /// Claims that one of them allocates, until that is done.
  std::set<std::string> allocating;
  /// How those end that have not come to the binder yet.
  std::vector<std::function<void(const std::string& failure)>> on_failure;
  /// Who is ready: how he goes on, and how he ends.
  std::vector<std::pair<std::function<void()>, std::function<void(const std::string& failure)>>>
      arrived;
  /// Writes that wait for the allocation of another one.
  std::vector<std::function<void()>> postponed;
};

struct BindJob {
  PodPtr pod;
  std::string node;
  std::vector<ClaimWrite> claims;
  json::Value mappings;  // of extended resources
  /// status.nodeAllocatableResourceClaimStatuses, null: none.
  json::Value node_allocatable;
  Duration binding_timeout{0};
  int attempts = 0;
  Duration queued{0};
  std::string group;
  std::shared_ptr<Together> together = nullptr;  // null: it stands alone
};

class Binder {
 public:
  /// "" for success, else the message; runs on the serial executor.
  using Done = std::function<void(const BindJob& job, const std::string& failure)>;

  /// Runs a task on the serial executor, or not at all when the scheduler has ended.
  using Post = std::function<void(std::function<void()> task)>;

  /// `extenders`: those that may bind pods themselves; null: there are none.
  Binder(client::Client& client, runtime::Runtime& runtime, Post post, Devices& devices,
         client::EventRecorder& recorder, Extenders* extenders, int release, Done done);

  void start(BindJob job);
  /// What was reserved for it is given back, and its end told.
  void give_up(BindJob job, const std::string& failure);
  /// Who waits for binding conditions looks again.
  void claim_changed(const std::string& key);
  /// Nobody needs to wait for this pod any more.
  void pod_gone(const std::string& key);
  /// Decisions being written; those that wait for binding conditions or for others of their group
  /// do not count.
  std::size_t running() const { return running_; }
  /// `metrics` must outlive it.
  void count_in(Metrics& metrics) { metrics_ = &metrics; }
  /// Told when one of them begins to wait.
  void on_rest(std::function<void()> rested) { rested_ = std::move(rested); }

 private:
  struct Run;
  void write_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void create_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void allocate_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void reserve_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void look_again(const std::shared_ptr<Run>& run, std::size_t index, const Error& error);
  void claim_done(const std::shared_ptr<Run>& run);
  /// What the run allocates is in the API, or never will be.
  void land(Run& run);
  /// What the node's agent has to know of claims, into the pod's status.
  void write_status(const std::shared_ptr<Run>& run);
  void await_conditions(const std::shared_ptr<Run>& run);
  /// The end of that wait.
  void stop_waiting(const std::shared_ptr<Run>& run, const char* status,
                    const std::string& failure);
  /// The claims' part is over; counted once.
  void count_claims(Run& run, const char* status);
  void resume(Together& together);
  /// One of a gang has failed: nobody is bound.
  void fail_all(const std::shared_ptr<Together>& together, const std::string& failure);
  void rest(Run& run);
  void go_on(Run& run);
  /// All but the binding stands.
  void prepared(const std::shared_ptr<Run>& run);
  void bind(const std::shared_ptr<Run>& run);
  void bind_here(const std::shared_ptr<Run>& run);
  /// `who`: was to bind it, for the message.
  void check_bound(const std::shared_ptr<Run>& run, const Error& error, const char* who);
  void finish(const std::shared_ptr<Run>& run, const std::string& failure);
  /// Takes the pod off the claims that this run put it on.
  void give_back(const Run& run);
  /// Sends, and goes on on the serial executor.
  void call(client::Request request, std::function<void(Result<json::Value>)> then);
  void later(Duration delay, std::function<void()> then);

  client::Client& client_;
  runtime::Runtime& runtime_;
  Post post_;
  Devices& devices_;
  client::EventRecorder& recorder_;
  Extenders* const extenders_;
  const int release_;
  Done done_;
  std::map<std::string, std::set<std::shared_ptr<Run>>> waiting_;  // by claim
  std::size_t running_ = 0;
  std::function<void()> rested_;
  Metrics* metrics_ = nullptr;
};

/// The request that takes a pod off a claim's list of users.
client::Request release_request(const std::string& claim_key, const json::Value& claim,
                                std::string_view pod_uid);

}  // namespace dibs::scheduler
