#pragma once
// A column: for each row a code that stands for what its path reads there.
//
// Codes are given out as contents turn up, and found again by their identity. Code 0 is that of
// rows without content. What no row has any more is swept out once it outweighs the rest; codes
// then mean something else, and the epoch changes.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cel/columns/columns.h"
#include "cel/columns/path.h"

namespace dibs::cel {

class Column {
 public:
  explicit Column(ColumnPath path) : path_(std::move(path)) { entries_.emplace_back(); }

  const ColumnPath& path() const { return path_; }
  /// Takes in what changed in the table. Columns that were last updated together go through a row
  /// together, since most of the work is to reach the row.
  static void update(std::span<const std::shared_ptr<Column>> columns, const Table& table);

  std::uint64_t epoch() const { return epoch_; }
  std::uint32_t codes() const { return static_cast<std::uint32_t>(entries_.size()); }
  std::uint32_t code(Row row) const { return rows_[row]; }
  /// The codes of the 64 rows of a word.
  const std::uint32_t* word(std::size_t i) const { return rows_.data() + i * RowSet::kWordBits; }

  struct Entry {
    ReadState state = ReadState::stuck;
    /// The value is here: scalars, text (a copy) and opaque values, but not lists and maps.
    bool has_value = false;
    std::uint32_t step = 0;
    std::uint32_t rows = 0;
    Value value;
    const std::string* identity = nullptr;  // in codes_
  };
  const Entry& entry(std::uint32_t code) const { return entries_[code]; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  void refresh(const Table& table, Row row);
  void end_update(const Table& table);
  std::uint32_t intern(const PathRead& read);
  void sweep();

  ColumnPath path_;
  std::vector<std::uint32_t> rows_;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> codes_;
  std::string scratch_;
  std::size_t unused_ = 0;
  std::uint64_t epoch_ = 1;
  std::uint64_t version_ = 0;
};

}  // namespace dibs::cel
