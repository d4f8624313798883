#pragma once
// What each selector says about each device: sets of rows of an inventory.
//
// A selector is numbered when it is first seen and compiled once. Devices are rows of a table that
// selectors are put to as a whole (cel/columns/columns.h), so that a selector costs one evaluation
// per value that occurs rather than per device, and a pod like one before costs none. A change of a
// slice costs just its own devices.
//
// One owner at a time: asking brings the sets up to date.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "alloc/slice.h"
#include "api/devices/device.h"
#include "api/devices/named_resources.h"
#include "api/devices/selector.h"
#include "cel/columns/columns.h"

namespace dibs::alloc {

using Row = std::uint32_t;
using SelectorId = std::uint32_t;

enum class Verdict : std::uint8_t { no, yes, error };

class SelectorTable {
 public:
  /// The environment is that of devices; named resources have a language of their own.
  SelectorTable(Resources resources, const api::SelectorEnvironment& environment);

  SelectorId intern(std::string_view expression);
  const api::Selector& selector(SelectorId id) const { return selectors_[id].compiled; }

  /// Requires a row that was put.
  Verdict verdict(SelectorId id, Row row) {
    Entry& entry = selectors_[id];
    if (entry.version != version_) update(entry);
    if (entry.filter == nullptr) return Verdict::error;
    const cel::Row at = places_[row];
    if (entry.filter->yes().contains(at)) return Verdict::yes;
    return entry.filter->no().contains(at) ? Verdict::no : Verdict::error;
  }
  /// Of a verdict that is one.
  std::string error(SelectorId id, Row row) const;

  /// Whether there is a device that one of these fails on after those before it said yes.
  bool may_fail(const std::vector<SelectorId>& first, const std::vector<SelectorId>& then);

  /// The row holds this device now. Nothing is looked at before a selector is asked.
  void put(Row row, const std::string& driver, const json::Value& device);
  void remove(Row row);

  /// How often a device, or one value of an attribute, was handed to an evaluator.
  std::uint64_t evaluations() const;

 private:
  static constexpr cel::Row kNoPlace = cel::RowSet::kNone;

  struct Entry {
    api::Selector compiled;
    std::unique_ptr<cel::Filter> filter;  // null where it did not compile
    std::uint64_t version = 0;
  };
  struct Change {
    Row row = 0;
    std::string driver;
    json::Value device;  // null: the row is free
  };

  using Input = std::variant<std::monostate, api::DeviceInput, api::InstanceInput>;

  Input read(const Change& change) const;
  void update(Entry& entry);
  void take_changes();

  Resources resources_;
  api::SelectorEnvironment environment_;
  bool lists_;
  cel::Table table_;
  std::vector<cel::Row> places_;  // in the table, by row
  std::vector<Input> inputs_;     // by row: the table borrows from them
  std::vector<Change> changes_;
  std::uint64_t version_ = 1;
  std::vector<Entry> selectors_;
  std::unordered_map<std::string, SelectorId> ids_;
};

}  // namespace dibs::alloc
