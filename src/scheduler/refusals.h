#pragma once
// Nodes that have just refused a demand for devices and would do so again.
//
// In a full cluster most nodes refuse, and a node's answer changes only with its devices: when one
// of them is taken or freed, a slice or the node itself changes. So the nodes that refused are kept
// per demand, a bit each, until something of theirs changes: an attempt passes by 64 of them at a
// time. Devices that are not of one node (a slice for many, a class, a rule of taints) change the
// answer of all nodes.
//
// One owner: the scheduler's serial executor.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"

namespace dibs::scheduler {

struct NodeInfo;

class Refusals {
 public:
  /// The answers to one demand. Valid until the next call of of().
  class Demand {
   public:
    /// The node refused, and nothing has changed for it since.
    bool still(const NodeInfo& node) const;
    /// The nodes that still refuse, as of the last of(), as bits by their index. May be too short.
    const std::vector<std::uint64_t>& nodes() const { return nodes_; }

   private:
    friend class Refusals;
    std::uint64_t epoch_ = 0;
    std::vector<std::uint64_t> nodes_;
  };

  /// `demand`: equal for equal demands.
  Demand& of(const std::string& demand);
  void note(Demand& demand, const NodeInfo& node);

  void slice_changed(const json::Value& slice);
  /// An allocation was made or taken back.
  void allocation_changed(const json::Value& allocation);
  void node_changed(std::string_view name);
  /// Also when nodes get other indexes.
  void all_changed() { ++epoch_; }

 private:
  /// The index that a node refused under; kNever before that.
  static constexpr std::uint32_t kNever = 0xffffffff;
  using Indexes = std::unordered_map<std::string, std::uint32_t>;

  void bring_up(Demand& demand) const;
  void forget(std::uint32_t index);

  std::uint64_t epoch_ = 1;
  Indexes indexes_;  // by node; entries stay where they are
  /// Node by driver and pool; null for one of many nodes, or of none.
  std::unordered_map<std::string, const Indexes::value_type*> pools_;
  std::unordered_map<std::string, Demand> demands_;
};

}  // namespace dibs::scheduler
