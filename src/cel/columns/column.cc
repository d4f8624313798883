#include "cel/columns/column.h"

#include <algorithm>

namespace dibs::cel {

namespace {

/// Unused entries are kept up to this number: values that come and go keep their code.
constexpr std::size_t kKeptUnused = 1024;

/// Rows borrow their text from the host and may go away; an entry stays.
bool keep(const Value& value, Value& out) {
  switch (value.kind()) {
    case Kind::list:
    case Kind::map:
    case Kind::optional:
      return false;
    case Kind::string:
      out = Value::string(std::string(value.text()));
      return true;
    case Kind::bytes:
      out = Value::bytes(std::string(value.text()));
      return true;
    case Kind::type:
      out = Value::type(std::string(value.text()));
      return true;
    case Kind::error:
      out = Value::error(std::string(value.text()));
      return true;
    default:
      out = value;
      return true;
  }
}

}  // namespace

void Column::update(std::span<const std::shared_ptr<Column>> columns, const Table& table) {
  std::vector<Column*> left;
  for (const std::shared_ptr<Column>& column : columns) {
    if (column->version_ != table.version()) left.push_back(column.get());
  }
  while (!left.empty()) {
    const std::uint64_t version = left.front()->version_;
    const auto others = std::stable_partition(left.begin(), left.end(), [&](const Column* column) {
      return column->version_ == version;
    });
    const std::span<Column* const> group(left.begin(), others);
    for (Column* column : group) column->rows_.resize(table.words() * RowSet::kWordBits);
    std::span<const Row> changed;
    if (table.changes_since(version, changed)) {
      for (const Row row : changed) {
        for (Column* column : group) column->refresh(table, row);
      }
    } else {
      for (Row row = 0; row < table.end_; ++row) {
        for (Column* column : group) column->refresh(table, row);
      }
    }
    for (Column* column : group) column->end_update(table);
    left.erase(left.begin(), others);
  }
}

void Column::end_update(const Table& table) {
  version_ = table.version();
  if (unused_ > kKeptUnused && unused_ > entries_.size() / 2) sweep();
}

void Column::refresh(const Table& table, Row row) {
  const bool readable = table.rows_.contains(row) && !table.failed_.contains(row);
  const std::uint32_t code = readable ? intern(read_path(path_, table.variables(row))) : 0;
  if (code != 0 && entries_[code].rows++ == 0) --unused_;
  const std::uint32_t before = std::exchange(rows_[row], code);
  if (before != 0 && --entries_[before].rows == 0) ++unused_;
}

std::uint32_t Column::intern(const PathRead& read) {
  scratch_.clear();
  const bool lives = append_identity(scratch_, read);
  const auto found = codes_.find(std::string_view(scratch_));
  if (found != codes_.end()) return found->second;
  const auto code = static_cast<std::uint32_t>(entries_.size());
  Entry entry;
  entry.state = read.state;
  entry.step = read.step;
  entry.has_value = keep(read.value, entry.value);
  if (!entry.has_value && lives) entry.value = read.value;
  entry.identity = &codes_.emplace(scratch_, code).first->first;
  entries_.push_back(std::move(entry));
  ++unused_;
  return code;
}

void Column::sweep() {
  std::vector<std::uint32_t> moved(entries_.size(), 0);
  std::uint32_t used = 1;
  for (std::uint32_t code = 1; code < entries_.size(); ++code) {
    if (entries_[code].rows == 0) {
      codes_.erase(codes_.find(std::string_view(*entries_[code].identity)));
      continue;
    }
    moved[code] = used;
    codes_.find(std::string_view(*entries_[code].identity))->second = used;
    if (used != code) entries_[used] = std::move(entries_[code]);
    ++used;
  }
  entries_.resize(used);
  for (std::uint32_t& code : rows_) code = moved[code];
  unused_ = 0;
  ++epoch_;
}

}  // namespace dibs::cel
