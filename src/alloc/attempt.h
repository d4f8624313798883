#pragma once
// One attempt to serve a demand on a node: which devices each alternative could have, and what has
// been taken so far.
//
// What does not change during an attempt (selectors, taints, what other pods hold) is settled per
// alternative and device when it is first asked about, a word of 64 devices at a time. What changes
// (devices taken, capacity, counters, groups, constraints) is kept here, taken and given back in
// the order of a stack.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "alloc/bits.h"
#include "alloc/capacity.h"
#include "alloc/demand.h"
#include "alloc/view.h"

namespace dibs::alloc {

struct Picked {
  std::uint32_t alternative = 0;
  Slot slot = 0;
};

/// Why a device was not taken.
enum class Refusal : std::uint8_t {
  none,
  in_use,
  groups,
  counters,
  constraint,
  capacity,
  error,  // ends the attempt: see Attempt::error()
};

class Attempt {
 public:
  /// `idle`: as if nothing were allocated to anyone.
  Attempt(Inventory& inventory, const Node& node, const NodeView& view, const Demand& demand,
          bool idle = false);

  Inventory& inventory() const { return inventory_; }
  const Node& node() const { return node_; }
  const NodeView& view() const { return view_; }
  const Demand& demand() const { return demand_; }
  Slot slots() const { return static_cast<Slot>(view_.rows.size()); }
  const RowInfo& info(Slot slot) const { return inventory_.row(view_.rows[slot]); }
  const DeviceUse& use(Slot slot) const {
    return idle_ ? kUnused : inventory_.use(view_.rows[slot]);
  }
  std::string id(Slot slot) const;
  /// Allocated devices of a counter set, by compatibility group.
  const SetMembers& members_before(std::uint32_t pool, std::uint32_t set) const {
    return idle_ ? kNoMembers : view_.pools[pool].generation->members[set];
  }

  /// Checks the demand and settles what "all" devices are. False: error() says what is wrong.
  bool prepare();
  const std::string& error() const { return error_; }

  /// Devices that the alternative needs.
  std::int64_t count(std::uint32_t alternative) const { return parts_[alternative].count; }
  /// Of an alternative that wants all.
  const std::vector<Slot>& all_of(std::uint32_t alternative) const {
    return parts_[alternative].all;
  }

  /// Could be had, were nothing taken in this attempt. For alternatives that want all this leaves
  /// out what other pods consume of capacities.
  bool candidate(std::uint32_t alternative, Slot slot) {
    return (candidates(alternative, slot / 64) >> (slot % 64) & 1) != 0;
  }
  std::uint64_t candidates(std::uint32_t alternative, std::size_t word) {
    Part& part = parts_[alternative];
    if (!part.known.test(word)) settle(alternative, word);
    return part.candidates.word(word);
  }
  /// Looking at the device for this alternative ends the attempt.
  std::uint64_t fatal(std::uint32_t alternative, std::size_t word) {
    Part& part = parts_[alternative];
    if (!part.known.test(word)) settle(alternative, word);
    return part.fatal.word(word);
  }
  /// Makes error() say what is wrong with the device for the alternative.
  void explain_fatal(std::uint32_t alternative, Slot slot);

  /// Taken in this attempt, so that the alternative cannot have the device.
  bool taken(std::uint32_t alternative, Slot slot) const {
    const Alternative& wanted = demand_.alternatives[alternative];
    return wanted.admin() ? claim_taken_[wanted.claim].test(slot) : taken_.test(slot);
  }
  std::uint64_t taken_word(std::size_t word) const { return taken_.word(word); }
  bool taken_anywhere(Slot slot) const { return taken_.test(slot); }
  /// The device taken last was taken by another claim, too.
  bool last_was_taken() const { return !traces_.back().marked; }
  const Bits& taken_for(std::uint32_t alternative) const {
    const Alternative& wanted = demand_.alternatives[alternative];
    return wanted.admin() ? claim_taken_[wanted.claim] : taken_;
  }

  /// Requires a candidate, or a member of all_of().
  Refusal take(std::uint32_t alternative, Slot slot);
  /// Gives the device taken last back.
  void undo();

  const std::vector<Picked>& picked() const { return picked_; }
  std::size_t picked_for(std::uint32_t claim) const { return claim_results_[claim]; }

  // For bounds and memory of dead ends.
  struct Share {
    std::uint32_t shares = 0;      // in this attempt
    std::vector<Amount> consumed;  // in this attempt, by capacity of the device
  };
  const Share* share(Slot slot) const {
    return slot < shares_.size() && shares_[slot].shares > 0 ? &shares_[slot] : nullptr;
  }
  /// The devices with a share, in the order in which they got their first.
  const std::vector<Slot>& shared() const { return shared_; }
  /// Of a counter, for this attempt: what the inventory has less what was taken here.
  Amount available(std::uint32_t pool, std::uint32_t counter) const {
    const Generation& generation = *view_.pools[pool].generation;
    return (idle_ ? generation.declared : generation.available)[counter] -
           consumed_[first_counter_[pool] + counter];
  }
  /// What the devices taken hold of a constraint: the running intersection (match), or all.
  const std::vector<SetId>& constraint_sets(std::uint32_t constraint) const {
    return constraints_[constraint];
  }
  const std::vector<Amount>& consumed_counters() const { return consumed_; }
  std::uint32_t first_counter(std::uint32_t pool) const { return first_counter_[pool]; }
  /// Devices that this attempt added to the counter set of a pool.
  const std::vector<Slot>& set_members(std::uint32_t pool, std::uint32_t set) const {
    return set_members_[first_set_[pool] + set];
  }
  bool groups_allow(Slot slot) const;
  bool counters_allow(Slot slot) const;
  /// The first `count` of these devices, taken together.
  bool counters_allow(const std::vector<Slot>& slots, std::size_t count) const;
  /// Whether a constraint takes the set next. Requires that it is not kFailed.
  bool constraint_allows(std::uint32_t constraint, SetId set) const;
  SetId set_of(const BoundConstraint& bound, Slot slot) const;
  /// What one device takes of the capacities for the alternative.
  const Intake& intake_of(std::uint32_t alternative, Slot slot);
  /// `with_taken`: what this attempt took counts, too.
  bool capacity_allows(std::uint32_t alternative, Slot slot, bool with_taken = true);
  /// The device is of the driver that the alternative names, or it names none.
  bool is_for(const Alternative& wanted, Slot slot) const {
    const std::string& driver = wanted.spec->driver;
    return driver.empty() || driver == info(slot).record->slice.driver;
  }
  /// The class, the request and the node have nothing against the device.
  Verdict selectable(std::uint32_t alternative, Slot slot);
  /// Taints are tolerated and the node can do what the device needs.
  bool suits(std::uint32_t alternative, Slot slot) const;
  const Taint* untolerated(std::uint32_t alternative, const Device& device) const;

 private:
  struct Part {
    std::int64_t count = 0;
    std::vector<Slot> all;
    Bits known;  // by word
    Bits candidates;
    Bits fatal;
    Bits read;                    // slots whose intake is known
    std::vector<Intake> intakes;  // by slot; empty before the first is asked for
  };

  bool prepare_alternative(std::uint32_t alternative);
  bool prepare_all(std::uint32_t alternative);
  void settle(std::uint32_t alternative, std::size_t word);
  void explain_selectors(std::uint32_t alternative, Slot slot);
  bool fail(std::string text);
  void count(Slot slot, int sign);
  Refusal add_constraints(std::uint32_t alternative, Slot slot);
  void pop_constraints(std::uint32_t alternative, std::size_t count);
  bool multiple(const Device& device) const;

  static const DeviceUse kUnused;
  static const SetMembers kNoMembers;

  Inventory& inventory_;
  const Node& node_;
  const NodeView& view_;
  const Demand& demand_;
  bool idle_;
  std::vector<Part> parts_;
  std::string error_;

  /// How to give a device back.
  struct Trace {
    bool counted = false;  // took from counters
    bool shared = false;
    bool marked = false;  // was free before
  };

  Bits taken_;
  std::vector<Bits> claim_taken_;
  std::vector<Picked> picked_;
  std::vector<Trace> traces_;
  std::vector<std::size_t> claim_results_;
  std::vector<std::vector<SetId>> constraints_;
  std::vector<Share> shares_;  // by slot; empty before the first is made
  std::vector<Slot> shared_;
  std::vector<std::uint32_t> first_counter_;  // by pool
  std::vector<std::uint32_t> first_set_;
  std::vector<Amount> consumed_;
  std::vector<std::vector<Slot>> set_members_;
};

}  // namespace dibs::alloc
