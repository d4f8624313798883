#pragma once
// What a pod takes of the node's disk: volumes, logs, and what its containers wrote over their
// images.
//
// Measuring walks through the files, by `du` at the lowest priority: it copes with trees of any
// depth and with files that come and go meanwhile. Blocks; whoever calls it decides how often.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "json/value.h"
#include "node/pods/node_facts.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct ContainerUsage {
  std::string name = {};
  std::uint64_t written = 0;  // over its image
  std::uint64_t logs = 0;
};

/// In bytes, or in files where they were counted.
struct PodUsage {
  std::map<std::string, std::uint64_t> empty_dirs = {};  // by volume, those on the disk
  /// Other volumes, and the files that containers can write without one: /etc/hosts and the like,
  /// termination messages.
  std::uint64_t other = 0;
  std::vector<ContainerUsage> containers = {};

  std::uint64_t total() const;
};

enum class UsageUnit : std::uint8_t { bytes, files };

/// `containers`: those of the pod that the runtime has, dead ones too. What is not there counts
/// nothing.
PodUsage measure_pod(const NodeFacts& facts, const std::string& log_root, const json::Value& pod,
                     const std::vector<ContainerStatus>& containers, ContainerRuntime& runtime,
                     UsageUnit unit);

/// Each folder with all that is in it on the same file system. What lies in several of them counts
/// for the first.
std::vector<std::uint64_t> folder_usage(const std::vector<std::string>& folders, UsageUnit unit);

}  // namespace dibs::node
