#include "driver/leader.h"

#include "base/mutex.h"
#include "client/leader_election.h"

namespace dibs::driver {

struct Leader::State {
  Begin make;
  mutable Mutex mutex;
  std::shared_ptr<void> running DIBS_GUARDED_BY(mutex);
  std::unique_ptr<client::LeaderElector> elector;

  void begin() {
    auto begun = make();
    const MutexLock lock(mutex);
    running = std::move(begun);
  }

  void end() {
    std::shared_ptr<void> ended;
    const MutexLock lock(mutex);
    ended.swap(running);
  }
};

Leader::Leader() : state_(std::make_unique<State>()) {}

Leader::~Leader() { stop(); }

std::unique_ptr<Leader> Leader::start(const Environment& environment,
                                      const ControllerOptions& options, Begin begin) {
  std::unique_ptr<Leader> leader(new Leader());
  State& state = *leader->state_;
  state.make = std::move(begin);
  if (!options.leader_election) {
    state.begin();
    return leader;
  }
  client::LeaderElectionOptions election;
  election.name_space = options.lease_namespace;
  election.name = options.lease_name.empty() ? options.driver_name : options.lease_name;
  election.identity =
      options.identity.empty() ? runtime::make_uuid(environment.runtime.random) : options.identity;
  state.elector = std::make_unique<client::LeaderElector>(
      environment.api, environment.runtime, std::move(election),
      client::LeaderCallbacks{.started = [&state] { state.begin(); },
                              .stopped = [&state] { state.end(); }});
  state.elector->start();
  return leader;
}

bool Leader::is_so(const std::function<bool(void* running)>& question) const {
  const MutexLock lock(state_->mutex);
  return state_->running && question(state_->running.get());
}

void Leader::stop() {
  if (state_->elector) state_->elector->stop();
  state_->end();
}

}  // namespace dibs::driver
