#pragma once
// The container runtimes there are, and which of them a node gets.
//
// A runtime is one line in the table of pick_runtime.cc. Names such as `auto` stand for several:
// the first that works on this machine is taken, and the explanation says which and why, in one
// line for the user.

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/runtime/container_runtime.h"
#include "node/runtime/image_store.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct RuntimeOptions {
  std::string kind = "auto";  // a name of the table
  /// Where sandboxes and containers are kept: a folder of this node alone.
  std::string root = {};
  /// Spec directories, the most important last; empty: /etc/cdi and /var/run/cdi.
  std::vector<std::string> cdi_directories = {};
  /// The latest version of CDI files that is understood (cdi/cache.h); "": all.
  std::string cdi_newest = {};
  /// Where a path that CDI files name lies on the machine, as NodeDevicesOptions has it.
  std::function<std::string(const std::string& path)> host_path = {};
  /// The image store; nodes share it. Empty: default_image_folder().
  std::string images = {};
  ImageStoreOptions image_options = {};
  /// A folder. Nodes that have the same here are on one network: one bridge, one range of
  /// addresses, as long as the folder is there. Empty: `root`.
  std::string network = {};
  /// Folders of CNI configuration and plugins; empty: the usual ones.
  std::string cni_config = {};
  std::vector<std::string> cni_plugins = {};
  /// Names under which this program is a CNI plugin, and what it is told then, as NAME=value.
  std::vector<std::string> own_cni_plugins = {};
  std::vector<std::string> cni_environment = {};
  /// A log that reaches this before it is rotated starts anew.
  std::int64_t log_bound = 100 << 20;
  /// Tells one boot of the machine from another; empty: the machine's own.
  std::string boot_id = {};
  /// For simulated containers; see SimContainersOptions.
  std::atomic<std::uint32_t>* sim_addresses = nullptr;
};

struct PickedRuntime {
  std::unique_ptr<ContainerRuntime> runtime = {};
  std::string name = {};   // "runc", "crun" or "sim"
  bool simulated = false;  // no processes
  /// "runc 1.1.5: real containers (crun cannot work with this machine's cgroups)"
  std::string explanation = {};
};

struct RuntimeKind {
  std::string_view name;  // in --runtime
  std::string_view description;
  /// Names to try in this order, "" after the last; none for a runtime, which has what follows.
  std::array<std::string_view, 4> tries = {};
  bool simulated = false;
  /// What it needs and does not find on this machine; "": nothing.
  std::string (*missing)() = nullptr;
  Result<std::unique_ptr<ContainerRuntime>> (*open)(const RuntimeOptions& options,
                                                    runtime::Runtime& machine) = nullptr;
  /// For the user; `passed_over`: what is wrong with the one tried before, "" where there was none.
  std::string (*explain)(const std::string& passed_over) = nullptr;
};

std::span<const RuntimeKind> runtime_kinds();

/// An error says what the wanted runtime misses on this machine, or which names there are.
/// `machine` outlives the result.
Result<PickedRuntime> pick_runtime(const RuntimeOptions& options, runtime::Runtime& machine);

/// Whether a node with this `kind` would have real containers here; false too for a kind that is
/// unknown.
bool would_run_processes(std::string_view kind);

/// /var/lib/dibs/images, or a folder in the user's home where he is not root.
std::string default_image_folder();

}  // namespace dibs::node
