#include "node/pods/probes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;
using Outcome = ProbeAnswer::Outcome;

/// Tries when the asking itself fails, before that counts as a failure.
constexpr int kTries = 3;

struct ProbeTimes {
  Duration delay{0};
  Duration period = std::chrono::seconds(10);
  Duration timeout = std::chrono::seconds(1);
  std::int64_t success_threshold = 1;
  std::int64_t failure_threshold = 3;
};

const char* field_of(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup:
      return "startupProbe";
    case ProbeKind::liveness:
      return "livenessProbe";
    case ProbeKind::readiness:
      return "readinessProbe";
  }
  return "";
}

ProbeTimes times_of(const Value& probe) {
  ProbeTimes out;
  const auto seconds = [&](const char* field, std::int64_t fallback) {
    return Duration(std::chrono::seconds(probe[field].as_int(fallback)));
  };
  out.delay = seconds("initialDelaySeconds", 0);
  out.period = std::max<Duration>(seconds("periodSeconds", 10), std::chrono::seconds(1));
  out.timeout = std::max<Duration>(seconds("timeoutSeconds", 1), std::chrono::seconds(1));
  out.success_threshold = probe["successThreshold"].as_int(1);
  out.failure_threshold = probe["failureThreshold"].as_int(3);
  return out;
}

constexpr std::array<double, 11> kBounds = {.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};

/// What became of a probe so far, over all instances of its container.
struct Tally {
  std::array<std::uint64_t, 3> results = {};  // successful, failed, unknown
  std::array<std::uint64_t, kBounds.size()> within = {};
  std::uint64_t asked = 0;
  double seconds = 0;

  void count(Outcome outcome, Duration took) {
    const bool good = outcome == Outcome::success || outcome == Outcome::warning;
    ++results[good ? 0 : outcome == Outcome::failure ? 1 : 2];
    const double time = std::chrono::duration<double>(took).count();
    for (std::size_t i = 0; i < kBounds.size(); ++i) within[i] += time <= kBounds[i] ? 1 : 0;
    ++asked;
    seconds += time;
  }
};

/// One probe of one container.
struct Probe {
  Value spec;  // null: the container has none
  ProbeTimes times;
  bool passed = false;  // the outcome that counts
  bool stopped = false;
  bool last = false;  // the last answer, and how often it came in a row
  std::int64_t run = 0;
  Tally tally;
  std::optional<runtime::TimerId> timer;

  bool exists() const { return spec.is_object(); }
};

struct Instance {
  ProbedContainer container;
  std::array<Probe, 3> probes;  // by ProbeKind
  bool terminating = false;
  bool gone = false;

  Probe& probe(ProbeKind kind) { return probes[static_cast<std::size_t>(kind)]; }
  const Probe& probe(ProbeKind kind) const { return probes[static_cast<std::size_t>(kind)]; }
  bool started() const {
    const Probe& startup = probe(ProbeKind::startup);
    return !startup.exists() || startup.passed;
  }
  bool ready() const {
    const Probe& readiness = probe(ProbeKind::readiness);
    return started() && (!readiness.exists() || readiness.passed);
  }
};

using InstancePtr = std::shared_ptr<Instance>;

/// From when on an answer may end the container. The kubelet's questions come at periods that begin
/// before the container does, so what has just started has up to one of them.
Time judged_from(const Instance& instance, ProbeKind kind) {
  const ProbeTimes& times = instance.probe(kind).times;
  const Duration wait =
      kind == ProbeKind::readiness ? times.delay : std::max(times.delay, times.period);
  return instance.container.started + wait;
}

}  // namespace

std::string_view probe_name(ProbeKind kind) {
  switch (kind) {
    case ProbeKind::startup:
      return "Startup";
    case ProbeKind::liveness:
      return "Liveness";
    case ProbeKind::readiness:
      return "Readiness";
  }
  return "";
}

struct Probes::State : std::enable_shared_from_this<Probes::State> {
  State(runtime::Runtime& world, Prober how, ProbeCallbacks whom)
      : runtime(world), prober(std::move(how)), callbacks(std::move(whom)) {}

  runtime::Runtime& runtime;
  const Prober prober;
  const ProbeCallbacks callbacks;
  client::Gate gate;

  mutable Mutex mutex;
  /// By pod uid, then by container name. What instances hold is changed under the mutex, too.
  std::map<std::string, std::map<std::string, InstancePtr, std::less<>>> pods
      DIBS_GUARDED_BY(mutex);

  InstancePtr find(const std::string& uid, std::string_view name) const DIBS_REQUIRES(mutex) {
    const auto pod = pods.find(uid);
    if (pod == pods.end()) return nullptr;
    const auto at = pod->second.find(name);
    return at == pod->second.end() ? nullptr : at->second;
  }

  void schedule(const InstancePtr& instance, ProbeKind kind, Duration wait) DIBS_REQUIRES(mutex) {
    Probe& probe = instance->probe(kind);
    if (!probe.exists() || probe.stopped || instance->gone || gate.closed()) return;
    const std::weak_ptr<State> weak = weak_from_this();
    probe.timer = runtime.timers.after(std::max(wait, Duration(0)), [weak, instance, kind] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      client::GateEntry inside(self->gate);
      if (inside) self->ask(instance, kind);
    });
  }

  void start(const InstancePtr& instance, ProbeKind kind) DIBS_REQUIRES(mutex) {
    // A startup probe is asked before it is judged: nobody waits for what has started already.
    const Time due = kind == ProbeKind::startup
                         ? instance->container.started + instance->probe(kind).times.delay
                         : judged_from(*instance, kind);
    schedule(instance, kind, due - runtime.clock.now());
  }

  void end(const InstancePtr& instance) DIBS_REQUIRES(mutex) {
    instance->gone = true;
    for (auto& probe : instance->probes) {
      if (probe.timer) runtime.timers.cancel(*probe.timer);
      probe.timer.reset();
    }
  }

  ProbeAnswer ask_with_retries(const ProbedContainer& container, const Probe& probe) {
    ProbeAnswer answer;
    for (int i = 0; i < kTries; ++i) {
      answer = prober(container, probe.spec, probe.times.timeout);
      if (answer.outcome != Outcome::unknown) break;
    }
    return answer;
  }

  void ask(const InstancePtr& instance, ProbeKind kind) {
    ProbedContainer container;
    Probe probe;
    Duration began{0};
    bool early = false;
    {
      const MutexLock lock(mutex);
      if (instance->gone || instance->probe(kind).stopped) return;
      container = instance->container;
      probe = instance->probe(kind);
      early = runtime.clock.now() < judged_from(*instance, kind);
      began = runtime.clock.steady();
    }
    const ProbeAnswer answer = ask_with_retries(container, probe);
    const bool good = answer.outcome == Outcome::success || answer.outcome == Outcome::warning;
    bool changed = false;
    bool failed = false;
    {
      const MutexLock lock(mutex);
      if (instance->gone || instance->probe(kind).stopped) return;
      if (early && !good) {
        return schedule(instance, kind, probe.times.period - (runtime.clock.steady() - began));
      }
      const bool was_ready = instance->ready();
      const bool was_started = instance->started();
      instance->probe(kind).tally.count(answer.outcome, runtime.clock.steady() - began);
      failed = count(instance, kind, good);
      changed = was_ready != instance->ready() || was_started != instance->started();
      if (!was_started && instance->started()) {
        start(instance, ProbeKind::liveness);
        start(instance, ProbeKind::readiness);
      }
      schedule(instance, kind, probe.times.period - (runtime.clock.steady() - began));
    }
    tell(container, kind, answer);
    if (failed && callbacks.failed) callbacks.failed(container, kind);
    if (changed && callbacks.changed) callbacks.changed(container.pod["metadata"]["uid"].str());
  }

  /// True when the container is to be killed.
  bool count(const InstancePtr& instance, ProbeKind kind, bool good) DIBS_REQUIRES(mutex) {
    Probe& probe = instance->probe(kind);
    probe.run = probe.run > 0 && probe.last == good ? probe.run + 1 : 1;
    probe.last = good;
    const auto needed = good ? probe.times.success_threshold : probe.times.failure_threshold;
    if (probe.run < needed) return false;
    probe.passed = good;
    if (good) {
      probe.stopped = kind == ProbeKind::startup;
      return false;
    }
    if (kind == ProbeKind::readiness) return false;
    probe.stopped = true;
    return !instance->terminating;
  }

  void tell(const ProbedContainer& container, ProbeKind kind, const ProbeAnswer& answer) {
    if (!callbacks.event || answer.outcome == Outcome::success) return;
    const auto name = probe_name(kind);
    switch (answer.outcome) {
      case Outcome::warning:
        return callbacks.event(container, "ProbeWarning",
                               cat(name, " probe warning: ", answer.output));
      case Outcome::failure:
        return callbacks.event(container, "Unhealthy", cat(name, " probe failed: ", answer.output));
      case Outcome::unknown:
        return callbacks.event(
            container, "Unhealthy",
            cat(name, " probe errored and resulted in unknown state: ", answer.output));
      case Outcome::success:
        return;
    }
  }
};

Probes::Probes(runtime::Runtime& runtime, Prober prober, ProbeCallbacks callbacks)
    : state_(std::make_shared<State>(runtime, std::move(prober), std::move(callbacks))) {}

Probes::~Probes() { stop(); }

std::string Probes::metrics() const {
  std::string total =
      "# HELP prober_probe_total [BETA] Cumulative number of a liveness, readiness or startup "
      "probe "
      "for a container by result.\n# TYPE prober_probe_total counter\n";
  std::string duration =
      "# HELP prober_probe_duration_seconds [ALPHA] Duration in seconds for a probe response.\n"
      "# TYPE prober_probe_duration_seconds histogram\n";
  constexpr std::array<const char*, 3> kResults = {"successful", "failed", "unknown"};
  const MutexLock lock(state_->mutex);
  for (const auto& [uid, containers] : state_->pods) {
    for (const auto& [name, instance] : containers) {
      const Value& metadata = instance->container.pod["metadata"];
      for (const auto kind : {ProbeKind::startup, ProbeKind::liveness, ProbeKind::readiness}) {
        const Tally& tally = instance->probe(kind).tally;
        if (tally.asked == 0) continue;
        const std::string labels = cat(
            "container=\"", name, "\",namespace=\"", metadata["namespace"].as_string(), "\",pod=\"",
            metadata["name"].as_string(), "\",probe_type=\"", probe_name(kind), '"');
        for (std::size_t i = 0; i < kResults.size(); ++i) {
          if (tally.results[i] == 0) continue;
          append(total, "prober_probe_total{", labels, ",pod_uid=\"", uid, "\",result=\"",
                 kResults[i], "\"} ", tally.results[i], '\n');
        }
        for (std::size_t i = 0; i < kBounds.size(); ++i) {
          append(duration, "prober_probe_duration_seconds_bucket{", labels, ",le=\"",
                 json::write(Value(kBounds[i])), "\"} ", tally.within[i], '\n');
        }
        append(duration, "prober_probe_duration_seconds_bucket{", labels, ",le=\"+Inf\"} ",
               tally.asked, "\nprober_probe_duration_seconds_sum{", labels, "} ",
               json::write(Value(tally.seconds)), "\nprober_probe_duration_seconds_count{", labels,
               "} ", tally.asked, '\n');
      }
    }
  }
  return total + duration;
}

void Probes::add(ProbedContainer container) {
  const std::string uid = container.pod["metadata"]["uid"].str();
  const std::string name = container.container["name"].str();
  const MutexLock lock(state_->mutex);
  if (const auto known = state_->find(uid, name); known != nullptr) {
    if (known->container.id == container.id) {
      known->container = std::move(container);
      return;
    }
    state_->end(known);
  }
  const auto before = state_->find(uid, name);
  auto instance = std::make_shared<Instance>();
  instance->container = std::move(container);
  for (const auto kind : {ProbeKind::startup, ProbeKind::liveness, ProbeKind::readiness}) {
    Probe& probe = instance->probe(kind);
    if (before != nullptr) probe.tally = before->probe(kind).tally;
    probe.spec = instance->container.container[field_of(kind)];
    probe.times = times_of(probe.spec);
    probe.passed = kind == ProbeKind::liveness;
  }
  if (instance->container.was_started) {
    Probe& startup = instance->probe(ProbeKind::startup);
    startup.passed = true;
    startup.stopped = true;
    instance->probe(ProbeKind::readiness).passed = instance->container.was_ready;
  }
  state_->pods[uid][name] = instance;
  if (!instance->started()) {
    state_->start(instance, ProbeKind::startup);
  } else {
    state_->start(instance, ProbeKind::liveness);
    state_->start(instance, ProbeKind::readiness);
  }
}

void Probes::remove(const std::string& pod_uid, std::string_view container) {
  const MutexLock lock(state_->mutex);
  const auto instance = state_->find(pod_uid, container);
  if (instance == nullptr) return;
  state_->end(instance);
  auto& pod = state_->pods[pod_uid];
  pod.erase(pod.find(container));
  if (pod.empty()) state_->pods.erase(pod_uid);
}

void Probes::pod_terminating(const std::string& pod_uid) {
  const MutexLock lock(state_->mutex);
  const auto pod = state_->pods.find(pod_uid);
  if (pod == state_->pods.end()) return;
  for (const auto& [name, instance] : pod->second) {
    instance->terminating = true;
    for (const auto kind : {ProbeKind::startup, ProbeKind::liveness}) {
      Probe& probe = instance->probe(kind);
      probe.stopped = true;
      if (probe.timer) state_->runtime.timers.cancel(*probe.timer);
    }
  }
}

void Probes::remove_pod(const std::string& pod_uid) {
  const MutexLock lock(state_->mutex);
  const auto pod = state_->pods.find(pod_uid);
  if (pod == state_->pods.end()) return;
  for (const auto& [name, instance] : pod->second) state_->end(instance);
  state_->pods.erase(pod);
}

bool Probes::started(const std::string& pod_uid, std::string_view container,
                     const std::string& id) const {
  const MutexLock lock(state_->mutex);
  const auto instance = state_->find(pod_uid, container);
  return instance != nullptr && instance->container.id == id && instance->started();
}

bool Probes::ready(const std::string& pod_uid, std::string_view container,
                   const std::string& id) const {
  const MutexLock lock(state_->mutex);
  const auto instance = state_->find(pod_uid, container);
  return instance != nullptr && instance->container.id == id && instance->ready();
}

void Probes::stop() {
  state_->gate.close();
  const MutexLock lock(state_->mutex);
  for (const auto& [uid, pod] : state_->pods) {
    for (const auto& [name, instance] : pod) state_->end(instance);
  }
  state_->pods.clear();
}

}  // namespace dibs::node
