#pragma once
// The scheduler's inside: what informers say goes in, decisions come out. Of this library alone.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/event_recorder.h"
#include "client/gate.h"
#include "client/informer.h"
#include "client/serial.h"
#include "scheduler/attempt.h"
#include "scheduler/binding.h"
#include "scheduler/context_writer.h"
#include "scheduler/gang.h"
#include "scheduler/group_preemption.h"
#include "scheduler/group_tree.h"
#include "scheduler/groups.h"
#include "scheduler/metrics.h"
#include "scheduler/pod_shapes.h"
#include "scheduler/preemption.h"
#include "scheduler/queue.h"
#include "scheduler/scheduler.h"
#include "scheduler/volume_binding.h"

namespace dibs::scheduler {

struct Scheduler::Core : std::enable_shared_from_this<Scheduler::Core> {
  Core(client::Client& client, runtime::Runtime& runtime, Options options);

  // Life: any thread.
  void start();
  void stop();

  // Everything below runs on the serial executor.
  void post(std::function<void()> task);
  void discover();
  /// What a version of the device API has; null where it is not served. An answer that did not come
  /// is asked for again.
  void ask_for(const char* path, std::function<void(const json::Value& resources)> then);
  void find_groups(std::function<void()> then, std::size_t at = 0);
  void find_composites(const std::function<void()>& then);
  void add_informers(const json::Value& resources, const json::Value& classic);
  void add_informer(const client::Gvr& gvr, std::function<void(const json::Value&)> put,
                    std::function<void(const json::Value&)> removed);
  void wait_for_informers();

  // Objects (core_objects.cc).
  void on_node(const json::Value& object);
  void on_node_removed(const json::Value& object);
  void on_pod(const PodPtr& pod);
  void on_pod_removed(const PodPtr& pod);
  void on_claim(const json::Value& object);
  void on_claim_removed(const json::Value& object);
  void on_slice(const json::Value& object);
  void on_volume_claim(const json::Value& object);
  void on_volume(const json::Value& object);
  void on_volume_fact(const json::Value& object);
  /// Pods that use the claim as a volume look again.
  void wake_users(const std::string& claim_key, const char* why);
  void on_budget(const json::Value& object);
  void on_resource_class(const json::Value& object);
  void on_context(const json::Value& object);
  void on_context_removed(const json::Value& object);
  /// Pods whose drivers were asked to allocate there look for another node.
  void wake_selecting(std::string_view node, const char* why);
  /// The context of a pod that has a node is of no use.
  void end_talk(const Pod& pod);
  void after_claim(const std::string& key, const ClaimChange& change);
  void enqueue(const PodPtr& pod);
  void leave(const PodPtr& pod);
  void forget_users(const std::string& pod_key);
  /// A decision about this pod, not about one that had its name, is being written.
  bool is_binding(const Pod& pod) const;
  bool is_ours(const Pod& pod) const { return profile_of(pod) != nullptr; }
  const Profile* profile_of(const Pod& pod) const;
  /// Waits for its gates to go. Requires a profile for it.
  bool gated(const Pod& pod) const;
  void wake_for_node(PluginSet plugins, const NodeInfo& node, const char* why);
  /// The pod is on a node now: others may want to be near it.
  void wake_for_pod(const Pod& pod);
  void wake_devices(const char* why);

  // Attempts (core.cc).
  void kick();
  void step();
  void arm();
  void attempt(const Queue::Popped& popped);
  /// What follows from a decision about a pod that was taken out at `began`.
  void conclude(const Queue::Popped& popped, const Profile& profile, Decision& decision,
                Duration began);
  void assume(const Queue::Popped& popped, Decision& decision);
  BindJob make_job(const PodPtr& pod, const NodeInfo& node, const Queue::Popped& popped) const;
  /// The pod is on its node from now on, as far as others are concerned.
  void count_decided(BindJob& job, const json::Value& node_allocatable);
  void add_extended_claim(const DeviceRun& run, const NodeDevices& found, std::size_t place,
                          BindJob& job);
  /// Volumes come before claims for devices and the pod itself. `planned`: with those of others;
  /// null: the pod stands alone.
  void bind_volumes(BindJob job, const Profile& profile, const NodeInfo& node,
                    const VolumePlan* planned = nullptr);
  void unplaced(const Queue::Popped& popped, const Profile& profile, Decision& decision);
  /// The end of it, with what is known of claims and of victims.
  void park(const Queue::Popped& popped, Decision& decision, std::string more,
            const Preemption& found);

  // Extenders (core_extenders.cc).
  /// Whether the pod, as it was taken out, still waits for a node.
  bool still_waits(const Pod& pod) const;
  void ask_extenders(const Queue::Popped& popped);
  void answered(Queue::Popped popped, const Opinions& said, Duration began);
  void next_to_ask();
  void ask_about_victims(const Queue::Popped& popped, Decision& decision, const std::string& more,
                         const Preemption& found);
  /// Proposes nodes to the drivers of the pod's claims, or waits for what they say.
  void negotiate(const Queue::Popped& popped, Decision& decision);
  void proposal_failed(const std::string& pod_key, const std::string& pod_uid,
                       const std::string& failure);
  /// Frees a claim that stands in the way; what it did, "" for nothing.
  std::string free_claim(const PodPtr& pod, const Decision& decision);
  /// The same of a claim of v1alpha2; false where that cannot be.
  bool free_classic(const PodPtr& pod, const PodClaim& claim);
  /// Frees claims, and looks for pods to drive out; what is said of claims.
  std::string after_filters(const PodPtr& pod, const Profile& profile, Decision& decision,
                            Preemption& found);
  void preempt(const PodPtr& pod, const Preemption& preemption);
  /// Deletes a pod for the sake of another object; `node`: where room is made.
  void drive_out(const Pod& victim, const json::Value& by, std::string_view kind,
                 std::string_view scheduler_name, std::string_view node);
  void report(const PodPtr& pod, const Failure& failure);
  /// Says in an event what every node lacks.
  void explain(const PodPtr& pod, const Profile& profile);
  void bound(const BindJob& job, const std::string& failure);

  // Groups (core_groups.cc).
  void on_group(const json::Value& object);
  void on_group_removed(const json::Value& object);
  void on_composite(const json::Value& object);
  void on_composite_removed(const json::Value& object);
  bool in_group(const Pod& pod) const { return has_groups && !pod.group.empty(); }
  void count_in_group(const Pod& pod, bool on_node);
  void join_group(const PodPtr& pod, bool changed);
  void leave_group(const Pod& pod);
  /// What was decided about the pod has failed.
  void rejoin_group(const PodPtr& pod, int attempts);
  void note_able(const Pod& pod);
  void consider(const std::string& key, bool changed);
  void consider_tree(const GroupId& root, bool changed);
  static GroupId root_of_entity(const Pod& entity);
  bool is_able(const Pod& pod) const;
  void tell_invalid(const PodGroups::Root& root);
  void tell_invalid(const GroupId& id, const std::string& why);
  /// Of groups that go as one, all pods that are on nodes.
  std::vector<PodPtr> with_their_groups(std::vector<PodPtr> victims) const;

  // Attempts to place them (core_group_attempts.cc).
  std::string group_fault(const AnyGroup& root, const std::vector<PodPtr>& pods) const;
  void attempt_group(const Queue::Popped& popped);
  void assume_group(const Queue::Popped& popped, const GroupTree& tree, const GangOrder& order,
                    GangDecision& decision);
  void add_own_claims(const GangMember& member, BindJob& job);
  void park_group(const PodPtr& entity, const GangDecision& decision);
  void group_failed(const Queue::Popped& popped, const GroupTree& tree,
                    const GangDecision& decision);
  /// What it came to, as metrics name it.
  const char* group_unplaced(const Queue::Popped& popped, const GroupTree& tree,
                             const Profile& profile, const GangOrder& order,
                             GangDecision& decision);
  std::string free_for_group(const GroupTree& tree, const Profile& profile,
                             const GangDecision& decision);
  void tell_group(const GroupId& id, const char* status, const char* reason,
                  const std::string& message);

  void send(client::Request request, const char* what);
  /// Brings gauges up to date.
  void count();
  void count_parked(const Pod& pod, PluginSet rejected_by, bool parked);
  Duration now() const { return runtime.clock.steady(); }

  client::Client& client;
  runtime::Runtime& runtime;
  const Options options;
  client::Gate gate;
  std::shared_ptr<client::Serial> serial;
  std::atomic<bool> ready{false};

  client::EventRecorder recorder;
  Duration explaining_since = -std::chrono::seconds(1);
  int explanations = 0;  // since then
  PodShapes shapes;
  ClusterState state;
  PodGroups groups;
  Devices devices;
  Queue queue;
  Placer placer;
  GangPlacer gang_placer;
  bool has_groups = false;  // the server has them
  client::Gvr groups_gvr;
  bool has_composites = false;  // and groups of groups
  const client::Gvr composites_gvr{"scheduling.k8s.io", "v1alpha3", "compositepodgroups"};
  std::unique_ptr<Extenders> extenders;  // null: there are none
  bool asking = false;                   // extenders, about a pod
  std::vector<Queue::Popped> to_ask;     // taken out, and waiting for their turn
  std::unique_ptr<Binder> binder;
  std::unique_ptr<VolumeBinder> volume_binder;
  std::unique_ptr<ContextWriter> contexts;
  std::optional<Metrics> metrics;
  std::map<std::string, DisruptionBudget> budgets;
  std::vector<std::unique_ptr<client::Informer>> informers;
  std::unordered_map<std::string, PodPtr> waiting;       // pods of ours without a node, by key
  std::unordered_map<std::string, std::string> binding;  // uid of pods by key
  std::unordered_map<std::string, std::set<std::string>> users;  // pods by claim
  std::unordered_map<std::string, std::set<std::string>> used;   // claims by pod
  // The same of claims that are volumes; only of pods that have such.
  std::unordered_map<std::string, std::set<std::string>> volume_users;
  bool stepping = false;
  Duration armed{0};  // when the timer rings; 0: none
};

}  // namespace dibs::scheduler
