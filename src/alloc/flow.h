#pragma once
// Whether demands can be served from stocks at all: a transport problem.
//
// Each row needs a number of units, from any of its classes; a class has a number of units, of
// which one request may have only some, and classes may belong to a group that limits them
// together. It fits when the greatest flow from rows through classes and groups serves every row.
// This forgets what else holds of devices, so a "no" is a proof and a "yes" is not.

#include <cstdint>
#include <utility>
#include <vector>

#include "alloc/bits.h"

namespace dibs::alloc {

struct FlowRow {
  std::int64_t need = 0;
  Bits classes;
  std::int64_t requests = 1;  // that the row stands for
};

struct FlowStock {
  std::vector<std::int64_t> units;        // by class
  std::vector<std::int64_t> each;         // by class: the most for one request
  std::vector<std::uint32_t> group;       // by class; kNoGroup: in none
  std::vector<std::int64_t> group_units;  // by group
};

inline constexpr std::uint32_t kNoGroup = 0xffffffff;

/// Keeps its memory from one problem to the next.
class Flow {
 public:
  /// Adds what it cost to `steps`.
  bool can_serve(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps);

 private:
  struct Edge {
    std::uint32_t to;
    std::uint32_t next;  // of the same node
    std::int64_t room;
  };

  bool greedy(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps);
  void build(const std::vector<FlowRow>& rows, const FlowStock& stock);
  void add(std::uint32_t from, std::uint32_t to, std::int64_t room);
  std::int64_t greatest(std::uint64_t& steps);
  bool level(std::uint64_t& steps);
  std::int64_t push(std::uint32_t at, std::int64_t most, std::uint64_t& steps);

  FlowStock left_;
  std::vector<std::pair<std::int64_t, const FlowRow*>> order_;
  std::uint32_t sink_ = 0;
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> first_;  // edge, by node
  std::vector<std::uint32_t> at_;     // edge that is tried next, by node
  std::vector<int> levels_;
  std::vector<std::uint32_t> queue_;
};

}  // namespace dibs::alloc
