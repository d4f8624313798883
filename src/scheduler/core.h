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
  void assume(const Queue::Popped& popped, Decision& decision);
  /// Volumes come before claims for devices and the pod itself.
  void bind_volumes(BindJob job, const Profile& profile, const NodeInfo& node);
  void unplaced(const Queue::Popped& popped, const Profile& profile, Decision& decision);
  /// Proposes nodes to the drivers of the pod's claims, or waits for what they say.
  void negotiate(const Queue::Popped& popped, Decision& decision);
  void proposal_failed(const std::string& pod_key, const std::string& pod_uid,
                       const std::string& failure);
  /// Frees a claim that stands in the way; what it did, "" for nothing.
  std::string free_claim(const PodPtr& pod, const Decision& decision);
  /// The same of a claim of v1alpha2; false where that cannot be.
  bool free_classic(const PodPtr& pod, const PodClaim& claim);
  /// What is said of freeing claims and driving out pods, after the reasons of the nodes.
  std::string after_filters(const PodPtr& pod, const Profile& profile, Decision& decision);
  void preempt(const PodPtr& pod, const Preemption& preemption);
  void report(const PodPtr& pod, const Failure& failure);
  /// Says in an event what every node lacks.
  void explain(const PodPtr& pod, const Profile& profile);
  void bound(const BindJob& job, const std::string& failure);
  void send(client::Request request, const char* what);
  void count_queue();
  Duration now() const { return runtime.clock.steady(); }

  client::Client& client;
  runtime::Runtime& runtime;
  const Options options;
  client::Gate gate;
  std::shared_ptr<client::Serial> serial;
  std::atomic<bool> ready{false};

  client::EventRecorder recorder;
  PodShapes shapes;
  ClusterState state;
  Devices devices;
  Queue queue;
  Placer placer;
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
