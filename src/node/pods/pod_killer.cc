#include "node/pods/pod_killer.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/mutex.h"
#include "base/span.h"
#include "client/gate.h"
#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

// Whatever a hook took, a process gets this long to hear its signal.
constexpr Duration kLeastGrace = std::chrono::seconds(2);
constexpr Duration kTryAgain = std::chrono::seconds(1);
// Less than this is not worth another task.
constexpr Duration kHurry = std::chrono::milliseconds(500);

}  // namespace

struct PodKiller::State : std::enable_shared_from_this<PodKiller::State> {
  State(runtime::Runtime& world, ContainerRuntime& all, Prober ask, PodEvents& tell,
        std::function<void(const std::string&)> when_ended)
      : runtime(world),
        containers(all),
        prober(std::move(ask)),
        events(tell),
        ended(std::move(when_ended)) {}

  struct Entry {
    Duration deadline{0};  // on the steady clock
  };

  runtime::Runtime& runtime;
  ContainerRuntime& containers;
  const Prober prober;
  PodEvents& events;
  const std::function<void(const std::string&)> ended;
  client::Gate gate;
  mutable Mutex mutex;
  std::map<std::string, Entry> entries DIBS_GUARDED_BY(mutex);

  void kill(KillOrder order) {
    const Duration deadline = runtime.clock.steady() + order.grace;
    bool first = false;
    {
      const MutexLock lock(mutex);
      auto [entry, fresh] = entries.try_emplace(order.container.id);
      if (!fresh && deadline + kHurry > entry->second.deadline) return;
      entry->second.deadline = deadline;
      first = fresh;
    }
    if (first && !order.note.empty()) {
      events.normal(order.container.pod, order.container.container["name"].as_string(), "Killing",
                    order.note);
    }
    const bool hook = first && order.with_hook;
    post([self = shared_from_this(), order = std::move(order), hook] {
      if (hook) {
        self->run_hook(order);
      } else {
        self->stop_container(order, order.grace);
      }
    });
  }

  void post(std::function<void()> task) {
    runtime.executor.post([self = shared_from_this(), task = std::move(task)] {
      client::GateEntry inside(self->gate);
      if (inside) task();
    });
  }

  void run_hook(const KillOrder& order) {
    const json::Value& hook = order.container.container["lifecycle"]["preStop"];
    if (hook.is_null() || hook.empty() || order.grace.count() <= 0) {
      return stop_container(order, order.grace);
    }
    const Duration began = runtime.clock.steady();
    if (const json::Value& sleep = hook["sleep"]; sleep.is_object()) {
      const Duration length =
          std::min<Duration>(seconds_of(sleep["seconds"].as_int()), order.grace);
      const std::weak_ptr<State> weak = weak_from_this();
      runtime.timers.after(length, [weak, order, length] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        client::GateEntry inside(self->gate);
        if (inside) self->stop_container(order, left(order.grace, length));
      });
      return;
    }
    const ProbeAnswer answer = prober(order.container, hook, order.grace);
    if (answer.outcome == ProbeAnswer::Outcome::failure ||
        answer.outcome == ProbeAnswer::Outcome::unknown) {
      events.warning(order.container.pod, order.container.container["name"].as_string(),
                     "FailedPreStopHook", "PreStopHook failed");
    }
    stop_container(order, left(order.grace, runtime.clock.steady() - began));
  }

  static Duration left(Duration grace, Duration used) {
    return std::max(grace - used, std::min(grace, kLeastGrace));
  }

  void stop_container(const KillOrder& order, Duration grace) {
    containers.stop_container(
        order.container.id, grace, [self = shared_from_this(), order](const Result<>& stopped) {
          self->post([self, order, stopped] { self->stopped(order, stopped); });
        });
  }

  void stopped(const KillOrder& order, const Result<>& stopped) {
    if (!stopped && stopped.error().code() != Code::not_found) {
      log::warn("container cannot be stopped",
                {{"container", order.container.id}, {"error", stopped.error().message()}});
      const std::weak_ptr<State> weak = weak_from_this();
      runtime.timers.after(kTryAgain, [weak, order] {
        if (const auto self = weak.lock()) self->finish(order);
      });
      return;
    }
    finish(order);
  }

  void finish(const KillOrder& order) {
    client::GateEntry inside(gate);
    if (!inside) return;
    {
      const MutexLock lock(mutex);
      const auto found = entries.find(order.container.id);
      if (found != entries.end()) entries.erase(found);
    }
    ended(std::string(uid_of(order.container.pod)));
  }
};

PodKiller::PodKiller(runtime::Runtime& runtime, ContainerRuntime& containers, Prober prober,
                     PodEvents& events, std::function<void(const std::string&)> ended)
    : state_(std::make_shared<State>(runtime, containers, std::move(prober), events,
                                     std::move(ended))) {}
PodKiller::~PodKiller() { stop(); }
void PodKiller::kill(KillOrder order) { state_->kill(std::move(order)); }
void PodKiller::stop() { state_->gate.close(); }

}  // namespace dibs::node
