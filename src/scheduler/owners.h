#pragma once
// What makes pods one of a kind without their saying so: the Services that select them and the
// controller that owns them. Pods without spread constraints of their own are spread by it, as
// their profile says.
//
// Owner: that of the state.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "scheduler/pod.h"
#include "scheduler/profiles.h"

namespace dibs::scheduler {

class Owners {
 public:
  /// Of a Service, a ReplicationController, a ReplicaSet or a StatefulSet.
  void put(const json::Value& object);
  void remove(const json::Value& object);

  /// The pod's own constraints; where it has none those of its profile, with the selector of its
  /// kind, made in `room`. None for a pod that nothing selects and no known controller owns.
  const std::vector<SpreadConstraint>& spread_of(const Pod& pod, const Profile& profile,
                                                 std::vector<SpreadConstraint>& room) const;

 private:
  std::vector<api::LabelRequirement> selector_of(const Pod& pod) const;

  std::unordered_map<std::string, std::map<std::string, json::Value>> services_;  // by namespace
  std::unordered_map<std::string, json::Value> controllers_;  // selectors, by kind and key
};

}  // namespace dibs::scheduler
