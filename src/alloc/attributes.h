#pragma once
// Attributes as constraints compare them: columns of interned values over the rows of an inventory.
//
// A column is an attribute by its qualified name, or an expression that a request derives one with.
// What a row holds in it is a set of values (a scalar is a set of one), and equal sets have equal
// numbers, so that a constraint compares numbers. Read on demand, forgotten when a device changes.
//
// One owner at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "alloc/slice.h"
#include "api/devices/selector.h"
#include "cel/evaluate/program.h"

namespace dibs::alloc {

using Row = std::uint32_t;
using ColumnId = std::uint32_t;
using ValueId = std::uint32_t;
using SetId = std::uint32_t;

inline constexpr SetId kUnread = 0;
inline constexpr SetId kMissing = 1;
/// There, but of a type that cannot be compared (a list where lists are off, an empty list).
inline constexpr SetId kIncomparable = 2;
/// The expression failed on the device.
inline constexpr SetId kFailed = 3;

class AttributeTable {
 public:
  AttributeTable(const api::SelectorEnvironment& environment, bool lists);

  /// "domain/id"
  ColumnId attribute(std::string_view name);
  ColumnId derived(std::string_view expression);

  SetId value(ColumnId column, Row row, const Slice& slice, const Device& device) {
    const Column& from = columns_[column];
    if (row < from.sets.size() && from.sets[row] != kUnread) return from.sets[row];
    return read(column, row, slice, device);
  }
  /// Rising; empty for the special sets.
  std::span<const ValueId> values(SetId set) const { return sets_[set]; }
  bool intersect(SetId a, SetId b) const;
  /// kMissing where they have nothing in common.
  SetId intersection(SetId a, SetId b);

  /// Empty: the expression compiled.
  const std::string& compile_error(ColumnId column) const { return columns_[column].error; }
  std::string error(ColumnId column, const Slice& slice, const Device& device) const;

  /// "int 3", for people.
  const std::string& text(ValueId value) const { return texts_[value]; }

  void forget(Row row);

 private:
  struct Column {
    std::string name;
    std::shared_ptr<const cel::Program> program;  // of a derived one
    bool derived = false;
    std::string error;
    std::vector<SetId> sets;
  };

  SetId read(ColumnId column, Row row, const Slice& slice, const Device& device);
  SetId read_attribute(const Column& column, const Slice& slice, const Device& device);
  SetId evaluate(const Column& column, const Slice& slice, const Device& device);
  ValueId value_id(std::string_view type, std::string_view text);
  SetId set_id(std::vector<ValueId> values);
  cel::Value run(const Column& column, const Slice& slice, const Device& device) const;

  api::SelectorEnvironment environment_;
  bool lists_;
  std::vector<Column> columns_;
  std::unordered_map<std::string, ColumnId> ids_;
  std::unordered_map<std::string, ValueId> value_ids_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ValueId>> sets_;
  std::unordered_map<std::string, SetId> set_ids_;
};

}  // namespace dibs::alloc
