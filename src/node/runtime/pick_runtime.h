#pragma once
// Which container runtime a node gets.
//
// `auto` takes real containers where the machine can run them, else simulated ones; the explanation
// says which and why, in one line for the user.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct RuntimeOptions {
  /// auto, oci (runc or crun, whichever is faster here), runc, crun, sim.
  std::string kind = "auto";
  /// Where sandboxes and containers are kept: a folder of this node alone.
  std::string root = {};
  /// Spec directories, the most important last; empty: /etc/cdi and /var/run/cdi.
  std::vector<std::string> cdi_directories = {};
  /// The image store; nodes share it. Empty: default_image_folder().
  std::string images = {};
  /// Nodes with the same name are on one network: one bridge, one range of addresses. Empty: one
  /// made from `root`.
  std::string network = {};
  /// Folders of CNI configuration and plugins; empty: the usual ones.
  std::string cni_config = {};
  std::vector<std::string> cni_plugins = {};
  /// Tells one boot of the machine from another; empty: the machine's own.
  std::string boot_id = {};
  /// For simulated containers; see SimContainersOptions.
  std::atomic<std::uint32_t>* sim_addresses = nullptr;
};

struct PickedRuntime {
  std::unique_ptr<ContainerRuntime> runtime = {};
  std::string name = {};  // "runc", "crun" or "sim"
  /// "runc 1.1.5: real containers (crun cannot work with this machine's cgroups)"
  std::string explanation = {};
};

/// An error says what the wanted runtime misses on this machine. `machine` outlives the result.
Result<PickedRuntime> pick_runtime(const RuntimeOptions& options, runtime::Runtime& machine);

/// /var/lib/dibs/images, or a folder in the user's home where he is not root.
std::string default_image_folder();

}  // namespace dibs::node
