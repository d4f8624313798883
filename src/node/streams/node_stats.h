#pragma once
// What a node, its pods and containers take of the machine, for those who measure kubelets:
// /stats/summary, /metrics/resource and /metrics/cadvisor, each with the kubelet's names.
//
// Asked of the kernel at every look; all that is remembered are the last counters of processor
// time, so that the next look can tell how fast they grow. Thread-safe; blocks.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct FileSystemUsage {
  std::uint64_t capacity = 0;
  std::uint64_t available = 0;
  std::uint64_t files = 0;
  std::uint64_t free_files = 0;
};

/// What a pod has on the disk.
struct PodStorage {
  struct Container {
    std::string name = {};
    std::uint64_t written = 0;
    std::uint64_t logs = 0;
  };
  std::vector<Container> containers = {};
  std::uint64_t total = 0;
};

/// The machine as a whole.
struct MachineUsage {
  Usage usage = {};
  std::uint64_t memory_total = 0;
  std::uint64_t memory_available = 0;
  std::uint64_t most_processes = 0;
  std::vector<InterfaceUsage> interfaces = {};
};
/// Reads /proc.
MachineUsage read_machine_usage();

struct NodeStatsSources {
  std::string node_name = {};
  Time started = {};
  std::function<std::vector<json::Value>()> pods = {};
  std::function<MachineUsage()> machine = read_machine_usage;
  /// Of the disk that pods write to; nothing: not told.
  std::function<std::optional<FileSystemUsage>()> disk = {};
  /// May be a minute old.
  std::function<std::optional<PodStorage>(const json::Value& pod)> storage = {};
};

class NodeStats {
 public:
  NodeStats(ContainerRuntime& containers, NodeStatsSources sources);

  /// `few`: processor time and memory alone.
  json::Value summary(Time now, bool few);
  std::string resource_metrics(Time now);
  std::string cadvisor_metrics(Time now);

 private:
  struct Container;
  struct Pod;
  std::vector<Pod> look();
  json::Value cpu_of(const std::string& id, const Usage& usage, Time now);
  json::Value pod_summary(const Pod& pod, Time now, bool few);
  json::Value disk_of(Time now) const;

  ContainerRuntime& containers_;
  const NodeStatsSources sources_;
  struct Sample {
    Time at = {};
    std::uint64_t cpu_nanos = 0;
  };
  Mutex mutex_;
  std::map<std::string, Sample> samples_ DIBS_GUARDED_BY(mutex_);  // by id; "": the machine
};

}  // namespace dibs::node
