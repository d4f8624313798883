#include "node/pods/pod_workers.h"

#include <optional>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "node/pods/pod_spec.h"
#include "runtime/blocking.h"

namespace dibs::node {
namespace {

using json::Value;

/// What can be told of a pod that only the runtime remembers.
Value forgotten_pod(const std::string& uid, const PodView& view) {
  Value metadata = Value::object({{"uid", uid}});
  if (const SandboxStatus* sandbox = view.sandbox()) {
    metadata.set("name", sandbox->name);
    metadata.set("namespace", sandbox->name_space);
  }
  return Value::object({{"apiVersion", "v1"},
                        {"kind", "Pod"},
                        {"metadata", std::move(metadata)},
                        {"spec", Value::object({{"terminationGracePeriodSeconds", 1}})}});
}

client::WorkQueueOptions queue_options(unsigned concurrency) {
  client::WorkQueueOptions options;
  options.concurrency = concurrency;
  return options;
}

}  // namespace

struct PodWorkers::State {
  State(client::Client& client, runtime::Runtime& world, ContainerRuntime& containers,
        PodClaims& claims, Volumes& all_volumes, PodObjects& objects,
        client::EventRecorder& recorder, const NodeFacts& facts, PodWorkersOptions how)
      : runtime(world),
        volumes(all_volumes),
        options(std::move(how)),
        prober(waiting(options.prober ? options.prober : make_prober(containers, facts.simulated))),
        events(recorder),
        images(containers, world.clock, events, objects),
        killer(world, containers, prober, events, [this](const std::string& uid) { wake(uid); }),
        probes(world, prober, probe_callbacks()),
        statuses(client, world, status_callbacks()),
        tools{client,      world,   containers, claims,
              all_volumes, objects, facts,      EnvSources{objects, options.services},
              prober,      events,  images,     killer,
              probes,      statuses},
        queue(world, queue_options(options.concurrency),
              [this](const std::string& uid) { return work(uid); }) {
    tools.node = options.node ? options.node : [](bool) { return Value(); };
    tools.disk_pressure = options.disk_pressure ? options.disk_pressure : [] { return false; };
    tools.others = [this](const std::string& uid) { return others(uid, true); };
    tools.lasting_others = [this](const std::string& uid) { return others(uid, false); };
    tools.wake = [this](const std::string& uid) { wake(uid); };
    tools.run_after = [this](Duration delay, std::function<void()> task) {
      run_after(delay, std::move(task));
    };
    tools.runtime_name = containers.version().name;
    tools.log_root = options.log_root;
    all_volumes.on_due([this](const std::string& uid) { wake(uid); });
    claims.on_health_change([this](const std::string& uid) { wake(uid); });
    containers.listen([this, gate = gate](const RuntimeEvent& event) {
      // The runtime outlives its listeners.
      client::GateEntry inside(*gate);
      if (inside && event.kind == RuntimeEvent::Kind::stopped) wake(event.pod_uid);
    });
  }

  static Prober waiting(Prober inner) {
    return [inner = std::move(inner)](const ProbedContainer& container, const Value& probe,
                                      Duration timeout) {
      const runtime::Blocking waits;
      return inner(container, probe, timeout);
    };
  }

  ProbeCallbacks probe_callbacks() {
    ProbeCallbacks out;
    out.changed = [this](const std::string& uid) { wake(uid); };
    out.failed = [this](const ProbedContainer& container, ProbeKind kind) {
      const std::string uid(uid_of(container.pod));
      if (const auto worker = find(uid)) worker->probe_failed(container.id, kind);
      wake(uid);
    };
    out.event = [this](const ProbedContainer& container, const std::string& reason,
                       const std::string& note) {
      events.warning(container.pod, container.container["name"].as_string(), reason, note);
    };
    return out;
  }

  PodStatusWriter::Callbacks status_callbacks() {
    PodStatusWriter::Callbacks out;
    out.written = [this](const std::string& uid) {
      // Only the last one is waited for.
      const auto worker = find(uid);
      if (worker && !worker->is_active()) wake(uid);
    };
    return out;
  }

  runtime::Runtime& runtime;
  Volumes& volumes;
  const PodWorkersOptions options;
  const Prober prober;
  PodEvents events;
  PodImages images;
  PodKiller killer;
  Probes probes;
  PodStatusWriter statuses;
  PodTools tools;
  std::shared_ptr<client::Gate> gate = std::make_shared<client::Gate>();

  mutable Mutex mutex;
  std::map<std::string, std::shared_ptr<PodWorker>> workers DIBS_GUARDED_BY(mutex);  // by uid
  std::map<std::string, PodView> adopted
      DIBS_GUARDED_BY(mutex);  // found in the runtime, pod not seen yet
  bool all_known DIBS_GUARDED_BY(mutex) = false;

  client::WorkQueue queue;
  std::unique_ptr<PodSource> source;

  void wake(const std::string& uid) {
    if (!uid.empty()) queue.add(uid);
  }

  void run_after(Duration delay, std::function<void()> task) {
    auto guarded = [held = gate, task = std::move(task)] {
      client::GateEntry inside(*held);
      if (inside) task();
    };
    if (delay.count() <= 0) return runtime.executor.post(std::move(guarded));
    runtime.timers.after(delay, std::move(guarded));
  }

  std::shared_ptr<PodWorker> find(const std::string& uid) const {
    const MutexLock lock(mutex);
    const auto found = workers.find(uid);
    return found == workers.end() ? nullptr : found->second;
  }

  std::vector<std::shared_ptr<PodWorker>> all() const {
    const MutexLock lock(mutex);
    std::vector<std::shared_ptr<PodWorker>> out;
    out.reserve(workers.size());
    for (const auto& [uid, worker] : workers) out.push_back(worker);
    return out;
  }

  std::vector<Value> others(const std::string& uid, bool with_gone) const {
    std::vector<Value> out;
    for (const auto& worker : all()) {
      if (worker->uid() == uid || !worker->is_active()) continue;
      if (with_gone || !worker->is_gone()) out.push_back(worker->granted());
    }
    return out;
  }

  void pod_changed(const Value& pod) {
    const std::string uid(uid_of(pod));
    std::shared_ptr<PodWorker> worker;
    {
      const MutexLock lock(mutex);
      auto& entry = workers[uid];
      if (entry == nullptr) {
        PodView view;
        if (auto found = adopted.extract(uid)) view = std::move(found.mapped());
        entry = std::make_shared<PodWorker>(tools, pod, std::move(view));
      } else {
        worker = entry;
      }
    }
    if (worker != nullptr) {
      const Value before = worker->known();
      worker->update(pod);
      // Our own status coming back is no news.
      if (same_for_us(before, pod)) return;
    }
    queue.add(uid);
  }

  static bool same_for_us(const Value& before, const Value& after) {
    const Value& a = before["metadata"];
    const Value& b = after["metadata"];
    for (const char* key : {"deletionTimestamp", "deletionGracePeriodSeconds", "finalizers",
                            "generation", "labels", "annotations"}) {
      if (!(a[key] == b[key])) return false;
    }
    if (!(before["spec"] == after["spec"])) return false;
    const Value& was = before["status"];
    const Value& is = after["status"];
    for (const char* key : {"resourceClaimStatuses", "extendedResourceClaimStatus"}) {
      if (!(was[key] == is[key])) return false;
    }
    if (is_terminal(after) && !is_terminal(before)) return false;
    // Conditions of others may be readiness gates.
    for (const Value& gated : after["spec"]["readinessGates"].items()) {
      const std::string_view type = gated["conditionType"].as_string();
      if (!(find_condition(was, type) == find_condition(is, type))) return false;
    }
    return true;
  }

  void pod_gone(const Value& pod) {
    const std::string uid(uid_of(pod));
    if (const auto worker = find(uid)) {
      worker->gone();
      queue.add(uid);
    }
  }

  /// What the runtime or the disk has of pods that are no more.
  void take_orphans() {
    std::vector<std::string> uids;
    {
      const MutexLock lock(mutex);
      all_known = true;
      for (const auto& uid : volumes.pods_on_disk()) {
        if (!workers.contains(uid)) adopted.try_emplace(uid);
      }
      for (auto& [uid, view] : adopted) {
        auto worker = std::make_shared<PodWorker>(tools, forgotten_pod(uid, view), view);
        worker->gone();
        workers[uid] = std::move(worker);
        uids.push_back(uid);
      }
      adopted.clear();
    }
    for (const auto& uid : uids) queue.add(uid);
  }

  client::WorkOutcome work(const std::string& uid) {
    const auto worker = find(uid);
    if (worker == nullptr) return client::WorkOutcome::done();
    // Real containers take their time; simulated ones do not.
    std::optional<runtime::Blocking> waits;
    if (!tools.facts.simulated) waits.emplace();
    const client::WorkOutcome outcome = worker->sync();
    if (worker->is_removed()) {
      const MutexLock lock(mutex);
      workers.erase(uid);
    }
    return outcome;
  }

  void stop() {
    if (source) source->stop();
    queue.stop();
    gate->close();
    probes.stop();
    killer.stop();
    statuses.stop();
  }
};

PodWorkers::PodWorkers(client::Client& client, runtime::Runtime& runtime,
                       ContainerRuntime& containers, PodClaims& claims, Volumes& volumes,
                       PodObjects& objects, client::EventRecorder& recorder, const NodeFacts& facts,
                       PodWorkersOptions options)
    : state_(std::make_unique<State>(client, runtime, containers, claims, volumes, objects,
                                     recorder, facts, std::move(options))) {}
PodWorkers::~PodWorkers() { stop(); }

Result<> PodWorkers::start(std::unique_ptr<PodSource> source) {
  DIBS_TRY(auto views, read_views(state_->tools.containers));
  {
    const MutexLock lock(state_->mutex);
    state_->adopted = std::move(views);
  }
  state_->source = std::move(source);
  PodHandlers handlers;
  handlers.changed = [state = state_.get()](const json::Value& pod) { state->pod_changed(pod); };
  handlers.gone = [state = state_.get()](const json::Value& pod) { state->pod_gone(pod); };
  handlers.listed = [state = state_.get()] { state->take_orphans(); };
  state_->source->start(std::move(handlers));
  return success();
}

void PodWorkers::stop() { state_->stop(); }

bool PodWorkers::listed() const {
  const MutexLock lock(state_->mutex);
  return state_->all_known;
}

void PodWorkers::wake_all() {
  for (const auto& worker : state_->all()) state_->queue.add(worker->uid());
}

std::vector<json::Value> PodWorkers::pods() const {
  std::vector<json::Value> out;
  for (const auto& worker : state_->all()) out.push_back(worker->pod());
  return out;
}

std::vector<json::Value> PodWorkers::unended() const {
  std::vector<json::Value> out;
  for (const auto& worker : state_->all()) {
    if (!worker->has_ended()) out.push_back(worker->pod());
  }
  return out;
}

std::vector<json::Value> PodWorkers::active() const { return state_->others("", true); }

bool PodWorkers::is_active(const std::string& uid) const {
  const auto worker = state_->find(uid);
  return worker != nullptr && worker->is_active();
}

void PodWorkers::evict(const std::string& uid, Eviction why) {
  const auto worker = state_->find(uid);
  if (worker == nullptr) return;
  worker->evict(std::move(why));
  state_->wake(uid);
}

std::string PodWorkers::probe_metrics() const { return state_->probes.metrics(); }

json::Value PodWorkers::find(std::string_view name_space, std::string_view name) const {
  json::Value out;
  for (const auto& worker : state_->all()) {
    json::Value pod = worker->pod();
    if (name_of(pod) == name && namespace_of(pod) == name_space) {
      // Of two with one name the one that is still there counts.
      if (out.is_null() || worker->is_active()) out = std::move(pod);
    }
  }
  return out;
}

}  // namespace dibs::node
