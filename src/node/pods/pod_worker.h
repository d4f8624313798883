#pragma once
// One pod on the node, from the moment it is seen until nothing of it is left.
//
//   running ── finished, deleted, past its deadline, gone ──▶ ending ── all stopped, devices and
//   volumes given back, status written ──▶ ended ── the object is gone ──▶ nothing left
//
// sync() looks at the pod and at the runtime, does what is missing, and says when to look again. It
// may be repeated at any moment, and begins anew from what the runtime has after the agent died at
// any point: the object in the API and the runtime's labels are all the memory there is. What only
// delays (back-off, waiting reasons) is forgotten with the agent.
//
// sync() runs one at a time; it blocks. Everything else is thread-safe and tells the pod's queue.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "client/client.h"
#include "client/work_queue.h"
#include "json/value.h"
#include "node/plugins/pod_claims.h"
#include "node/pods/container_config.h"
#include "node/pods/pod_backoff.h"
#include "node/pods/pod_events.h"
#include "node/pods/pod_images.h"
#include "node/pods/pod_killer.h"
#include "node/pods/pod_plan.h"
#include "node/pods/pod_status.h"
#include "node/pods/pod_status_writer.h"
#include "node/pods/pod_view.h"
#include "node/pods/probes.h"
#include "node/pods/volumes.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// What all workers of a node share. Everything outlives them.
struct PodTools {
  client::Client& client;
  runtime::Runtime& runtime;
  ContainerRuntime& containers;
  PodClaims& claims;
  Volumes& volumes;
  PodObjects& objects;
  const NodeFacts& facts;
  EnvSources sources;
  Prober prober;
  PodEvents& events;
  PodImages& images;
  PodKiller& killer;
  Probes& probes;
  PodStatusWriter& statuses;
  /// As PodWorkersOptions has it.
  std::function<json::Value(bool fresh)> node = {};
  /// The node is short of room on its disk.
  std::function<bool()> disk_pressure = {};
  /// Pods that the node has taken and that have not ended, but for the one with that uid.
  std::function<std::vector<json::Value>(const std::string& uid)> others = {};
  /// Of these, those that the server knows: pods deleted by force are gone there and still here.
  std::function<std::vector<json::Value>(const std::string& uid)> lasting_others = {};
  /// Work on the pod again.
  std::function<void(const std::string& uid)> wake = {};
  /// Runs a task that may block, on the executor; never after the workers have stopped.
  std::function<void(Duration delay, std::function<void()> task)> run_after = {};
  std::string runtime_name = {};
  std::string log_root = {};
};

/// Why a pod has to leave the node.
struct Eviction {
  std::string message = {};
  /// For lack of room, not by its own fault: that is a disruption.
  bool disrupts = false;
};

class PodWorker : public std::enable_shared_from_this<PodWorker> {
 public:
  /// `view`: what the runtime has of it.
  PodWorker(PodTools& tools, json::Value pod, PodView view);

  void update(json::Value pod);
  /// The object is not on the server any more.
  void gone();
  void probe_failed(const std::string& container_id, ProbeKind kind);
  void hook_ended(const std::string& container_id, bool failed);
  void evict(Eviction why);

  client::WorkOutcome sync();

  const std::string& uid() const { return uid_; }
  /// As the server last told it.
  json::Value known() const;
  /// With our own newest status.
  json::Value pod() const;
  /// The same with the resources that the node has granted it.
  json::Value granted() const;
  /// The node counts it: taken, and not ended.
  bool is_active() const;
  bool is_gone() const;
  /// Nothing of it runs any more and its devices are given back.
  bool has_ended() const;
  /// Nothing of it is left.
  bool is_removed() const;

 private:
  enum class Stage : std::uint8_t { running, ending, ended, removed };

  // pod_worker.cc
  void begin_sync();
  client::WorkOutcome outcome() const;
  void look_again(Duration after);
  void grow_retry();
  void publish();
  void put_status(bool stopped);
  void follow_probes();
  std::string last_words(const ContainerStatus& container);
  std::string sandbox_ip() const;

  // pod_resizing.cc
  /// Takes what the spec asks for into what the node grants, where there is room.
  void grant();
  /// Gives the pod and its running containers what was granted.
  void actuate();
  bool resize_sandbox(const ContainerLimits& limits);
  bool resize_container(const SpecContainer& container, const ContainerStatus& status);
  void resize_failed(const std::string& message);

  // pod_start.cc
  void run();
  bool admit();
  bool past_deadline();
  bool evicted();
  bool make_sandbox(const PodPlan& plan);
  bool set_up_volumes();
  /// Writes the sandbox's interfaces into the pod; false when it has to be tried again.
  bool tell_networks();
  void start(const SpecContainer& container);
  /// Of the volumes that the container mounts; nothing where it waits for one of them.
  std::optional<VolumeImages> volume_images(const SpecContainer& container);
  bool in_backoff(const SpecContainer& container, const ContainerStatus* before);
  unsigned next_attempt(const SpecContainer& container) const;
  void wait(const SpecContainer& container, const char* reason, const std::string& message);
  void start_hook(const SpecContainer& container, const std::string& id);
  void kill_planned(const PodPlan& plan);
  void forget_old_containers(std::string_view name);

  // pod_end.cc
  void begin_end(std::string reason, std::string message);
  void end();
  bool kill_all();
  void kill(const std::string& name, const ContainerStatus& container, Duration grace);
  void after_end();
  void remove_all();
  bool remove_containers();

  PodTools& tools_;
  const std::string uid_;

  mutable Mutex mutex_;
  json::Value newest_pod_ DIBS_GUARDED_BY(mutex_);
  bool is_gone_ DIBS_GUARDED_BY(mutex_) = false;
  std::map<std::string, ProbeKind> failed_probes_ DIBS_GUARDED_BY(mutex_);  // by container id
  std::map<std::string, bool> hooks_running_ DIBS_GUARDED_BY(mutex_);       // by container id
  std::vector<std::string> failed_hooks_ DIBS_GUARDED_BY(mutex_);           // container ids
  json::Value shown_status_ DIBS_GUARDED_BY(mutex_);                        // ours, as last put
  std::optional<Eviction> eviction_ DIBS_GUARDED_BY(mutex_);
  Stage shown_stage_ DIBS_GUARDED_BY(mutex_) = Stage::running;
  bool taken_ DIBS_GUARDED_BY(mutex_) = false;
  json::Value allocation_ DIBS_GUARDED_BY(mutex_);  // null: not taken yet

  // Of sync() alone.
  json::Value pod_;       // with our own newest status, and with what was granted
  json::Value asked_;     // the resources of its spec
  json::Value actuated_;  // the allocation that all that runs has, null: not looked at yet
  std::optional<WaitingReason> resize_pending_;
  std::optional<WaitingReason> resize_in_progress_;
  bool lost_object_ = false;
  PodView view_;
  Stage stage_ = Stage::running;
  WaitingReasons waiting_;
  Backoff backoff_;
  Duration retry_{0};
  Duration unprepare_retry_{0};
  Duration unmount_retry_{0};
  std::optional<Duration> again_;
  std::map<std::string, std::string> last_words_;  // by container id
  std::map<std::string, ProbeKind> probes_now_;
  std::map<std::string, bool> hooks_now_;
  std::string end_reason_;
  std::string end_message_;
  bool disrupted_ = false;
  Duration kill_deadline_{0};
  bool unmounted_ = false;
  bool volumes_gone_ = false;
  bool unprepared_ = false;
  bool delete_sent_ = false;
  bool told_initial_ = false;
  bool told_no_room_ = false;
  std::string told_networks_;
};

}  // namespace dibs::node
