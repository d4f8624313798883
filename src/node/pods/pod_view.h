#pragma once
// What the runtime has of one pod: its sandboxes and containers, the newest first.
//
// A container of an older sandbox is history: it shows in lastState and in `logs --previous`, but
// what is to be done is decided by those of the newest sandbox.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct PodView {
  std::vector<SandboxStatus> sandboxes = {};
  std::map<std::string, std::vector<ContainerStatus>, std::less<>> containers = {};

  void add(SandboxStatus sandbox);
  /// Replaces the one with the same id.
  void add(ContainerStatus container);
  void remove_container(const std::string& id);
  void remove_sandbox(const std::string& id);

  /// The newest, or null.
  const SandboxStatus* sandbox() const;
  bool sandbox_ready() const;
  /// The newest container of that name, or null.
  const ContainerStatus* newest(std::string_view name) const;
  /// The one before it, or null.
  const ContainerStatus* previous(std::string_view name) const;
  /// The newest, if it is in the newest sandbox.
  const ContainerStatus* current(std::string_view name) const;
  bool any_running() const;
};

/// Created or running: something that can still do harm.
bool is_live(const ContainerStatus& container);

/// Everything the runtime has, by the pod's uid. Things without our labels are left out.
Result<std::map<std::string, PodView>> read_views(ContainerRuntime& runtime);
/// Asks again about everything of the view that can have changed.
void refresh(PodView& view, ContainerRuntime& runtime);

}  // namespace dibs::node
