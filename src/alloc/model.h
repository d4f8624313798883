#pragma once
// The devices of an attempt, reduced to what can make a difference to it.
//
// Devices that no alternative tells apart (same candidates, same values under the constraints, same
// counters, same capacity) form a class: which of its members are taken does not matter, only how
// many, so the lowest free one stands for all. Devices that consume counters belong to a bin: a
// group of counter sets that are linked by devices. Bins that look alike (a node's GPUs, each with
// its partitions) are interchangeable as a whole while they are in the same state.
//
// A class of a device that ends the attempt when looked at has just that member.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "alloc/attempt.h"

namespace dibs::alloc {

inline constexpr std::uint32_t kNone = 0xffffffff;

struct DeviceClassInfo {
  std::vector<Slot> members;  // rising
  std::uint32_t bin = kNone;
  std::uint32_t local = 0;  // among the classes of the bin
  bool multiple = false;    // members are shared, not taken
};

struct Bin {
  std::uint32_t type = 0;
  std::uint32_t pool = 0;
  std::vector<std::uint32_t> classes;   // by local number
  std::vector<std::uint32_t> counters;  // of the pool, that its devices consume
  std::vector<std::uint32_t> sets;
  bool shares = false;  // has devices that are shared
};

/// An alternative over classes.
struct AlternativeClasses {
  std::vector<std::uint32_t> classes;  // candidates, by first member
  Bits set;                            // the same
  /// For each bound constraint of the alternative: what a class holds, by class.
  std::vector<std::vector<SetId>> values;
  /// The same as numbers of single values, rising, counted from 0 for each constraint. Values that
  /// occur in the same sets have one number.
  std::vector<std::vector<std::span<const std::uint32_t>>> singles;
  bool may_fault = false;
  std::vector<Slot> faulty;  // devices that end the attempt when looked at, or taken
  /// Of "all" devices under constraints, those up to the first that cannot be added whatever was
  /// taken before: which of them is taken decides whether that fault is met.
  Bits ordered;
  /// The number of that first one; that of the devices when there is none.
  std::size_t clash = 0;
  /// Devices of requests before it may stand against any of "all" devices.
  bool preceded = false;
};

class Model {
 public:
  explicit Model(Attempt& attempt);

  const std::vector<DeviceClassInfo>& classes() const { return classes_; }
  const std::vector<Bin>& bins() const { return bins_; }
  const AlternativeClasses& alternative(std::uint32_t a) const { return alternatives_[a]; }
  std::uint32_t class_of(Slot slot) const { return class_of_[slot]; }
  /// The first position from `position` on that can end the attempt with a fault; the number of
  /// positions when there is none.
  std::uint32_t first_fault(std::uint32_t position) const { return first_fault_[position]; }
  /// Whether the alternative can still end the attempt with a fault, given what is taken.
  bool can_fault(std::uint32_t alternative) const;
  /// How many single values a constraint has to do with.
  std::uint32_t single_count(std::uint32_t constraint) const { return single_counts_[constraint]; }
  /// Alternatives of one kind want the same of devices, though perhaps not as many: the same
  /// classes for the same constraints of a claim. The number is that of the first of them.
  std::uint32_t kind(std::uint32_t a) const { return kinds_[a]; }
  /// A claim can run into the limit on its results.
  bool may_exceed() const { return may_exceed_; }
  bool has_admin() const { return has_admin_; }
  bool has_groups() const { return has_groups_; }
  /// Classes that mean the same to all positions from one on have the same number there; kNone for
  /// those that mean nothing to them any more. Classes in bins keep numbers of their own.
  std::uint32_t suffix_class(std::uint32_t position, std::uint32_t c) const {
    return suffix_[position][c];
  }
  std::uint32_t suffix_count(std::uint32_t position) const { return suffix_counts_[position]; }

 private:
  void read_alternatives();
  void find_bins();
  void make_classes();
  void number_values();
  void find_kinds();
  void type_bins();
  void merge_suffixes();
  void find_limits();
  void find_ordered(std::uint32_t alternative);
  std::string signature(Slot slot, bool with_counters) const;

  Attempt& attempt_;
  const Demand& demand_;
  std::vector<DeviceClassInfo> classes_;
  std::vector<std::uint32_t> class_of_;
  std::vector<Bin> bins_;
  std::vector<std::uint32_t> bin_of_;  // by slot
  std::vector<AlternativeClasses> alternatives_;
  std::vector<std::uint32_t> single_counts_;
  std::deque<std::vector<std::uint32_t>> single_lists_;
  std::vector<std::uint32_t> kinds_;
  std::vector<std::uint32_t> first_fault_;
  std::vector<std::vector<std::uint32_t>> suffix_;
  std::vector<std::uint32_t> suffix_counts_;
  Bits relevant_;
  Bits order_counts_;  // constraints under which the order of devices counts
  bool may_exceed_ = false;
  bool has_admin_ = false;
  bool has_groups_ = false;
};

}  // namespace dibs::alloc
