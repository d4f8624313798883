#include "cluster/world.h"

#include <memory>

#include "runtime/real_runtime.h"
#include "server/webhook_transport.h"

namespace dibs::cluster {

namespace {

/// Requests that wait for webhooks leave as many threads to all others as there were without them.
runtime::RealRuntimeOptions server_threads() {
  runtime::RealRuntimeOptions options;
  options.max_threads += 3 * server::kMostWebhookCalls;
  return options;
}

}  // namespace

World real_world() {
  struct Machine {
    runtime::RealRuntime server{server_threads()};
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
