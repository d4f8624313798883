#pragma once
// Amounts of a node's resources: what a pod asks for, what a node has, what is taken of it.
//
// cpu counts in thousandths, everything else in its unit. Resources beyond the four that every node
// has are scalars, sorted by name; nodes and pods have few of them.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/value.h"

namespace dibs::scheduler {

struct Resources {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
  std::int64_t storage = 0;  // ephemeral
  std::int64_t pods = 0;
  std::vector<std::pair<std::string, std::int64_t>> scalars;

  /// Of a ResourceList: {"cpu": "500m", …}. What cannot be read counts as 0; bounded.
  static Resources read(const json::Value& list);

  std::int64_t scalar(std::string_view name) const;
  /// Of any resource by its name.
  std::int64_t amount(std::string_view name) const;
  std::int64_t& scalar_slot(std::string_view name);
  void add(const Resources& other);
  void subtract(const Resources& other);
  /// No amount is more than any node has.
  void bound();
  /// Each amount becomes the larger of the two.
  void raise(const Resources& other);

  friend bool operator==(const Resources&, const Resources&) = default;
};

/// What the pod needs at its worst moment: containers and sidecars together, or an init container
/// beside the sidecars started before it; overhead on top; requests of the pod as a whole win.
Resources pod_requests(const json::Value& spec);

/// cpu and memory as scores count them: a container that asks for none counts as 100m and 200 MB.
struct ScoreRequests {
  std::int64_t cpu = 0;
  std::int64_t memory = 0;
};
ScoreRequests score_requests(const json::Value& spec);

/// "example.com/gpu": not of Kubernetes itself, not a quota name.
bool is_extended_resource(std::string_view name);

}  // namespace dibs::scheduler
