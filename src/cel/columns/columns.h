#pragma once
// One program over many rows.
//
// A Table holds rows, each a binding of a program's variables. A Filter keeps the answers of one
// program to all rows of a table: three sets of rows, those where it says yes, no, or fails. Rows
// come, change and go; a filter that is brought up to date looks only at rows that changed since.
//
// A program reads a row through paths: a variable with constant names behind it, such as
// device.attributes["example.com"].model. Each path that some filter reads is a column of the
// table, a code per row: rows with the same code are the same to everyone who comes along that
// path. So whatever depends on one column is computed once for each code, and the rest is && and ||
// over sets of rows. What depends on several columns is computed once per combination that occurs.
// Nothing is known here about what rows are: a column asks the values that are bound, so that maps
// with rules of their own (a default for keys that are absent) keep them.
//
// The answers are those of Program::evaluate() for each row, its limit on cost included. Why a row
// fails is not kept; explain() evaluates that row once more to find out.
//
// Not thread-safe: a table and its filters belong to one thread at a time.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cel/evaluate/program.h"
#include "cel/value.h"

namespace dibs::cel {

/// Stays the same while the row is there; taken again after it was removed.
using Row = std::uint32_t;

class RowSet {
 public:
  static constexpr std::size_t kWordBits = 64;

  bool contains(Row row) const {
    return row / kWordBits < words_.size() && (words_[row / kWordBits] >> row % kWordBits & 1) != 0;
  }
  void insert(Row row) {
    reserve_words(row / kWordBits + 1);
    words_[row / kWordBits] |= std::uint64_t{1} << row % kWordBits;
  }
  void erase(Row row) {
    if (contains(row)) words_[row / kWordBits] &= ~(std::uint64_t{1} << row % kWordBits);
  }
  std::size_t size() const;
  bool empty() const;
  /// The first row of the set that is not before this one; kNone behind the last.
  Row next(Row from) const;
  static constexpr Row kNone = ~Row{0};

  // Row r is bit r % 64 of word r / 64.
  std::span<const std::uint64_t> words() const { return words_; }
  std::uint64_t word(std::size_t i) const { return i < words_.size() ? words_[i] : 0; }
  void set_word(std::size_t i, std::uint64_t word) { words_[i] = word; }
  /// Makes sure that there are as many words; never fewer.
  void reserve_words(std::size_t count) {
    if (words_.size() < count) words_.resize(count);
  }

 private:
  std::vector<std::uint64_t> words_;
};

class Column;
struct ColumnPath;

class Table {
 public:
  /// Each row binds this many variables.
  explicit Table(std::size_t variables);
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  ~Table();

  /// The values stay with the row until it is changed or removed.
  Row add(std::span<const Value> variables);
  /// A row that could not be read: every program fails there, with this message.
  Row add_failed(std::string message);
  void change(Row row, std::span<const Value> variables);
  void change_to_failed(Row row, std::string message);
  void remove(Row row);

  const RowSet& rows() const { return rows_; }
  bool contains(Row row) const { return rows_.contains(row); }
  /// Null, or why the row could not be read.
  const std::string* failure(Row row) const;
  /// Requires a row that could be read.
  std::span<const Value> variables(Row row) const {
    return {values_.data() + row * stride_, stride_};
  }

 private:
  friend class Filter;
  friend class Column;

  Row take_row();
  void put(Row row, std::span<const Value> variables);
  void put_failure(Row row, std::string message);
  void touch(Row row);
  std::uint64_t version() const { return journal_start_ + journal_.size(); }
  /// False when what happened since then is forgotten: all rows must be looked at.
  bool changes_since(std::uint64_t version, std::span<const Row>& out) const;
  std::size_t words() const { return (end_ + RowSet::kWordBits - 1) / RowSet::kWordBits; }
  std::shared_ptr<Column> column(const ColumnPath& path);

  std::size_t stride_;
  Row end_ = 0;
  std::vector<Value> values_;
  RowSet rows_;
  RowSet failed_;
  std::unordered_map<Row, std::string> failures_;
  std::vector<Row> free_;
  std::vector<Row> journal_;  // rows in the order of their changes
  std::uint64_t journal_start_ = 1;
  std::unordered_map<std::string, std::weak_ptr<Column>> columns_;
};

class Filter {
 public:
  /// The table outlives the filter. `cost`: what one row may cost.
  Filter(Table& table, std::shared_ptr<const Program> program,
         std::uint64_t cost = ~std::uint64_t{0});
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter();

  /// Takes in what changed in the table. The sets are those of the last update.
  void update();
  const RowSet& yes() const { return yes_; }
  const RowSet& no() const { return no_; }
  const RowSet& failed() const { return failed_; }

  /// The row evaluated as it is now, by itself.
  Evaluation explain(Row row) const;

  /// How often a row, or one code of a column, was handed to the evaluator so far.
  std::uint64_t evaluations() const;

 private:
  class Engine;

  Table& table_;
  std::shared_ptr<const Program> program_;
  std::uint64_t cost_;
  std::uint64_t version_ = 0;
  RowSet yes_;
  RowSet no_;
  RowSet failed_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace dibs::cel
