#include "scheduler/refusals.h"

#include "base/strings.h"
#include "scheduler/cluster_state.h"

namespace dibs::scheduler {
namespace {

/// Distinct demands whose answers are kept; beyond that all are forgotten.
constexpr std::size_t kMostDemands = 256;

}  // namespace

bool Refusals::Demand::still(const NodeInfo& node) const {
  const std::size_t word = node.index / 64;
  return word < nodes_.size() && (nodes_[word] >> (node.index % 64) & 1) != 0;
}

void Refusals::bring_up(Demand& demand) const {
  if (demand.epoch_ == epoch_) return;
  demand.epoch_ = epoch_;
  demand.nodes_.assign(demand.nodes_.size(), 0);
}

Refusals::Demand& Refusals::of(const std::string& demand) {
  if (demands_.size() >= kMostDemands && !demands_.contains(demand)) demands_.clear();
  Demand& made = demands_[demand];
  bring_up(made);
  return made;
}

void Refusals::note(Demand& demand, const NodeInfo& node) {
  bring_up(demand);
  indexes_[node.name] = static_cast<std::uint32_t>(node.index);
  const std::size_t word = node.index / 64;
  if (word >= demand.nodes_.size()) demand.nodes_.resize(word + 1);
  demand.nodes_[word] |= std::uint64_t{1} << (node.index % 64);
}

void Refusals::forget(std::uint32_t index) {
  if (index == kNever) return;
  const std::size_t word = index / 64;
  for (auto& [key, demand] : demands_) {
    if (word < demand.nodes_.size()) demand.nodes_[word] &= ~(std::uint64_t{1} << (index % 64));
  }
}

void Refusals::slice_changed(const json::Value& slice) {
  const json::Value& spec = slice["spec"];
  const std::string node = spec["nodeName"].str();
  const Indexes::value_type* entry =
      node.empty() ? nullptr : &*indexes_.try_emplace(node, kNever).first;
  std::string pool = cat(spec["driver"].as_string(), '/', spec["pool"]["name"].as_string());
  const auto [found, fresh] = pools_.try_emplace(std::move(pool), entry);
  if (!fresh && found->second != entry) found->second = nullptr;
  if (found->second == nullptr) {
    ++epoch_;
  } else {
    forget(entry->second);
  }
}

void Refusals::allocation_changed(const json::Value& allocation) {
  for (const json::Value& result : allocation["devices"]["results"].items()) {
    const auto found =
        pools_.find(cat(result["driver"].as_string(), '/', result["pool"].as_string()));
    if (found == pools_.end() || found->second == nullptr) {
      ++epoch_;
    } else {
      forget(found->second->second);
    }
  }
}

void Refusals::node_changed(std::string_view name) {
  const auto found = indexes_.find(std::string(name));
  if (found != indexes_.end()) forget(found->second);
}

}  // namespace dibs::scheduler
