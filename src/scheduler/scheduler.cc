#include "scheduler/scheduler.h"

#include "base/log.h"
#include "base/strings.h"
#include "scheduler/core.h"

namespace dibs::scheduler {
namespace {

using json::Value;

constexpr Duration kSyncPoll = std::chrono::milliseconds(5);
constexpr Duration kDiscoverAgain = std::chrono::seconds(1);
constexpr std::string_view kGroupPath = "/apis/resource.k8s.io/v1";

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

Scheduler::Core::Core(client::Client& client_in, runtime::Runtime& runtime_in, Options options_in)
    : client(client_in),
      runtime(runtime_in),
      options(std::move(options_in)),
      serial(std::make_shared<client::Serial>(runtime.executor)),
      recorder(client, runtime, recorder_options(options)),
      devices(options.features, [this] { return runtime::make_uuid(runtime.random); }),
      queue(queue_options(options.configuration)),
      placer(state, devices) {
  if (options.metrics == nullptr) return;
  metrics.emplace(*options.metrics);
  queue.on_entered([this](const char* into, const char* why) {
    metrics->incoming.with({into, why}).add();
  });
}

void Scheduler::Core::post(std::function<void()> task) {
  serial->post([weak = weak_from_this(), task = std::move(task)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    client::GateEntry inside(self->gate);
    if (inside) task();
  });
}

void Scheduler::Core::start() {
  const std::weak_ptr<Core> weak = weak_from_this();
  binder = std::make_unique<Binder>(
      client, runtime,
      [weak](std::function<void()> task) {
        if (const auto self = weak.lock()) self->post(std::move(task));
      },
      devices, recorder,
      [this](const BindJob& job, const std::string& failure) { bound(job, failure); });
  client.call(client::make_request("GET", std::string(kGroupPath)),
              [weak](const Result<Value>& answer) {
                if (const auto self = weak.lock()) {
                  self->post([core = self.get(), answer] { core->discover(answer); });
                }
              });
}

void Scheduler::Core::stop() {
  gate.close();
  ready = false;
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

/// Releases differ in what they serve; an informer of a resource that is not there would never be
/// in sync.
void Scheduler::Core::discover(const Result<Value>& resources) {
  if (!resources.ok() && resources.error().code() != Code::not_found) {
    runtime.timers.after(kDiscoverAgain, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->client.call(client::make_request("GET", std::string(kGroupPath)),
                        [weak](const Result<Value>& answer) {
                          if (const auto core = weak.lock()) {
                            core->post([core = core.get(), answer] { core->discover(answer); });
                          }
                        });
    });
    return;
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
  const Value list = resources.ok() ? (*resources)["resources"] : Value();
  const auto served = [&](std::string_view name) {
    for (const Value& resource : list.items()) {
      if (resource["name"].as_string() == name) return true;
    }
    return false;
  };
  const client::Gvr group = {"resource.k8s.io", "v1", ""};
  const auto add = [&](const char* name, std::function<void(const Value&)> put,
                       std::function<void(const Value&)> removed) {
    if (!served(name)) return;
    add_informer({group.group, group.version, name}, std::move(put), std::move(removed));
  };
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
      "devicetaintrules",
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
    : core_(std::make_shared<Core>(client, runtime, std::move(options))) {}

Scheduler::~Scheduler() { stop(); }

void Scheduler::start() { core_->start(); }
void Scheduler::stop() { core_->stop(); }
bool Scheduler::ready() const { return core_->ready; }

}  // namespace dibs::scheduler
