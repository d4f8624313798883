#pragma once
// Proofs that the rest of a search cannot succeed.
//
// Each looks at all that is still to be served and drops some of the rules, so that the rest is
// easy to decide. A "no" is final; a "yes" only means that the search must look. The plain bound
// drops everything but numbers: each request has enough devices left, and all together have
// (flow.h); so do those together that must have a value in common. The thorough one also tries
// every value that a match constraint could settle on, every value of a distinct constraint for one
// device only, and sums counters up.

#include <cstdint>
#include <utility>
#include <vector>

#include "alloc/attempt.h"
#include "alloc/flow.h"
#include "alloc/model.h"

namespace dibs::alloc {

/// How many members of each class are taken, kept by the search.
struct Tally {
  std::vector<std::int64_t> taken;                  // by class
  std::vector<std::vector<std::int64_t>> by_claim;  // claim, class
};

/// A point of the search: `index` devices of an alternative are taken, the next one is sought from
/// `slot` on. An alternative of kNone: before the position.
struct Point {
  std::uint32_t position = 0;
  std::uint32_t alternative = kNone;
  std::int64_t index = 0;
  Slot slot = 0;
};

class Bounds {
 public:
  Bounds(Attempt& attempt, const Model& model, const Tally& tally, std::uint64_t& steps);

  /// False: no solution and no fault below.
  bool possible(const Point& point);
  bool thoroughly_possible(const Point& point);
  /// Positions from this one on are left out of account.
  void look_until(std::uint32_t position) { end_ = position; }

 private:
  /// What one position, or the rest of the current alternative, still needs.
  struct Need {
    std::int64_t count = 0;
    bool admin = false;
    std::uint32_t claim = 0;
    std::vector<std::uint32_t> alternatives;  // that could do
    Bits classes;                             // of any of them
  };

  /// Whether to look at all: not where a fault may be met first, or what is tried next depends on
  /// more than whether there is a solution here.
  bool applies(const Point& point) const;
  bool collect(const Point& point);
  bool add(const std::vector<std::uint32_t>& alternatives, std::int64_t taken, Slot from,
           bool current);
  /// The classes that the alternative can still take from, and how many devices that are.
  std::int64_t usable(std::uint32_t alternative, Slot from, bool current, Bits& out);
  bool class_allows(std::uint32_t alternative, std::uint32_t c);
  void fill_stock();
  std::int64_t shares_left(std::uint32_t c);
  /// A row per need, on the classes given by need.
  bool serve(const Point& point, const std::vector<const Bits*>& classes);
  /// Takes from the needs what no value of their match constraints can serve, until nothing
  /// changes.
  bool narrow();
  bool narrow(std::uint32_t constraint, bool& changed);
  /// What some needs must have to the last unit is struck out of the others.
  bool reserve(bool& changed);
  std::int64_t units(const Need& need, std::uint32_t c) const;
  static constexpr std::size_t kNotBound = ~std::size_t{0};
  /// The number of the constraint among those of the alternative.
  std::size_t number_of(std::uint32_t alternative, std::uint32_t constraint) const;
  /// The values of the constraint that the devices taken so far have in common; false: none taken.
  bool held_values(std::uint32_t constraint, std::vector<std::uint32_t>& out) const;
  /// Whether nothing but the order tells the needs apart.
  bool alike(const Need& a, const Need& b) const;
  bool counters_suffice();
  /// `classes`: by need, what each may take from.
  bool distinct_suffice(const std::vector<const Bits*>& classes);
  bool match_suffice(const Point& point);
  template <typename Allows>
  bool filtered_serves(const Point& point, const std::vector<std::uint32_t>& constraints,
                       Allows allows);

  Attempt& attempt_;
  const Model& model_;
  const Tally& tally_;
  const Demand& demand_;
  std::uint64_t& steps_;
  bool faults_ = false;
  std::uint32_t end_ = kNone;
  std::vector<Need> needs_;
  FlowStock stock_;
  Flow flow_;
  std::vector<FlowRow> rows_;
  std::vector<std::vector<Amount>> wanted_;  // by capacity of a class, by request
  /// Of alternatives not begun yet, by kind: what usable() said; -1 before that.
  std::vector<std::pair<std::int64_t, Bits>> usable_;
  std::vector<Bits> allowed_;  // by match constraint: values that narrow() left
};

}  // namespace dibs::alloc
