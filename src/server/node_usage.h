#pragma once
// What nodes and their containers use of processor and memory, measured in the background.
//
// While somebody asks, every node is looked at each `resolution`: its /metrics/resource, which a
// kubelet has as well, is read, a few nodes at a time, without a thread. A rate needs two looks, so
// the second comes sooner than the others. When nobody has asked for a while the looks end, and
// what they found is forgotten. Asking never waits for a node.
//
// A node tells of itself alone: what it says of a pod counts where the pod is its own.
//
// Thread-safe. stop() ends it; nothing of it runs afterwards.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "runtime/runtime.h"

namespace dibs::server {

/// One counter of processor time with what of memory was used then.
struct UsageSample {
  Time at = {};
  Time started = {};  // of a container; 0: not told
  std::uint64_t cpu_nanos = 0;
  std::uint64_t memory = 0;
};

/// What one look at a node found.
struct NodeSamples {
  std::optional<UsageSample> node = {};
  /// By "namespace/pod" and container.
  std::map<std::string, std::map<std::string, UsageSample, std::less<>>, std::less<>> pods = {};
};

/// The text of /metrics/resource; lines of other families, and broken ones, are passed over.
/// `now`: of samples that have no time of their own.
NodeSamples read_resource_metrics(std::string_view text, Time now);

/// Over a span of time up to `at`.
struct UsageRate {
  Time at = {};
  Duration window{0};
  std::uint64_t nano_cores = 0;
  std::uint64_t memory = 0;
};

class NodeUsage {
 public:
  using Fetched = std::function<void(Result<std::string> text)>;
  struct Sources {
    std::function<std::vector<std::string>()> nodes;
    /// Tells `done` once, from any thread.
    std::function<void(const std::string& node, Fetched done)> fetch;
  };

  NodeUsage(runtime::Runtime& runtime, Duration resolution, Sources sources);
  ~NodeUsage();
  void stop();

  /// Nothing while it is not known yet. Both keep the looks going.
  std::optional<UsageRate> node(const std::string& name);
  std::map<std::string, UsageRate> containers(const std::string& node, std::string_view name_space,
                                              std::string_view pod);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::server
