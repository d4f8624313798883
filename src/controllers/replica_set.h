#pragma once
// ReplicaSet (and ReplicationController): a number of pods of one template.
//
// Decisions are functions: how many pods to create, which ones to remove, and what the status says.
// make_replica_set_controller() in workload.h carries them out.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

struct ReplicaPlan {
  int create = 0;
  std::vector<json::Value> remove = {};
};

/// `active`: the set's pods that count. `related`: active pods of sets with the same owner; a node
/// that has many of them loses one first.
ReplicaPlan plan_replicas(const json::Value& set, const std::vector<json::Value>& active,
                          const std::vector<json::Value>& related, Time now);

/// The pods in the order in which they are given up: not placed, not running, not ready, cheap,
/// crowded, young.
std::vector<json::Value> removal_order(const std::vector<json::Value>& active,
                                       const std::vector<json::Value>& related, Time now);

/// A failure to create or remove pods, as the condition tells it.
struct ReplicaFailure {
  std::string reason;  // FailedCreate, FailedDelete
  std::string message;
};

json::Value replica_status(const json::Value& set, const std::vector<json::Value>& pods,
                           const std::optional<ReplicaFailure>& failure, Time now);

}  // namespace dibs::controllers
