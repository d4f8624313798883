#pragma once
// PodDisruptionBudget: how many of its pods may be evicted right now.
//
// Decisions are functions: what the status of a budget says, from the pods it selects and the scale
// of their owners. disruption.cc finds those and writes it. The server takes from the budget when
// it evicts (server/eviction.cc) and notes the pod in status.disruptedPods, where it stays until it
// is seen going, or until it is clear that it will not go.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

/// Longer than this an eviction that was allowed does not take: the pod counts again.
inline constexpr Duration kDisruptionTimeout = std::chrono::minutes(2);

/// What has to be known of the owners of a budget's pods: only numbers of pods need no scale.
bool needs_scale(const json::Value& budget);

/// How many pods there should be, and how many of them healthy.
struct Demand {
  std::int64_t expected = 0;
  std::int64_t healthy = 0;
};

/// `expected`: the pods there are, or the sum of their owners' scales where needs_scale() says so.
/// Errors: a percentage that is none.
Result<Demand> demand_of(const json::Value& budget, std::int64_t expected);

/// status.disruptedPods, as far as they are still expected to go.
struct Disrupted {
  json::Value pods = json::Value::object();
  std::optional<Duration> recheck = {};
  std::vector<json::Value> stayed = {};  // were expected to go and did not
};
Disrupted still_disrupted(const json::Value& budget, const std::vector<json::Value>& pods,
                          Time now);

std::int64_t count_healthy(const std::vector<json::Value>& pods, const json::Value& disrupted);

json::Value budget_status(const json::Value& budget, const Demand& demand, std::int64_t healthy,
                          const json::Value& disrupted, Time now);
/// The status when the count failed: nothing may be evicted until it succeeds.
json::Value failed_budget_status(const json::Value& budget, const std::string& why, Time now);

/// How long to wait until the condition DisruptionTarget of a pod that stays after all is taken
/// back; nothing where there is none that ever is.
std::optional<Duration> until_disruption_is_stale(const json::Value& pod, Time now);

/// A selector in the words of events.
std::string selector_words(const json::Value& selector);

}  // namespace dibs::controllers
