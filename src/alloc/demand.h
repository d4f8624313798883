#pragma once
// What the claims of a pod ask for, made ready to be put to any number of nodes: classes looked up,
// selectors and constraints numbered in the inventory, everything checked that needs no device.
//
// A fault found here is kept where it was found: a node may end the attempt earlier for another
// reason, and the first one is told.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/bits.h"
#include "alloc/claims.h"
#include "alloc/inventory.h"

namespace dibs::alloc {

/// A constraint as it reads the devices of one alternative.
struct BoundConstraint {
  std::uint32_t constraint = 0;  // among all of the demand
  ColumnId column = 0;
  bool derived = false;
};

struct Alternative {
  std::uint32_t claim = 0;
  std::uint32_t position = 0;
  const Request* request = nullptr;
  const DeviceRequest* spec = nullptr;
  std::shared_ptr<const DeviceClass> device_class;
  std::vector<SelectorId> class_selectors;
  std::vector<SelectorId> selectors;
  std::vector<BoundConstraint> constraints;
  std::string error;  // empty: nothing is wrong with it

  bool all() const { return spec->mode == DeviceRequest::Mode::all; }
  bool admin() const { return spec->admin_access; }
};

/// A request of a claim: one alternative, or several of which the first that works is taken.
struct Position {
  std::uint32_t claim = 0;
  std::uint32_t first = 0;  // alternative
  std::uint32_t count = 0;
  bool prioritized = false;
  std::string error;
};

struct ClaimDemand {
  std::shared_ptr<const Claim> claim;
  std::uint32_t first_position = 0;
  std::uint32_t position_count = 0;
  std::uint32_t first_constraint = 0;
  std::string constraint_error;
};

struct Demand {
  using ClassLookup =
      std::function<std::shared_ptr<const DeviceClass>(std::string_view name)>;  // null: none

  std::vector<ClaimDemand> claims;
  std::vector<Position> positions;
  std::vector<Alternative> alternatives;
  std::vector<const Constraint*> constraints;
  /// Devices that one claim may have.
  std::int64_t most_results = kMostResults;

  /// Without the positions and constraints that are not in these sets.
  Demand part(const Bits& positions_kept, const Bits& constraints_kept) const;

  /// A device of the inventory makes the search fail where it comes to look at it.
  bool may_fail(Inventory& inventory) const;

  static Demand prepare(Inventory& inventory, std::vector<std::shared_ptr<const Claim>> claims,
                        const ClassLookup& classes);
};

}  // namespace dibs::alloc
