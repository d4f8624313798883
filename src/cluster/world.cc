#include "cluster/world.h"

#include <memory>

#include "runtime/real_runtime.h"

namespace dibs::cluster {

World real_world() {
  struct Machine {
    std::unique_ptr<runtime::RealRuntime> runtime = std::make_unique<runtime::RealRuntime>();
  };
  auto machine = std::make_shared<Machine>();
  return {machine->runtime->runtime(), runtime::system_files(),
          [machine] { machine->runtime.reset(); }};
}

World sim_world(runtime::SimRuntime& sim, runtime::Files& files) {
  return {sim.runtime(), files, [&sim] { sim.run_until_idle(); },
          [&sim] { return sim.run_until_idle() > 0; }};
}

}  // namespace dibs::cluster
