#pragma once
// The decisions of a StatefulSet: pods with names and an order.
//
// Pods are made from the lowest ordinal up and removed from the highest down, one at a time and
// each only when those before it are ready (OrderedReady), or all at once (Parallel). An update
// goes from the highest ordinal down to the partition. A function of the set, its pods and
// revisions, the time.

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

struct StatefulInput {
  json::Value set = {};
  std::vector<json::Value> pods = {};
  json::Value current_revision = {};  // what pods had before the update
  json::Value update_revision = {};   // of the template as it is now
  Time now = {};
};

struct StatefulPod {
  json::Value pod = {};
  std::vector<json::Value> volume_claims = {};
};

struct StatefulPlan {
  std::vector<StatefulPod> create = {};
  std::vector<json::Value> remove = {};
  /// Those of `remove` that are only replaced because they ended.
  std::vector<std::string> ended = {};
  json::Value status = {};
  std::optional<Duration> again = {};
};

StatefulPlan plan_stateful_set(const StatefulInput& input);

/// The ordinal in "<set>-<ordinal>"; -1 for a pod of another name.
std::int64_t ordinal_of(const json::Value& set, const json::Value& pod);
/// The pod of that ordinal by the template of a revision, with the claims for its volumes.
StatefulPod stateful_pod(const json::Value& set, const json::Value& revision, std::int64_t ordinal);

}  // namespace dibs::controllers
