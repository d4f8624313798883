#pragma once
// Why a pod found no node, in the words of Kubernetes.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/filters.h"

namespace dibs::scheduler {

/// What the nodes said about one pod. "1 Insufficient cpu, 2 node(s) had untolerated taint(s)".
/// Counts while nodes are asked, and becomes text when somebody wants to read it.
class Reasons {
 public:
  explicit Reasons(const Pod& pod) : pod_(&pod) {}

  void add(const Refused& refused);
  void add(std::string_view reason, Plugin plugin, std::size_t nodes = 1) {
    add(reason, bit(plugin), nodes);
  }
  void add(std::string_view reason, PluginSet plugins, std::size_t nodes = 1);
  /// What this plugin watches for may help, too.
  void also(Plugin plugin) { plugins_ |= bit(plugin); }
  /// Nodes that have not the devices.
  void add_no_devices(std::size_t nodes = 1);
  /// Sorted as text, as upstream does, with the counts in front.
  std::string text() const;
  PluginSet plugins() const { return plugins_; }

 private:
  const Pod* pod_;
  std::array<std::size_t, kCauses> causes_{};
  std::array<std::size_t, kShort> lacks_{};
  std::vector<std::size_t> scalars_;  // by place among the pod's
  std::size_t no_devices_ = 0;
  std::map<std::string, std::size_t, std::less<>> others_;
  PluginSet plugins_ = 0;
};

/// "0/3 nodes are available: REASONS."
std::string unavailable_message(std::size_t nodes, const std::string& reasons);

/// Why a pod stays where it is, for its condition and an event.
struct Failure {
  bool error = false;  // SchedulerError, else Unschedulable
  bool waits = false;  // for others, even if it is called an error: time alone does not help
  std::string message;
  std::string nominated_node;
  PluginSet plugins = 0;
};

}  // namespace dibs::scheduler
