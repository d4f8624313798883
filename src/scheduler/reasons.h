#pragma once
// Why a pod found no node, in the words of Kubernetes.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/filters.h"

namespace dibs::scheduler {

/// What the nodes said. "1 Insufficient cpu, 2 node(s) had untolerated taint(s)".
class Reasons {
 public:
  void add(const Refused& refused);
  void add(std::string reason, Plugin plugin);
  /// Sorted as text, as upstream does, with the counts in front.
  std::string text() const;
  bool empty() const { return counts_.empty(); }
  PluginSet plugins() const { return plugins_; }

 private:
  std::map<std::string, std::size_t> counts_;
  PluginSet plugins_ = 0;
};

/// "0/3 nodes are available: REASONS."
std::string unavailable_message(std::size_t nodes, const std::string& reasons);

/// Why a pod stays where it is, for its condition and an event.
struct Failure {
  bool error = false;  // SchedulerError, else Unschedulable
  std::string message;
  std::string nominated_node;
  PluginSet plugins = 0;
};

}  // namespace dibs::scheduler
