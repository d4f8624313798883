#include "proxy/policy_keeper.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/informer.h"

namespace dibs::proxy {

using json::Value;

namespace {

constexpr Duration kGather = std::chrono::milliseconds(10);
constexpr Duration kFirstRetry = std::chrono::milliseconds(500);
constexpr Duration kLongestRetry = std::chrono::seconds(30);

Value keep_metadata(const Value& object) {
  Value out = Value::object();
  for (const char* field : {"name", "namespace", "uid", "resourceVersion", "labels"}) {
    if (const Value* value = object["metadata"].find(field)) out.set(field, *value);
  }
  return out;
}

/// What policies look at.
Value keep_pod(const Value& pod) {
  Value spec = Value::object(
      {{"nodeName", pod["spec"]["nodeName"]}, {"hostNetwork", pod["spec"]["hostNetwork"]}});
  for (const char* list : {"containers", "initContainers"}) {
    Value containers = Value::array();
    for (const Value& container : pod["spec"][list].items()) {
      if (!container["ports"].empty()) {
        containers.push(Value::object({{"ports", container["ports"]}}));
      }
    }
    spec.set(list, std::move(containers));
  }
  return Value::object({{"metadata", keep_metadata(pod)},
                        {"spec", std::move(spec)},
                        {"status", Value::object({{"phase", pod["status"]["phase"]},
                                                  {"podIP", pod["status"]["podIP"]}})}});
}

/// Nothing of it differs but the version.
bool same(const Value& before, const Value& after) {
  return before["metadata"]["labels"] == after["metadata"]["labels"] &&
         before["spec"] == after["spec"] && before["status"] == after["status"];
}

}  // namespace

struct PolicyKeeper::State : std::enable_shared_from_this<State> {
  State(PolicyOptions how, client::Client& client, runtime::Runtime& world, Applier& to)
      : table(how.table), api(client), runtime(world), applier(to), model(std::move(how)) {}

  using Change = void (PolicyModel::*)(const Value& object);
  std::unique_ptr<client::Informer> follow(client::InformerOptions options, Change set,
                                           Change removed) {
    auto out = std::make_unique<client::Informer>(api, runtime, std::move(options));
    const auto change = [this](Change what, const Value& object) {
      const MutexLock lock(mutex);
      (model.*what)(object);
      schedule(kGather);
    };
    out->add_handler({.added = [change, set](const Value& object, bool) { change(set, object); },
                      .updated =
                          [change, set](const Value& before, const Value& after) {
                            if (!same(before, after)) change(set, after);
                          },
                      .removed = [change, removed](const Value& o) { change(removed, o); }});
    return out;
  }

  void start() {
    policies = follow({.gvr = {"networking.k8s.io", "v1", "networkpolicies"}},
                      &PolicyModel::set_policy, &PolicyModel::remove_policy);
    policies->add_handler({.added = [this](const Value&, bool) { follow_pods(); }});
    policies->start();
    const MutexLock lock(mutex);
    schedule(kGather);
  }

  /// With the first policy.
  void follow_pods() {
    {
      const MutexLock lock(mutex);
      if (follows_pods || stopped) return;
      follows_pods = true;
      whole = true;
    }
    namespaces = follow({.gvr = {"", "v1", "namespaces"}, .metadata_only = true},
                        &PolicyModel::set_namespace, &PolicyModel::remove_namespace);
    pods = follow({.gvr = {"", "v1", "pods"}, .keep = keep_pod}, &PolicyModel::set_pod,
                  &PolicyModel::remove_pod);
    namespaces->start();
    pods->start();
    const MutexLock lock(mutex);
    pods_started = true;
  }

  void schedule(Duration delay) DIBS_REQUIRES(mutex) {
    if (stopped) return;
    if (waiting) {
      again = true;
      return;
    }
    waiting = true;
    runtime.timers.after(delay, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      if (const client::GateEntry entry(self->gate); entry) self->apply();
    });
  }

  /// All there is has been read.
  bool synced() {
    bool with_pods = false;
    {
      const MutexLock lock(mutex);
      if (follows_pods && !pods_started) return false;
      with_pods = follows_pods;
    }
    return policies->synced() && (!with_pods || (namespaces->synced() && pods->synced()));
  }

  void apply() {
    const bool read = synced();
    std::string text;
    {
      const MutexLock lock(mutex);
      again = false;
      if (!read || (follows_pods && !pods_started)) {
        waiting = false;
        return schedule(kGather);
      }
      if (!whole) {
        text = model.changes();
      } else if (follows_pods) {
        text = model.whole();
      } else {
        text = cat("add table inet ", table, "\ndelete table inet ", table, '\n');
      }
      whole = false;
    }
    const auto done = text.empty() ? success() : applier.apply(text);
    if (!done) log::error("policies cannot be applied", {{"error", done.error()}});
    const MutexLock lock(mutex);
    waiting = false;
    if (!done) {
      whole = true;
      schedule(retry);
      retry = std::min(2 * retry, kLongestRetry);
      return;
    }
    applied = true;
    retry = kFirstRetry;
    if (again) schedule(kGather);
  }

  void stop() {
    {
      const MutexLock lock(mutex);
      stopped = true;
    }
    gate.close();
    for (auto* informer : {&policies, &namespaces, &pods}) {
      if (*informer) (*informer)->stop();
    }
  }

  const std::string table;
  client::Client& api;
  runtime::Runtime& runtime;
  Applier& applier;
  client::Gate gate;
  std::unique_ptr<client::Informer> policies;
  std::unique_ptr<client::Informer> namespaces;
  std::unique_ptr<client::Informer> pods;

  Mutex mutex;
  PolicyModel model DIBS_GUARDED_BY(mutex);
  bool follows_pods DIBS_GUARDED_BY(mutex) = false;
  bool pods_started DIBS_GUARDED_BY(mutex) = false;
  bool waiting DIBS_GUARDED_BY(mutex) = false;  // for the time to apply, or applying
  bool again DIBS_GUARDED_BY(mutex) = false;
  bool whole DIBS_GUARDED_BY(mutex) = true;
  bool applied DIBS_GUARDED_BY(mutex) = false;
  bool stopped DIBS_GUARDED_BY(mutex) = false;
  Duration retry DIBS_GUARDED_BY(mutex) = kFirstRetry;
};

PolicyKeeper::PolicyKeeper(PolicyOptions options, client::Client& client, runtime::Runtime& runtime,
                           Applier& applier)
    : state_(std::make_shared<State>(std::move(options), client, runtime, applier)) {}

PolicyKeeper::~PolicyKeeper() { stop(); }
void PolicyKeeper::start() { state_->start(); }
void PolicyKeeper::stop() { state_->stop(); }

bool PolicyKeeper::ready() const {
  const MutexLock lock(state_->mutex);
  return state_->applied;
}

}  // namespace dibs::proxy
