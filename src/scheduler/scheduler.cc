#include "scheduler/scheduler.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr Duration kSyncPoll = std::chrono::milliseconds(5);
constexpr Duration kDiscoverAgain = std::chrono::seconds(1);
constexpr const char* kGroupPath = "/apis/resource.k8s.io/v1";
constexpr const char* kClassicPath = "/apis/resource.k8s.io/v1alpha2";
constexpr const char* kCompositePath = "/apis/scheduling.k8s.io/v1alpha3";

/// Versions that have PodGroups, newest first.
struct GroupVersion {
  const char* version;
  const char* path;
};
constexpr GroupVersion kGroupVersions[] = {{"v1beta1", "/apis/scheduling.k8s.io/v1beta1"},
                                           {"v1alpha3", "/apis/scheduling.k8s.io/v1alpha3"},
                                           {"v1alpha2", "/apis/scheduling.k8s.io/v1alpha2"}};

Options as_gated(Options options) {
  PluginSet off = 0;
  if (!options.claims) off |= bit(Plugin::dynamic_resources);
  if (!options.declared_features) off |= bit(Plugin::node_declared_features);
  for (Profile& profile : options.configuration.profiles) {
    for (PluginSet& plugins : profile.plugins) plugins &= ~off;
    if (!options.storage_scores) profile.volume_shape.clear();
  }
  return options;
}

QueueOptions queue_options(const Configuration& configuration) {
  QueueOptions made;
  made.initial_backoff = configuration.initial_backoff;
  made.longest_backoff = configuration.longest_backoff;
  return made;
}

client::EventRecorderOptions recorder_options(const Options& options) {
  client::EventRecorderOptions made;
  made.controller = options.configuration.profiles.front().name;
  made.instance = cat(made.controller, "-", options.instance);
  return made;
}

}  // namespace

void follow_gates(const api::Features& gates, Options& options) {
  options.features = alloc::Features::from_gates(gates);
  options.release = gates.minor();
  options.claims = gates.on("DynamicResourceAllocation");
  options.declared_features = gates.on("NodeDeclaredFeatures");
  options.storage_scores = gates.on("StorageCapacityScoring");
  // Until 1.36 two gates were about groups, until 1.34 one about taints and their rules.
  options.groups =
      gates.on("GenericWorkload") && (gates.minor() >= 37 || gates.on("GangScheduling"));
  options.composites = gates.on("CompositePodGroup");
  options.taint_rules =
      gates.on("DRADeviceTaints") && (gates.minor() < 35 || gates.on("DRADeviceTaintRules"));
}

Scheduler::Core::Core(client::Client& client_in, runtime::Runtime& runtime_in, Options options_in)
    : client(client_in),
      runtime(runtime_in),
      options(as_gated(std::move(options_in))),
      serial(std::make_shared<client::Serial>(runtime.executor)),
      recorder(client, runtime, recorder_options(options)),
      devices(
          options.features, [this] { return runtime::make_uuid(runtime.random); }, options.release),
      queue(queue_options(options.configuration)),
      placer(state, devices, options.release),
      gang_placer(state, devices) {
  devices.follow(groups);
  if (options.metrics == nullptr) return;
  metrics.emplace(*options.metrics);
  queue.on_entered([this](const char* into, const char* why) {
    metrics->incoming.with({into, why}).add();
  });
  queue.on_parked([this](const Pod& pod, PluginSet rejected_by, bool parked) {
    count_parked(pod, rejected_by, parked);
  });
  placer.time_devices({.clock = [this] { return now(); },
                       .took =
                           [this](const char* point, const char* status, Duration took) {
                             metrics->plugin_seconds
                                 .with({plugin_name(Plugin::dynamic_resources), point, status})
                                 .observe(took);
                           }});
}

void Scheduler::Core::post(std::function<void()> task) {
  serial->post([weak = weak_from_this(), task = std::move(task)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    client::GateEntry inside(self->gate);
    if (!inside) return;
    task();
    self->count();
  });
}

void Scheduler::Core::start() {
  const auto posting = [weak = weak_from_this()](std::function<void()> task) {
    if (const auto self = weak.lock()) self->post(std::move(task));
  };
  if (!options.configuration.extenders.empty()) {
    extenders = std::make_unique<Extenders>(options.configuration.extenders, options.extender_ways,
                                            posting);
  }
  binder = std::make_unique<Binder>(
      client, runtime, posting, devices, recorder, extenders.get(), options.release,
      [this](const BindJob& job, const std::string& failure) { bound(job, failure); });
  binder->on_rest([this] { kick(); });
  if (metrics) binder->count_in(*metrics);
  volume_binder = std::make_unique<VolumeBinder>(client, runtime, posting, state);
  contexts = std::make_unique<ContextWriter>(client, runtime, posting, devices, options.release);
  post([this] { discover(); });
}

void Scheduler::Core::stop() {
  gate.close();
  ready = false;
  if (metrics) metrics->clear();
  // Handlers of the informers only post, and find the gate closed.
  for (auto& informer : informers) informer->stop();
}

void Scheduler::Core::add_informer(const client::Gvr& gvr, std::function<void(const Value&)> put,
                                   std::function<void(const Value&)> removed) {
  auto informer =
      std::make_unique<client::Informer>(client, runtime, client::InformerOptions{.gvr = gvr});
  const std::weak_ptr<Core> weak = weak_from_this();
  const auto pass = [weak](const std::function<void(const Value&)>& to, const Value& object) {
    if (const auto self = weak.lock()) self->post([to, object] { to(object); });
  };
  informer->add_handler(
      {.added = [pass, put](const Value& object, bool) { pass(put, object); },
       .updated = [pass, put](const Value&, const Value& object) { pass(put, object); },
       .removed = [pass, removed](const Value& object) { pass(removed, object); }});
  informer->start();
  informers.push_back(std::move(informer));
}

void Scheduler::Core::ask_for(const char* path, std::function<void(const Value&)> then) {
  const std::weak_ptr<Core> weak = weak_from_this();
  const auto answered = [weak, path, then](const Result<Value>& answer) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (answer.ok() || answer.error().code() == Code::not_found) {
      self->post([then, list = answer.ok() ? (*answer)["resources"] : Value()] { then(list); });
      return;
    }
    self->runtime.timers.after(kDiscoverAgain, [weak, path, then] {
      const auto core = weak.lock();
      if (core != nullptr)
        core->post([core = core.get(), path, then] { core->ask_for(path, then); });
    });
  };
  client.call(client::make_request("GET", path), answered);
}

/// Releases differ in what they serve; an informer of a resource that is not there would never be
/// in sync.
void Scheduler::Core::discover() {
  ask_for(kGroupPath, [this](const Value& resources) {
    ask_for(kClassicPath, [this, resources](const Value& classic) {
      find_groups([this, resources, classic] { add_informers(resources, classic); });
    });
  });
}

/// Groups of pods are read in the first version that has them, and only where the gate is on.
void Scheduler::Core::find_groups(std::function<void()> then, std::size_t at) {
  if (!options.groups || at == std::size(kGroupVersions)) return then();
  ask_for(kGroupVersions[at].path, [this, then = std::move(then), at](const Value& resources) {
    for (const Value& resource : resources.items()) {
      if (resource["name"].as_string() != "podgroups") continue;
      has_groups = true;
      groups_gvr = {"scheduling.k8s.io", kGroupVersions[at].version, "podgroups"};
      return find_composites(then);
    }
    find_groups(then, at + 1);
  });
}

/// Groups of groups have a gate and a version of their own.
void Scheduler::Core::find_composites(const std::function<void()>& then) {
  if (!options.composites) return then();
  ask_for(kCompositePath, [this, then](const Value& resources) {
    for (const Value& resource : resources.items()) {
      if (resource["name"].as_string() == composites_gvr.resource) has_composites = true;
    }
    groups.follow_parents(has_composites);
    then();
  });
}

void Scheduler::Core::add_informers(const Value& resources, const Value& classic) {
  if (has_groups) {
    add_informer(
        groups_gvr, [this](const Value& o) { on_group(o); },
        [this](const Value& o) { on_group_removed(o); });
  }
  if (has_composites) {
    add_informer(
        composites_gvr, [this](const Value& o) { on_composite(o); },
        [this](const Value& o) { on_composite_removed(o); });
  }
  add_informer(
      {"", "v1", "nodes"}, [this](const Value& o) { on_node(o); },
      [this](const Value& o) { on_node_removed(o); });
  add_informer(
      {"", "v1", "namespaces"}, [this](const Value& o) { state.put_namespace(o); },
      [this](const Value& o) { state.remove_namespace(o["metadata"]["name"].as_string()); });
  add_informer(
      {"policy", "v1", "poddisruptionbudgets"}, [this](const Value& o) { on_budget(o); },
      [this](const Value& o) { budgets.erase(client::key_of(o)); });
  add_informer(
      kVolumeClaims, [this](const Value& o) { on_volume_claim(o); },
      [this](const Value& o) {
        state.volumes().remove_claim(o);
        volume_binder->changed();
      });
  add_informer(
      kVolumes, [this](const Value& o) { on_volume(o); },
      [this](const Value& o) {
        state.volumes().remove_volume(o);
        volume_binder->changed();
      });
  add_informer(
      {"storage.k8s.io", "v1", "storageclasses"},
      [this](const Value& o) {
        state.volumes().put_class(o);
        on_volume_fact(o);
      },
      [this](const Value& o) { state.volumes().remove_class(o); });
  for (const char* name : {"csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"}) {
    add_informer(
        {"storage.k8s.io", "v1", name},
        [this](const Value& o) {
          state.volumes().put_other(o);
          on_volume_fact(o);
        },
        [this](const Value& o) {
          state.volumes().remove_other(o);
          on_volume_fact(o);
        });
  }
  const bool spreads =
      std::any_of(options.configuration.profiles.begin(), options.configuration.profiles.end(),
                  [](const Profile& profile) { return !profile.spread.empty(); });
  const std::pair<const char*, const char*> kinds[] = {{"", "services"},
                                                       {"", "replicationcontrollers"},
                                                       {"apps", "replicasets"},
                                                       {"apps", "statefulsets"}};
  for (const auto& [group, name] : kinds) {
    if (!spreads) break;
    add_informer(
        {group, "v1", name}, [this](const Value& o) { state.owners().put(o); },
        [this](const Value& o) { state.owners().remove(o); });
  }
  const auto served = [](const Value& list, std::string_view name) {
    const auto& all = list.items();
    return std::any_of(all.begin(), all.end(),
                       [&](const Value& one) { return one["name"].as_string() == name; });
  };
  const auto add = [&](const char* name, std::function<void(const Value&)> put,
                       std::function<void(const Value&)> removed) {
    if (!served(resources, name)) return;
    add_informer({"resource.k8s.io", "v1", name}, std::move(put), std::move(removed));
  };
  const auto add_classic = [&](const char* name, std::function<void(const Value&)> put,
                               std::function<void(const Value&)> removed) {
    if (!served(classic, name)) return;
    add_informer({"resource.k8s.io", "v1alpha2", name}, std::move(put), std::move(removed));
  };
  add_classic(
      "resourceclasses", [this](const Value& o) { on_resource_class(o); },
      [this](const Value& o) { devices.remove_resource_class(o); });
  add_classic(
      "resourceclaimparameters",
      [this](const Value& o) {
        if (devices.parameters().put_claim_parameters(o)) {
          wake_devices("ResourceClaimParametersUpdate");
        }
      },
      [this](const Value& o) { devices.parameters().remove_claim_parameters(o); });
  add_classic(
      "resourceclassparameters",
      [this](const Value& o) {
        if (devices.parameters().put_class_parameters(o)) {
          wake_devices("ResourceClassParametersUpdate");
        }
      },
      [this](const Value& o) { devices.parameters().remove_class_parameters(o); });
  add_classic(
      "podschedulingcontexts", [this](const Value& o) { on_context(o); },
      [this](const Value& o) { on_context_removed(o); });
  add(
      "deviceclasses",
      [this](const Value& o) {
        if (devices.put_class(o)) wake_devices("DeviceClassUpdate");
      },
      [this](const Value& o) { devices.remove_class(o); });
  add(
      "resourceslices",
      [this](const Value& o) {
        devices.put_slice(o);
        on_slice(o);
      },
      [this](const Value& o) {
        devices.remove_slice(o);
        on_slice(o);
      });
  add(
      options.taint_rules ? "devicetaintrules" : "",
      [this](const Value& o) {
        devices.put_rule(o);
        wake_devices("DeviceTaintRuleUpdate");
      },
      [this](const Value& o) {
        devices.remove_rule(o);
        wake_devices("DeviceTaintRuleUpdate");
      });
  add(
      "resourceclaims", [this](const Value& o) { on_claim(o); },
      [this](const Value& o) { on_claim_removed(o); });
  add_informer(
      {"", "v1", "pods"}, [this](const Value& o) { on_pod(Pod::read(o, shapes)); },
      [this](const Value& o) { on_pod_removed(Pod::read(o, shapes)); });
  wait_for_informers();
}

void Scheduler::Core::wait_for_informers() {
  for (const auto& informer : informers) {
    if (informer->synced()) continue;
    runtime.timers.after(kSyncPoll, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->post([core = self.get()] { core->wait_for_informers(); });
      }
    });
    return;
  }
  // What the informers have said is posted before this.
  post([this] {
    ready = true;
    kick();
  });
}

Scheduler::Scheduler(client::Client& client, runtime::Runtime& runtime, Options options)
    : client_(client), runtime_(runtime), options_(std::move(options)) {}

Scheduler::~Scheduler() { stop(); }

std::shared_ptr<Scheduler::Core> Scheduler::core() const {
  const MutexLock lock(mutex_);
  return core_;
}

void Scheduler::start() {
  auto core = std::make_shared<Core>(client_, runtime_, options_);
  {
    const MutexLock lock(mutex_);
    if (core_ != nullptr) return;
    core_ = core;
  }
  core->start();
}

void Scheduler::stop() {
  std::shared_ptr<Core> ending;
  {
    const MutexLock lock(mutex_);
    ending = std::exchange(core_, nullptr);
  }
  if (ending != nullptr) ending->stop();
}

bool Scheduler::ready() const {
  const auto running = core();
  return running != nullptr && running->ready;
}

}  // namespace dibs::scheduler
