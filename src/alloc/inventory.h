#pragma once
// All devices of a cluster as rows, and what of them is in use.
//
// Slices come and go by put() and remove(), allocations by take() and release(); everything else is
// kept up to date by the change alone: rows keep their number while a slice keeps its size,
// counters are added to and subtracted from, and the view of a node is built anew only when a slice
// that it can see, or another one of the same pool, changed.
//
// A pool is the slices of one driver and pool name. Each generation of it has counters of its own;
// which generation counts is decided per node (view.h).
//
// Devices and named resources never mix: each kind has an inventory of its own, so that neither is
// offered to requests for the other.
//
// One owner at a time: looking fills caches.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alloc/attributes.h"
#include "alloc/features.h"
#include "alloc/selectors.h"
#include "alloc/slice.h"

namespace dibs::alloc {

struct CachedView;
struct NodeView;
struct Pool;
struct Generation;

/// What claims hold of a device. It outlives the device: a slice may come back.
struct DeviceUse {
  std::uint32_t exclusive = 0;
  std::uint32_t shares = 0;
  std::uint32_t capacity_entries = 0;
  std::vector<std::pair<std::string, Amount>> consumed;  // of capacities, by name
  std::vector<Row> rows;                                 // that show the device

  bool shared() const { return shares > 0 || capacity_entries > 0; }
  bool allocated() const { return exclusive > 0 || shared(); }
};

struct CounterUse {
  std::uint32_t counter = 0;  // in its generation
  Amount amount = 0;
};

/// A counter set that a device takes from.
struct SetUse {
  std::uint32_t set = 0;              // in its generation
  std::vector<std::uint32_t> groups;  // compatibility groups
};

/// The counters that a device consumes, resolved in its pool.
struct RowCounters {
  std::vector<CounterUse> counters;
  std::vector<SetUse> sets;
};

/// A slice in the inventory.
struct SliceRecord {
  std::string key;
  Slice slice;
  std::uint64_t arrival = 0;
  Row first_row = 0;
  Pool* pool = nullptr;
  Generation* generation = nullptr;
  bool dropped = false;  // uses a feature that is off: as if it were not there
  bool unseen = false;   // likewise, but it counts among the slices of its pool

  bool has_devices() const { return slice.counter_sets.empty(); }
};

/// How many allocated devices of a counter set are in which compatibility groups.
struct SetMembers {
  std::uint32_t members = 0;
  std::uint32_t without_groups = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> groups;  // group, devices
};

struct Generation {
  std::int64_t number = 0;
  std::vector<SliceRecord*> slices;  // by arrival
  // Counters, filled by Inventory::resolve().
  bool resolved = false;
  std::vector<std::string> sets;
  std::vector<std::pair<std::uint32_t, std::string>> counters;  // set, name
  std::vector<Amount> declared;
  std::vector<Amount> available;    // declared less what allocated devices consume
  std::vector<SetMembers> members;  // by set
};

struct Pool {
  std::string driver;
  std::string name;
  std::map<std::int64_t, Generation> generations;
};

struct RowInfo {
  const SliceRecord* record = nullptr;  // null: the row is free
  const Device* device = nullptr;
  std::uint32_t use = 0;
  /// Nothing about the device but its attributes can stand against a request that names no
  /// capacities: it need not be looked at then.
  bool plain = false;
  std::unique_ptr<RowCounters> counters;  // null: none, or its generation is not resolved
};

class Inventory {
 public:
  explicit Inventory(const Features& features, Resources resources = Resources::devices);
  ~Inventory();
  Inventory(const Inventory&) = delete;
  Inventory& operator=(const Inventory&) = delete;

  const Features& features() const { return features_; }
  Resources resources() const { return resources_; }

  /// Adds a slice or replaces the one of the key.
  void put(std::string_view key, const json::Value& slice);
  /// False when there is none.
  bool remove(std::string_view key);
  std::size_t slice_count() const { return records_.size(); }

  // What is in use. Each call is undone by the one with the opposite name.
  void take(const json::Value& allocation);  // a claim's status.allocation
  void release(const json::Value& allocation);
  void take_device(std::string_view driver, std::string_view pool, std::string_view device);
  void release_device(std::string_view driver, std::string_view pool, std::string_view device);
  void take_share(std::string_view driver, std::string_view pool, std::string_view device);
  void release_share(std::string_view driver, std::string_view pool, std::string_view device);
  void take_capacity(std::string_view driver, std::string_view pool, std::string_view device,
                     const json::Value& consumed);
  void release_capacity(std::string_view driver, std::string_view pool, std::string_view device,
                        const json::Value& consumed);

  /// What can be seen from a node. Valid until the next change of slices, or of the node.
  const NodeView& view(const Node& node);
  void forget_node(std::string_view name);

  const RowInfo& row(Row row) const { return rows_[row]; }
  std::size_t row_count() const { return rows_.size(); }
  const DeviceUse& use(Row row) const { return uses_[rows_[row].use]; }
  /// Makes the counters of a generation, and of its rows, ready to read.
  void resolve(Generation& generation);
  const std::string& group_name(std::uint32_t group) const { return group_names_[group]; }

  SelectorTable& selectors() { return selectors_; }
  AttributeTable& attributes() { return attributes_; }

 private:
  friend class ViewBuilder;

  void judge(SliceRecord& record) const;
  Row allocate_rows(std::size_t count);
  /// `old` is what the slice was before, if it was there.
  void attach(SliceRecord& record, const SliceRecord* old);
  /// `gone`: its rows are given up; else what comes in its place takes them over.
  void detach(SliceRecord& record, bool gone);
  void touch(const Pool& pool);
  void fill_row(Row row, const SliceRecord& record, const Device& device);
  std::uint32_t use_id(std::string_view driver, std::string_view pool, std::string_view device);
  /// Runs `change` on the use of a device and keeps the counters of its pools in step.
  template <typename Change>
  void change_use(std::string_view driver, std::string_view pool, std::string_view device,
                  Change change);
  void count(const RowInfo& row, int sign);
  std::uint32_t group_id(const std::string& name);
  void change(const json::Value& allocation, bool taking);
  void change_named(const json::Value& allocation, bool taking);

  Features features_;
  Resources resources_;
  SelectorTable selectors_;
  AttributeTable attributes_;

  std::unordered_map<std::string, std::unique_ptr<SliceRecord>> records_;
  std::map<std::pair<std::string, std::string>, Pool> pools_;
  std::unordered_map<std::string, std::vector<SliceRecord*>> by_node_;
  std::vector<SliceRecord*> elsewhere_;  // slices that do not name a node
  std::vector<RowInfo> rows_;
  std::map<std::size_t, std::vector<Row>> free_rows_;  // by length of the range
  std::uint64_t arrivals_ = 0;

  std::vector<DeviceUse> uses_;
  std::unordered_map<std::string, std::uint32_t> use_ids_;
  std::vector<std::string> group_names_;
  std::unordered_map<std::string, std::uint32_t> group_ids_;

  std::unordered_map<std::string, std::unique_ptr<CachedView>> views_;
  std::uint64_t shared_epoch_ = 1;
};

}  // namespace dibs::alloc
