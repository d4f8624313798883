#pragma once
// Nodes that have just refused a demand for devices and would do so again.
//
// In a full cluster most nodes refuse, and a node's answer changes only with its devices: when one
// of them is taken or freed, a slice or the node itself changes. So an answer is kept with the
// state of the node that it was given in, a number that grows with every change. Devices that are
// not of one node (a slice for many, a class, a rule of taints) change the state of all nodes.
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

   private:
    friend class Refusals;
    struct Answer {
      const NodeInfo* node = nullptr;
      const std::uint64_t* state = nullptr;
      std::uint64_t given_in = 0;
      std::uint64_t all = 0;
    };
    const std::uint64_t* all_ = nullptr;
    std::vector<Answer> answers_;  // by the index of the node
  };

  /// `demand`: equal for equal demands.
  Demand& of(const std::string& demand);
  void note(Demand& demand, const NodeInfo& node);

  void slice_changed(const json::Value& slice);
  /// An allocation was made or taken back.
  void allocation_changed(const json::Value& allocation);
  void node_changed(std::string_view name);
  void all_changed() { ++all_; }

 private:
  std::uint64_t all_ = 1;
  std::unordered_map<std::string, std::uint64_t> states_;  // by node; they stay where they are
  std::unordered_map<std::string, std::string> pools_;     // node by driver and pool, "" for many
  std::unordered_map<std::string, Demand> demands_;
};

}  // namespace dibs::scheduler
