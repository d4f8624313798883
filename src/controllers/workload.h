#pragma once
// The frame of controllers whose objects own children: ReplicaSet, Deployment, StatefulSet,
// DaemonSet, Job, CronJob.
//
// A child names its controller by uid. It is found by that uid, never by walking the cluster. A
// child that has no controller and carries the labels of a selector is adopted; one that lost the
// labels is let go. Which writes an owner needs is decided by pure functions beside each
// controller; here is how they are carried out.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/merge/selectors.h"
#include "base/mutex.h"
#include "controllers/controller.h"
#include "controllers/controllers.h"
#include "controllers/expectations.h"
#include "controllers/revisions.h"

namespace dibs::controllers {

struct WorkloadKind {
  Gvr gvr = {};
  std::string kind = {};
  std::string component = {};  // in events: "replicaset-controller"
};

/// For an index of children without a controller: their namespace.
inline constexpr const char* kOrphans = "orphans-of-namespace";
std::vector<std::string> index_orphans(const Value& object);

/// The selector of a workload, also a ReplicationController's plain map. Nothing when broken.
api::LabelSelector selector_of(const Value& owner);

class Workload : public Controller {
 public:
  Workload(Environment& environment, WorkloadKind kind);
  void stop() override { reconciler_.stop(); }

 protected:
  /// Makes the world right for one owner, which exists.
  virtual Result<WorkOutcome> sync(const std::string& key, const Value& owner) = 0;

  /// Children of this kind lead to their owner's key and, if they are `counted`, answer
  /// expectations.
  client::Informer& watch_children(const Gvr& gvr, bool counted = true);

  /// The owner's children, after adopting and releasing what the selector says. `fits`, where
  /// given, has to hold for an orphan too.
  Result<std::vector<Value>> claim(const Value& owner, client::Informer& children, const Gvr& gvr,
                                   const std::function<bool(const Value& orphan)>& fits = {});

  /// With the event about it. The caller has noted the expectation; a failure takes it back.
  Result<Value> create_pod(const std::string& key, const Value& owner, const Value& pod);
  /// Notes the expectation itself. A pod that is gone already is a success.
  Result<> remove_pod(const std::string& key, const Value& owner, const Value& pod);
  /// Creates `count` pods one after the other and stops at the first failure, so that a thousand
  /// pods that the server refuses cost one request.
  Result<> create_pods(const std::string& key, const Value& owner, const std::vector<Value>& pods);

  /// Writes when it differs from what the owner has. The object as it is now.
  Result<Value> write_status(const Value& owner, const Value& status);
  /// The same for an owner with more changed than its status.
  Result<Value> write_whole_status(const Value& changed);

  /// Writes the revision of today's template, if it is new or came back.
  Result<> keep_revision(const Value& owner, const RevisionPlan& plan);
  /// Removes what the history has no room for, except revisions `in_use`.
  Result<> forget_revisions(const Value& owner, const RevisionPlan& plan,
                            const std::vector<std::string>& in_use);

  void event(const Value& owner, bool warning, const std::string& reason, const std::string& note);
  Time now() const { return environment_.runtime.clock.now(); }
  /// With the names of the field manager.
  static client::WriteOptions writing();

  Environment& environment_;
  const WorkloadKind kind_;
  client::Informer& owners_;
  Expectations expectations_;
  Reconciler reconciler_;

 private:
  std::string owner_key(const Value& child) const;
  /// The cache shows an owner from before our own last write: what it says must not be acted upon.
  bool is_stale(const std::string& key, const Value& owner);
  void child_seen(const Value& child, bool labels_new);
  Result<WorkOutcome> work(const std::string& key);

  Mutex mutex_;
  std::map<std::string, std::int64_t> written_ DIBS_GUARDED_BY(mutex_);  // resourceVersions by key
};

/// The refusal that says that the namespace is going away: nothing to tell, nothing to retry.
bool is_namespace_ending(const Error& error);

ControllerPtr make_replica_set_controller(Environment& environment);
ControllerPtr make_replication_controller(Environment& environment);
ControllerPtr make_deployment_controller(Environment& environment);
ControllerPtr make_stateful_set_controller(Environment& environment);
ControllerPtr make_daemon_set_controller(Environment& environment);
ControllerPtr make_job_controller(Environment& environment);
ControllerPtr make_cron_job_controller(Environment& environment);

}  // namespace dibs::controllers
