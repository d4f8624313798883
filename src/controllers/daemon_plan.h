#pragma once
// The decisions of a DaemonSet: one pod on each node that its template fits, replaced node by node
// when the template changes.
//
// A function of the set, its pods, all nodes and the time.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

struct DaemonInput {
  json::Value set = {};
  std::vector<json::Value> pods = {};
  std::vector<json::Value> nodes = {};
  std::string hash = {};  // of the revision of today's template
  Time now = {};
};

struct DaemonPlan {
  std::vector<std::string> create = {};  // names of nodes
  std::vector<json::Value> remove = {};
  /// Pods among `remove` that ended by themselves, in words for events.
  struct Note {
    bool warning;
    std::string reason;
    std::string message;
  };
  std::vector<Note> notes = {};
  json::Value status = {};
  std::optional<Duration> again = {};
};

DaemonPlan plan_daemon_set(const DaemonInput& input);

/// Whether a pod of the set may start on a node, and whether one that is there may stay.
struct DaemonFit {
  bool start = false;
  bool stay = false;
};
DaemonFit daemon_fit(const json::Value& set, const json::Value& node);
/// Where a pod is, or is meant to be before it is scheduled.
std::string daemon_node(const json::Value& pod);
/// The pod for a node.
json::Value daemon_pod(const json::Value& set, const std::string& node, const std::string& hash);

}  // namespace dibs::controllers
