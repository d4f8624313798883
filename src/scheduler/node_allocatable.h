#pragma once
// Devices that are processor time, memory or huge pages of their node, or need some of it
// (nodeAllocatableResources of a slice's devices): what a pod with such claims takes of the node.
//
// One owner: the scheduler's serial executor.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "scheduler/cluster_state.h"

namespace dibs::scheduler {

class NodeAllocatable {
 public:
  void put_slice(const json::Value& slice);
  void remove_slice(const std::string& name);
  /// No device has any.
  bool empty() const { return by_device_.empty(); }
  /// One of the allocation's devices has.
  bool has_any(const json::Value& allocation) const;

  /// An entry of status.nodeAllocatableResourceClaimStatuses without its containers; null where the
  /// allocation has no such device. Errors: an allocation that does not say what it consumes.
  Result<json::Value> status_of(std::string_view name_space, std::string_view claim,
                                const json::Value& allocation) const;

 private:
  const json::Value* find(const json::Value& result) const;

  /// nodeAllocatableResources by "driver/pool/device", and by slice.
  std::unordered_map<std::string, std::map<std::string, json::Value>> by_device_;
  std::unordered_map<std::string, std::vector<std::string>> by_slice_;
};

/// The pod with these in its status.
json::Value with_claim_statuses(json::Value pod, const json::Value& statuses);

/// Why what the pod as a whole has does not cover its containers with their claims; "" if it does.
std::string uncovered(const json::Value& pod);

/// What the node has too little of for the pod, in the words of the filters.
std::vector<std::string> lacking(const json::Value& pod, const NodeInfo& node);

}  // namespace dibs::scheduler
