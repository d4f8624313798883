#include "driver/controller.h"

#include "base/log.h"
#include "base/strings.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "client/work_queue.h"
#include "driver/claim_sync.h"
#include "driver/leader.h"

namespace dibs::driver {
namespace {

using client::WorkOutcome;
using json::Value;

constexpr std::string_view kClaimKey = "claim:";
constexpr std::string_view kContextKey = "context:";
/// How often what waits is looked at without a reason.
constexpr Duration kRecheck = std::chrono::seconds(30);
/// How often is looked for the informers' first lists, and when it is said that there are none.
constexpr Duration kSyncPoll = std::chrono::milliseconds(20);
constexpr Duration kSyncPatience = std::chrono::seconds(5);
/// No object has this key: it is there from the beginning on.
constexpr const char* kBegin = "";

std::vector<std::string> drivers_of(const Value& claim) {
  const Value& status = claim["status"];
  if (!status["allocation"].is_object()) return {};
  std::set<std::string> names = {status["driverName"].str()};
  for (const auto& handle : status["allocation"]["resourceHandles"].items()) {
    names.insert(handle["driverName"].str());
  }
  return {names.begin(), names.end()};
}

std::vector<std::string> finalizers_of(const Value& claim) {
  std::vector<std::string> names;
  for (const auto& name : claim["metadata"]["finalizers"].items()) names.push_back(name.str());
  return names;
}

/// All that lives while this process does the work.
class Worker {
 public:
  Worker(Allocator& allocator, client::Client& api, runtime::Runtime& runtime,
         const std::string& driver)
      : claims_(api, runtime, {.gvr = kClassicClaims}),
        classes_(api, runtime, {.gvr = kClassicClasses}),
        contexts_(api, runtime, {.gvr = kContexts}),
        events_(api, runtime, {.controller = cat("resource driver ", driver), .core = true}),
        sync_(allocator, api, {claims_, classes_, contexts_}, events_, driver),
        queue_(runtime, {}, [this](const std::string& key) { return work(key); }) {
    claims_.add_index(kByDriver, drivers_of);
    claims_.add_index(kByFinalizer, finalizers_of);
    watch_claims();
    classes_.add_handler({.added =
                              [this](const Value&, bool first) {
                                if (!first) look_again();
                              },
                          .updated = [this](const Value&, const Value&) { look_again(); }});
    client::InformerHandlers contexts;
    contexts.added = [this](const Value& context, bool) { queue_.add(key(kContextKey, context)); };
    contexts.updated = [this](const Value& before, const Value& after) {
      // The status is for the scheduler to read: it says what this one wrote.
      if (!(before["spec"] == after["spec"])) queue_.add(key(kContextKey, after));
    };
    contexts.removed = [this](const Value& context) { queue_.add(key(kContextKey, context)); };
    contexts_.add_handler(std::move(contexts));
    for (auto* informer : {&claims_, &classes_, &contexts_}) informer->start();
    queue_.add_after(kBegin, kSyncPatience);
  }

  ~Worker() {
    for (auto* informer : {&claims_, &classes_, &contexts_}) informer->stop();
    queue_.stop();
  }

  void look_again() {
    look_at_contexts();
    for (const auto& claim : claims_.list()) {
      if (!claim["status"]["allocation"].is_object()) queue_.add(key(kClaimKey, claim));
    }
  }

  bool synced() const { return claims_.synced() && classes_.synced() && contexts_.synced(); }

 private:
  static std::string key(std::string_view kind, const Value& object) {
    return cat(kind, client::key_of(object));
  }

  void watch_claims() {
    client::InformerHandlers handlers;
    handlers.added = [this](const Value& claim, bool) { queue_.add(key(kClaimKey, claim)); };
    handlers.updated = [this](const Value& before, const Value& after) {
      queue_.add(key(kClaimKey, after));
      if (before["status"]["allocation"].is_object() &&
          !after["status"]["allocation"].is_object()) {
        look_at_contexts();
      }
    };
    handlers.removed = [this](const Value& claim) {
      queue_.add(key(kClaimKey, claim));
      if (claim["status"]["allocation"].is_object()) look_at_contexts();
    };
    claims_.add_handler(std::move(handlers));
  }

  /// Something is free again: whoever waits may get it.
  void look_at_contexts() {
    for (const auto& context : contexts_.list()) queue_.add(key(kContextKey, context));
  }

  WorkOutcome work(const std::string& key) {
    if (key == kBegin) {
      if (synced()) return WorkOutcome::done();
      log::warn("waits for lists of resource.k8s.io/v1alpha2: is it served, and may they be read?");
      return WorkOutcome::again_after(kSyncPatience * 12);
    }
    if (!synced()) return WorkOutcome::again_after(kSyncPoll);
    if (!taken_over_) sync_.take_over();
    taken_over_ = true;
    const bool is_claim = key.starts_with(kClaimKey);
    const std::string name = key.substr(is_claim ? kClaimKey.size() : kContextKey.size());
    const auto next = is_claim ? sync_.claim(name) : sync_.context(name);
    if (!next) {
      failed(is_claim ? claims_ : contexts_, name, next.error());
      return WorkOutcome::retry();
    }
    switch (*next) {
      case Next::done:
        break;
      case Next::retry:
        return WorkOutcome::retry();
      case Next::recheck:
        return WorkOutcome::again_after(kRecheck);
    }
    return WorkOutcome::done();
  }

  void failed(const client::Informer& informer, const std::string& name, const Error& error) {
    // Somebody else wrote the object, and that will be seen soon.
    if (error.code() == Code::conflict) return;
    log::warn("not done", {{"object", name}, {"error", error}});
    const auto object = informer.get(name);
    if (!object) return;
    client::EventInput event;
    event.regarding = client::object_reference(*object);
    event.warning = true;
    event.reason = "Failed";
    event.note = error.message();
    events_.record(std::move(event));
  }

  client::Informer claims_;
  client::Informer classes_;
  client::Informer contexts_;
  client::EventRecorder events_;
  ClaimSync sync_;
  bool taken_over_ = false;  // the queue's only worker touches it
  client::WorkQueue queue_;
};

}  // namespace

struct Controller::State {
  std::unique_ptr<Leader> leader;
};

Controller::Controller() = default;

Controller::~Controller() { stop(); }

Result<std::unique_ptr<Controller>> Controller::start(Allocator& allocator, Environment environment,
                                                      ControllerOptions options) {
  if (options.driver_name.empty()) return Error::invalid("a driver needs a name");
  std::unique_ptr<Controller> controller(new Controller());
  controller->state_ = std::make_unique<State>();
  client::Client& api = environment.api;
  runtime::Runtime& runtime = environment.runtime;
  const std::string driver = options.driver_name;
  controller->state_->leader =
      Leader::start(environment, options, [&allocator, &api, &runtime, driver] {
        auto worker = std::make_shared<Worker>(allocator, api, runtime, driver);
        log::info("the controller works", {{"driver", driver}});
        return worker;
      });
  return controller;
}

bool Controller::is_working() const {
  return state_->leader->is_so(
      [](void* running) { return static_cast<Worker*>(running)->synced(); });
}

void Controller::look_again() {
  state_->leader->is_so([](void* running) {
    static_cast<Worker*>(running)->look_again();
    return true;
  });
}

void Controller::stop() {
  if (state_) state_->leader->stop();
}

Result<Running> start_controller(std::unique_ptr<Allocator> allocator, Environment environment,
                                 ControllerOptions options) {
  struct Kept {
    std::unique_ptr<Allocator> allocator;
    std::unique_ptr<Controller> controller;  // ends before the allocator it calls
  };
  auto kept = std::make_shared<Kept>();
  kept->allocator = std::move(allocator);
  DIBS_TRY(kept->controller, Controller::start(*kept->allocator, environment, std::move(options)));
  return Running{std::move(kept), nullptr};
}

}  // namespace dibs::driver
