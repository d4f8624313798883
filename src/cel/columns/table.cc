#include <bit>

#include "cel/columns/column.h"
#include "cel/columns/columns.h"

namespace dibs::cel {

std::size_t RowSet::size() const {
  std::size_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

bool RowSet::empty() const { return next(0) == kNone; }

Row RowSet::next(Row from) const {
  std::size_t i = from / kWordBits;
  if (i >= words_.size()) return kNone;
  std::uint64_t word = words_[i] & ~std::uint64_t{0} << from % kWordBits;
  while (word == 0) {
    if (++i == words_.size()) return kNone;
    word = words_[i];
  }
  return static_cast<Row>(i * kWordBits + static_cast<std::size_t>(std::countr_zero(word)));
}

Table::Table(std::size_t variables) : stride_(variables) {}
Table::~Table() = default;

Row Table::take_row() {
  Row row = end_;
  if (!free_.empty()) {
    row = free_.back();
    free_.pop_back();
  } else {
    ++end_;
    values_.resize(end_ * stride_);
    rows_.reserve_words(words());
    failed_.reserve_words(words());
  }
  rows_.insert(row);
  return row;
}

Row Table::add(std::span<const Value> variables) {
  const Row row = take_row();
  put(row, variables);
  return row;
}

Row Table::add_failed(std::string message) {
  const Row row = take_row();
  put_failure(row, std::move(message));
  return row;
}

void Table::change(Row row, std::span<const Value> variables) {
  if (failed_.contains(row)) {
    failed_.erase(row);
    failures_.erase(row);
  }
  put(row, variables);
}

void Table::change_to_failed(Row row, std::string message) { put_failure(row, std::move(message)); }

void Table::remove(Row row) {
  if (!rows_.contains(row)) return;
  rows_.erase(row);
  failed_.erase(row);
  failures_.erase(row);
  put(row, {});
  free_.push_back(row);
}

void Table::put(Row row, std::span<const Value> variables) {
  for (std::size_t i = 0; i < stride_; ++i)
    values_[row * stride_ + i] = i < variables.size() ? variables[i] : Value();
  touch(row);
}

void Table::put_failure(Row row, std::string message) {
  failed_.insert(row);
  failures_[row] = std::move(message);
  put(row, {});
}

void Table::touch(Row row) {
  // Whoever is further behind than all rows are many starts over, so more need not be kept.
  if (journal_.size() > 4096 + 2 * std::size_t{end_}) {
    const auto kept = static_cast<std::ptrdiff_t>(journal_.size() / 2);
    journal_.erase(journal_.begin(), journal_.begin() + kept);
    journal_start_ += static_cast<std::uint64_t>(kept);
  }
  journal_.push_back(row);
}

const std::string* Table::failure(Row row) const {
  const auto found = failures_.find(row);
  return found == failures_.end() ? nullptr : &found->second;
}

bool Table::changes_since(std::uint64_t version, std::span<const Row>& out) const {
  if (version < journal_start_) return false;
  out = std::span(journal_).subspan(static_cast<std::size_t>(version - journal_start_));
  return true;
}

std::shared_ptr<Column> Table::column(const ColumnPath& path) {
  std::string name = path.name();
  if (const auto found = columns_.find(name); found != columns_.end()) {
    if (std::shared_ptr<Column> shared = found->second.lock()) return shared;
  }
  std::erase_if(columns_, [](const auto& entry) { return entry.second.expired(); });
  auto made = std::make_shared<Column>(path);
  columns_[std::move(name)] = made;
  return made;
}

}  // namespace dibs::cel
