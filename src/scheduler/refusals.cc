#include "scheduler/refusals.h"

#include "base/strings.h"
#include "scheduler/cluster_state.h"

namespace dibs::scheduler {
namespace {

/// Distinct demands whose answers are kept; beyond that all are forgotten.
constexpr std::size_t kMostDemands = 256;

}  // namespace

bool Refusals::Demand::still(const NodeInfo& node) const {
  if (node.index >= answers_.size()) return false;
  const Answer& answer = answers_[node.index];
  return answer.node == &node && answer.all == *all_ && answer.given_in == *answer.state;
}

Refusals::Demand& Refusals::of(const std::string& demand) {
  if (demands_.size() >= kMostDemands && !demands_.contains(demand)) demands_.clear();
  Demand& made = demands_[demand];
  made.all_ = &all_;
  return made;
}

void Refusals::note(Demand& demand, const NodeInfo& node) {
  const std::uint64_t& state = states_[node.name];
  if (node.index >= demand.answers_.size()) demand.answers_.resize(node.index + 1);
  demand.answers_[node.index] = {&node, &state, state, all_};
}

void Refusals::slice_changed(const json::Value& slice) {
  const json::Value& spec = slice["spec"];
  const std::string node = spec["nodeName"].str();
  std::string pool = cat(spec["driver"].as_string(), '/', spec["pool"]["name"].as_string());
  const auto [found, fresh] = pools_.try_emplace(std::move(pool), node);
  if (!fresh && found->second != node) found->second.clear();
  if (found->second.empty()) {
    ++all_;
  } else {
    ++states_[node];
  }
}

void Refusals::allocation_changed(const json::Value& allocation) {
  for (const json::Value& result : allocation["devices"]["results"].items()) {
    const auto found =
        pools_.find(cat(result["driver"].as_string(), '/', result["pool"].as_string()));
    if (found == pools_.end() || found->second.empty()) {
      ++all_;
    } else {
      ++states_[found->second];
    }
  }
}

void Refusals::node_changed(std::string_view name) { ++states_[std::string(name)]; }

}  // namespace dibs::scheduler
