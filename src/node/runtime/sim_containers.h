#pragma once
// Containers without processes: what a node says of them is as if they ran.
//
// A container does what its command line seems to say (sim_script.h), or what annotations of its
// pod demand, for all its containers or, with ".NAME" appended, for one:
//
//     dibs.dev/sim-run: 5s            it ends by itself after this time; "forever": it does not
//     dibs.dev/sim-exit: "1"          with this exit code
//     dibs.dev/sim-start-error: text  starting it fails
//
// Its log has the text that `echo` and the like would write. exec runs the same few commands, with
// the container's environment, CDI edits included. Images are there unless their registry's name
// ends in ".invalid". Nothing blocks and everything happens by the runtime's timers, so a node runs
// in one thread under virtual time; a pod costs 3.4 KiB.
//
// Thread-safe. Containers end with the object.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct SimContainersOptions {
  /// Empty: /etc/cdi and /var/run/cdi.
  std::vector<std::string> cdi_directories = {};
  /// The latest version of CDI files that is understood (cdi/cache.h); "": all.
  std::string cdi_newest = {};
  std::string images = {};  // not looked at: all images are there
  /// Log files where the sandbox has a log folder.
  bool write_logs = true;
  /// How many addresses were given: nodes that share it give none twice. Null: its own.
  std::atomic<std::uint32_t>* addresses = nullptr;
};

std::unique_ptr<ContainerRuntime> make_sim_containers(const SimContainersOptions& options,
                                                      runtime::Runtime& machine);

}  // namespace dibs::node
