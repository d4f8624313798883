#include "cluster/world.h"

#include <memory>

#include "runtime/real_runtime.h"

namespace dibs::cluster {

World real_world() {
  struct Machine {
    runtime::RealRuntime server;
    runtime::RealRuntime control;
    runtime::RealRuntime machines;
  };
  auto machine = std::make_shared<Machine>();
  return {machine->server.runtime(), machine->control.runtime(), machine->machines.runtime(),
          runtime::system_files(), [machine] {
            // The server last: it answers the others. Answers to those that have ended are dropped.
            machine->machines.stop();
            machine->control.stop();
            machine->server.stop();
          }};
}

World sim_world(runtime::SimRuntime& sim, runtime::Files& files) {
  return {sim.runtime(),
          sim.runtime(),
          sim.runtime(),
          files,
          [&sim] { sim.run_until_idle(); },
          [&sim] { return sim.run_until_idle() > 0; }};
}

}  // namespace dibs::cluster
