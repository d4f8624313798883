#pragma once
// All devices at once, as rows that selectors are asked about.
//
// Devices come and go slice by slice. A device keeps its row while its slice lists it, and a slice
// that is written again costs work only for the devices that differ. A DeviceFilter has the answer
// of one selector to all of them and follows the changes; see cel/columns/columns.h.
//
// A table and its filters belong to one thread at a time.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/devices/device.h"
#include "api/devices/selector.h"
#include "cel/columns/columns.h"
#include "json/value.h"

namespace dibs::api {

class DeviceTable {
 public:
  /// `lists`: attributes may be lists; see lists_are_read().
  explicit DeviceTable(bool lists) : lists_(lists), rows_(1) {}

  /// A ResourceSlice of resource.k8s.io/v1, new or changed, under a name that its owner chooses.
  void put_slice(std::string_view name, const json::Value& slice);
  void remove_slice(std::string_view name);
  /// The devices of a slice in its order; empty when there is no such slice. Valid until the slice
  /// is put again or removed.
  std::span<const cel::Row> slice(std::string_view name) const;

  /// Requires a row of a slice.
  const DeviceInput& device(cel::Row row) const { return *devices_[row]; }
  const cel::RowSet& rows() const { return rows_.rows(); }

 private:
  friend class DeviceFilter;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  struct Slice {
    json::Value object;
    std::vector<cel::Row> rows;
  };

  cel::Row add(std::string_view driver, const json::Value& device);
  void remove(cel::Row row);

  bool lists_;
  cel::Table rows_;
  std::vector<std::optional<DeviceInput>> devices_;  // by row
  std::unordered_map<std::string, Slice, Hash, std::equal_to<>> slices_;
};

class DeviceFilter {
 public:
  /// The table outlives the filter.
  DeviceFilter(DeviceTable& table, Selector selector);

  void update();
  /// Devices that the selector chooses, as of the last update.
  const cel::RowSet& matching() const { return filter_ ? filter_->yes() : none_; }
  /// Devices that it cannot be asked about; match() tells why.
  const cel::RowSet& failing() const { return filter_ ? filter_->failed() : all_; }

  /// The device asked by itself.
  DeviceMatch match(cel::Row row) const;

 private:
  DeviceTable& table_;
  Selector selector_;
  std::optional<cel::Filter> filter_;  // none where the selector did not compile
  cel::RowSet none_;
  cel::RowSet all_;
};

}  // namespace dibs::api
