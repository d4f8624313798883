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
#include "scheduler/pod.h"

namespace dibs::scheduler {

inline const client::Gvr kPods = {"", "v1", "pods"};
inline const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};
inline const client::Gvr kClassicClaims = {"resource.k8s.io", "v1alpha2", "resourceclaims"};

/// Where a claim of its model is written.
const client::Gvr& claims_of(const json::Value& claim);
/// The server has, or may have, done what it was asked.
bool is_unknown(const Error& error);

struct ClaimWrite {
  std::string key;         // "" for one that has to be created
  json::Value allocation;  // null: allocated already, only reserve
  json::Value create;      // body of the claim to create, else null
  std::string flight;      // under which Devices knows the allocation
  std::string driver;      // of a claim of v1alpha2 to be allocated
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
};

class Binder {
 public:
  /// "" for success, else the message; runs on the serial executor.
  using Done = std::function<void(const BindJob& job, const std::string& failure)>;

  /// Runs a task on the serial executor, or not at all when the scheduler has ended.
  using Post = std::function<void(std::function<void()> task)>;

  Binder(client::Client& client, runtime::Runtime& runtime, Post post, Devices& devices,
         client::EventRecorder& recorder, int release, Done done);

  void start(BindJob job);
  /// What was reserved for it is given back, and its end told.
  void give_up(BindJob job, const std::string& failure);
  /// Who waits for binding conditions looks again.
  void claim_changed(const std::string& key);
  /// Nobody needs to wait for this pod any more.
  void pod_gone(const std::string& key);
  /// Decisions being written; those that wait for binding conditions do not count.
  std::size_t running() const { return running_; }

 private:
  struct Run;
  void write_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void create_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void allocate_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void reserve_claim(const std::shared_ptr<Run>& run, std::size_t index);
  void look_again(const std::shared_ptr<Run>& run, std::size_t index, const Error& error);
  void claim_done(const std::shared_ptr<Run>& run);
  /// What the node's agent has to know of claims, into the pod's status.
  void write_status(const std::shared_ptr<Run>& run);
  void await_conditions(const std::shared_ptr<Run>& run);
  void bind(const std::shared_ptr<Run>& run);
  void check_bound(const std::shared_ptr<Run>& run, const Error& error);
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
  const int release_;
  Done done_;
  std::map<std::string, std::set<std::shared_ptr<Run>>> waiting_;  // by claim
  std::size_t running_ = 0;
};

/// The request that takes a pod off a claim's list of users.
client::Request release_request(const std::string& claim_key, const json::Value& claim,
                                std::string_view pod_uid);

}  // namespace dibs::scheduler
