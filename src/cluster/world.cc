#include "cluster/world.h"

#include <memory>

#include "runtime/real_runtime.h"

namespace dibs::cluster {

World real_world() {
  struct Machine {
    runtime::RealRuntime server;
    runtime::RealRuntime control;
    runtime::RealRuntime machines;
    // Each waits for somebody who may never answer, and does nothing else.
    runtime::RealRuntime relays{{.max_threads = 2048}};
  };
  auto machine = std::make_shared<Machine>();
  return {machine->server.runtime(),
          machine->control.runtime(),
          machine->machines.runtime(),
          machine->relays.runtime(),
          runtime::system_files(),
          [machine] {
            // The server last: it answers the others. Answers to those that have ended are dropped.
            machine->relays.stop();
            machine->machines.stop();
            machine->control.stop();
            machine->server.stop();
          }};
}

World sim_world(runtime::SimRuntime& sim, runtime::Files& files) {
  return {sim.runtime(),
          sim.runtime(),
          sim.runtime(),
          sim.runtime(),
          files,
          [&sim] { sim.run_until_idle(); },
          [&sim] { return sim.run_until_idle() > 0; }};
}

}  // namespace dibs::cluster
