#include "client/leader_election.h"

#include <optional>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "client/gate.h"
#include "client/serial.h"

namespace dibs::client {
namespace {

const Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
// Candidates wait up to so much longer than the retry period.
constexpr int kJitterPercent = 120;
constexpr int kReleaseTries = 3;

}  // namespace

Result<> LeaderElectionOptions::check() const {
  const auto text = [](Duration span) { return format_duration(span); };
  if (name.empty() || name_space.empty()) {
    return Error::bad_request("the lease of the leader must have a name and a namespace");
  }
  if (lease_duration < std::chrono::seconds(1) || renew_deadline <= Duration(0) ||
      retry_period <= Duration(0)) {
    return Error::bad_request(
        "renew deadline and retry period must be greater than zero, the lease duration at least "
        "1s");
  }
  if (lease_duration <= renew_deadline) {
    return Error::bad_request(cat("the lease duration, ", text(lease_duration),
                                  ", must be greater than the renew deadline, ",
                                  text(renew_deadline)));
  }
  if (renew_deadline <= retry_period * kJitterPercent / 100) {
    return Error::bad_request(cat("the renew deadline, ", text(renew_deadline),
                                  ", must be greater than 1.2 times the retry period, ",
                                  text(retry_period)));
  }
  return success();
}

struct LeaderElector::State : std::enable_shared_from_this<LeaderElector::State> {
  State(Client& api, runtime::Runtime& world, LeaderElectionOptions how, LeaderCallbacks whom)
      : client(api),
        runtime(world),
        options(std::move(how)),
        callbacks(std::move(whom)),
        serial(std::make_shared<Serial>(world.executor)) {
    tell(false);
  }

  Client& client;
  runtime::Runtime& runtime;
  const LeaderElectionOptions options;
  const LeaderCallbacks callbacks;
  const std::shared_ptr<Serial> serial;
  Gate gate;

  mutable Mutex mutex;
  bool leading DIBS_GUARDED_BY(mutex) = false;
  std::string leader DIBS_GUARDED_BY(mutex);
  std::optional<runtime::TimerId> retry_timer DIBS_GUARDED_BY(mutex);
  std::optional<runtime::TimerId> deadline_timer DIBS_GUARDED_BY(mutex);
  json::Value lease DIBS_GUARDED_BY(mutex);  // as last seen

  // On `serial` only.
  Duration observed{0};       // when the lease was last seen to change
  std::string observed_spec;  // holder and renewal of that moment
  std::uint64_t term = 0;     // of the deadline timer
  // When the last write was sent: others may count from then on, so this one does too.
  Duration sent{0};

  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      GateEntry inside(self->gate);
      if (inside) task(*self);
    });
  }

  void call(Request request, std::function<void(State&, const Result<json::Value>&)> then) {
    client.call(std::move(request), [self = shared_from_this(),
                                     then = std::move(then)](Result<json::Value> answer) {
      self->post([then, answer = std::move(answer)](State& state) { then(state, answer); });
    });
  }

  void tell(bool leads) const {
    if (options.metrics == nullptr) return;
    options.metrics
        ->gauge("leader_election_master_status", "1 while this process leads, by lease.", {"name"})
        .with({options.name})
        .set(leads ? 1 : 0);
  }

  bool is_leading() const {
    const MutexLock lock(mutex);
    return leading;
  }

  json::Value known_lease() const {
    const MutexLock lock(mutex);
    return lease;
  }

  void attempt() {
    // A leader's own lease needs no reading first: a conflict tells when it was wrong about it.
    if (is_leading()) return write(known_lease());
    call(make_request("GET", path_of(kLeases, options.name_space, options.name)),
         [](State& state, const Result<json::Value>& answer) { state.on_read(answer); });
  }

  void on_read(const Result<json::Value>& answer) {
    if (!answer) {
      if (answer.error().code() == Code::not_found) return create();
      return again();
    }
    observe(*answer);
    const json::Value& spec = (*answer)["spec"];
    const auto holder = spec["holderIdentity"].as_string();
    if (!holder.empty() && holder != options.identity) {
      const Duration held = std::chrono::seconds(
          spec["leaseDurationSeconds"].as_int(options.lease_duration / std::chrono::seconds(1)));
      if (runtime.clock.steady() - observed < held) return again();
    }
    write(*answer);
  }

  json::Value spec_for(const json::Value& before) const {
    const std::string now = format_rfc3339_micro(runtime.clock.now());
    json::Value spec = before;
    const bool mine = before["holderIdentity"].as_string() == options.identity;
    spec.set("holderIdentity", options.identity);
    spec.set("leaseDurationSeconds",
             static_cast<long>(options.lease_duration / std::chrono::seconds(1)));
    if (!mine || !before["acquireTime"].is_string()) spec.set("acquireTime", now);
    spec.set("renewTime", now);
    spec.set("leaseTransitions", static_cast<long>(before["leaseTransitions"].as_int() +
                                                   (mine || before.is_null() ? 0 : 1)));
    return spec;
  }

  void create() {
    sent = runtime.clock.steady();
    const auto object = json::Value::object(
        {{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata",
          json::Value::object({{"name", options.name}, {"namespace", options.name_space}})},
         {"spec", spec_for(json::Value())}});
    call(create_request(kLeases, options.name_space, object),
         [](State& state, const Result<json::Value>& answer) { state.on_written(answer); });
  }

  void write(json::Value object) {
    sent = runtime.clock.steady();
    object.set("spec", spec_for(object["spec"]));
    call(update_request(kLeases, options.name_space, object),
         [](State& state, const Result<json::Value>& answer) { state.on_written(answer); });
  }

  void on_written(const Result<json::Value>& answer) {
    if (!answer) {
      // Somebody else wrote it: look who. Until then this one still leads, up to its deadline.
      if (answer.error().code() == Code::conflict && is_leading()) {
        return call(
            make_request("GET", path_of(kLeases, options.name_space, options.name)),
            [](State& state, const Result<json::Value>& read) {
              if (read) {
                state.observe(*read);
                if ((*read)["spec"]["holderIdentity"].as_string() != state.options.identity) {
                  state.lose();
                }
              }
              state.again();
            });
      }
      return again();
    }
    observe(*answer);
    const Duration left = options.renew_deadline - (runtime.clock.steady() - sent);
    if (left.count() <= 0) return again();
    arm_deadline(left);
    bool first = false;
    {
      const MutexLock lock(mutex);
      first = !std::exchange(leading, true);
    }
    if (first) tell(true);
    if (first && callbacks.started) callbacks.started();
    again();
  }

  void observe(const json::Value& now) {
    const json::Value& spec = now["spec"];
    std::string holder = spec["holderIdentity"].str();
    std::string seen = holder + "\n" + spec["renewTime"].str();
    if (seen != observed_spec) {
      observed_spec = std::move(seen);
      observed = runtime.clock.steady();
    }
    bool changed = false;
    {
      const MutexLock lock(mutex);
      lease = now;
      changed = leader != holder;
      leader = holder;
    }
    if (!changed || holder.empty()) return;
    log::info("leader", {{"lease", cat(options.name_space, "/", options.name)},
                         {"is", holder},
                         {"this process", holder == options.identity}});
    if (callbacks.new_leader) callbacks.new_leader(holder);
  }

  void again() {
    if (gate.closed()) return;
    // Candidates that lost at the same moment do not all come back at the same moment.
    Duration wait = options.retry_period;
    if (!is_leading()) {
      wait += Duration(static_cast<std::int64_t>(runtime.random.below(
          static_cast<std::uint64_t>(options.retry_period.count()) * kJitterPercent / 100 + 1)));
    }
    const std::weak_ptr<State> weak = weak_from_this();
    const auto id = runtime.timers.after(wait, [weak] {
      if (const auto self = weak.lock()) self->post([](State& state) { state.attempt(); });
    });
    const MutexLock lock(mutex);
    retry_timer = id;
  }

  void arm_deadline(Duration left) {
    if (gate.closed()) return;
    const std::uint64_t mine = ++term;
    const std::weak_ptr<State> weak = weak_from_this();
    const MutexLock lock(mutex);
    if (deadline_timer) runtime.timers.cancel(*deadline_timer);
    deadline_timer = runtime.timers.after(left, [weak, mine] {
      if (const auto self = weak.lock()) {
        self->post([mine](State& state) {
          if (mine == state.term) state.lose();
        });
      }
    });
  }

  void lose() {
    ++term;
    {
      const MutexLock lock(mutex);
      if (!std::exchange(leading, false)) return;
    }
    tell(false);
    log::warn("leads no more", {{"lease", cat(options.name_space, "/", options.name)}});
    if (callbacks.stopped) callbacks.stopped();
  }

  /// What is known of the lease may be old: a renewal whose answer nobody reads any more.
  void release() {
    for (int tries = 0; tries < kReleaseTries; ++tries) {
      auto lease =
          client.call(make_request("GET", path_of(kLeases, options.name_space, options.name)));
      if (!lease || (*lease)["spec"]["holderIdentity"].as_string() != options.identity) return;
      json::Value spec = (*lease)["spec"];
      const std::string now = format_rfc3339_micro(runtime.clock.now());
      spec.set("holderIdentity", "");
      spec.set("leaseDurationSeconds", 1);
      spec.set("renewTime", now);
      spec.set("acquireTime", now);
      lease->set("spec", std::move(spec));
      const auto written = client.call(update_request(kLeases, options.name_space, *lease));
      // One that cannot be given back expires.
      if (written || written.error().code() != Code::conflict) return;
    }
  }
};

LeaderElector::LeaderElector(Client& client, runtime::Runtime& runtime,
                             LeaderElectionOptions options, LeaderCallbacks callbacks)
    : state_(std::make_shared<State>(client, runtime, std::move(options), std::move(callbacks))) {}

LeaderElector::~LeaderElector() { stop(); }

void LeaderElector::start() {
  state_->post([](State& state) { state.attempt(); });
}

void LeaderElector::stop() {
  state_->gate.close();
  bool led = false;
  {
    const MutexLock lock(state_->mutex);
    if (state_->retry_timer) state_->runtime.timers.cancel(*state_->retry_timer);
    if (state_->deadline_timer) state_->runtime.timers.cancel(*state_->deadline_timer);
    led = std::exchange(state_->leading, false);
  }
  if (!led) return;
  state_->tell(false);
  if (state_->callbacks.stopped) state_->callbacks.stopped();
  if (state_->options.release_on_stop) state_->release();
}

bool LeaderElector::leading() const { return state_->is_leading(); }

std::string LeaderElector::leader() const {
  const MutexLock lock(state_->mutex);
  return state_->leader;
}

}  // namespace dibs::client
