#pragma once
// Whether demands can be served from stocks at all: a transport problem.
//
// Each row needs a number of units, from any of its classes; a class has a number of units, and
// classes may belong to a group that limits them together. It fits when the greatest flow from rows
// through classes and groups serves every row. This forgets what else holds of devices, so a "no"
// is a proof and a "yes" is not.

#include <cstdint>
#include <vector>

#include "alloc/bits.h"

namespace dibs::alloc {

struct FlowRow {
  std::int64_t need = 0;
  Bits classes;
};

struct FlowStock {
  std::vector<std::int64_t> units;        // by class
  std::vector<std::uint32_t> group;       // by class; kNoGroup: in none
  std::vector<std::int64_t> group_units;  // by group
};

inline constexpr std::uint32_t kNoGroup = 0xffffffff;

/// Adds what it cost to `steps`.
bool can_serve(const std::vector<FlowRow>& rows, const FlowStock& stock, std::uint64_t& steps);

}  // namespace dibs::alloc
