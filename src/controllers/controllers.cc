#include "controllers/controllers.h"

#include <atomic>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/leader_election.h"
#include "controllers/workload.h"

namespace dibs::controllers {
namespace {

constexpr Duration kServerRetry = std::chrono::milliseconds(500);

/// Everything that lives from one start() to the next stop().
struct Running {
  Running(client::Client& api, runtime::Runtime& world, const ControllersOptions& what)
      : client(api),
        runtime(world),
        informers(api, world),
        recorders(api, world),
        environment{client, runtime, informers, discovery, recorders, what} {}

  client::Client& client;
  runtime::Runtime& runtime;
  SharedInformers informers;
  Discovery discovery;
  Recorders recorders;
  Environment environment;
  std::vector<ControllerPtr> controllers;

  void make_all() {
    for (const auto make :
         {make_namespace_controller, make_service_account_controller, make_garbage_collector,
          make_resource_claim_controller, make_quota_controller, make_pod_collector,
          make_node_lifecycle_controller, make_taint_eviction_controller,
          make_device_taint_controller}) {
      if (environment.options.claims_only && make != make_resource_claim_controller) continue;
      // None where the server does not serve what it is about.
      if (auto controller = make(environment)) controllers.push_back(std::move(controller));
    }
    if (!environment.options.claims_only) {
      for (auto& controller : make_workload_controllers(environment))
        controllers.push_back(std::move(controller));
    }
    informers.start();
    for (auto& controller : controllers) controller->start();
  }

  void end() {
    for (auto& controller : controllers) controller->stop();
    informers.stop();
    controllers.clear();
    recorders.stop();
  }
};

}  // namespace

struct Controllers::State : std::enable_shared_from_this<Controllers::State> {
  State(client::Client& api, runtime::Runtime& world, ControllersOptions what)
      : client(api), runtime(world), options(std::move(what)) {}

  client::Client& client;
  runtime::Runtime& runtime;
  const ControllersOptions options;
  Mutex mutex;
  // Held by stop() and by the start's task, so that one never overtakes the other.
  Mutex changing;
  std::uint64_t life DIBS_GUARDED_BY(mutex) = 0;  // odd while started
  std::shared_ptr<Running> running DIBS_GUARDED_BY(mutex);

  bool alive(std::uint64_t mine) {
    const MutexLock lock(mutex);
    return life == mine;
  }

  void attempt(std::uint64_t mine) {
    if (!alive(mine)) return;
    auto next = std::make_shared<Running>(client, runtime, options);
    if (auto known = next->discovery.refresh(client); !known) {
      log::debug("controllers wait for the server", {{"error", known.error()}});
      runtime.timers.after(kServerRetry,
                           [self = shared_from_this(), mine] { self->attempt(mine); });
      return;
    }
    const MutexLock one(changing);
    if (!alive(mine)) return;
    next->make_all();
    const MutexLock lock(mutex);
    running = std::move(next);
  }
};

Controllers::Controllers(client::Client& client, runtime::Runtime& runtime,
                         ControllersOptions options)
    : state_(std::make_shared<State>(client, runtime, std::move(options))) {}

Controllers::~Controllers() { stop(); }

void Controllers::start() {
  std::uint64_t mine = 0;
  {
    const MutexLock lock(state_->mutex);
    if (state_->life % 2 == 1) return;
    mine = ++state_->life;
  }
  state_->runtime.executor.post([state = state_, mine] { state->attempt(mine); });
}

void Controllers::stop() {
  std::shared_ptr<Running> ending;
  {
    const MutexLock lock(state_->mutex);
    if (state_->life % 2 == 0) return;
    ++state_->life;
  }
  const MutexLock one(state_->changing);
  {
    const MutexLock lock(state_->mutex);
    ending = std::move(state_->running);
    state_->running.reset();
  }
  if (ending) ending->end();
}

bool Controllers::ready() const {
  const MutexLock lock(state_->mutex);
  return state_->running != nullptr && state_->running->informers.synced();
}

struct LeadingControllers::State {
  State(client::Client& client, runtime::Runtime& runtime, ControllersOptions options,
        const std::string& identity)
      : controllers(client, runtime, std::move(options)),
        elector(client, runtime, {.name = "kube-controller-manager", .identity = identity},
                {.started = [this] { controllers.start(); },
                 .stopped = [this] { controllers.stop(); }}) {}

  Controllers controllers;
  client::LeaderElector elector;
};

LeadingControllers::LeadingControllers(client::Client& client, runtime::Runtime& runtime,
                                       ControllersOptions options, const std::string& identity)
    : state_(std::make_unique<State>(client, runtime, std::move(options), identity)) {}

LeadingControllers::~LeadingControllers() { stop(); }

void LeadingControllers::start() { state_->elector.start(); }

void LeadingControllers::stop() {
  state_->elector.stop();
  state_->controllers.stop();
}

}  // namespace dibs::controllers
