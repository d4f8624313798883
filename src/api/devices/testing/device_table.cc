#include "api/devices/testing/device_table.h"

namespace dibs::api {

namespace {

/// The rows of a slice's devices by name, to find them in the slice's next version.
using Known = std::unordered_map<std::string_view, std::size_t>;

Known known_devices(const json::Value& slice) {
  Known made;
  const json::Value& devices = slice["spec"]["devices"];
  for (std::size_t i = 0; i < devices.size(); ++i) made.emplace(devices[i]["name"].as_string(), i);
  return made;
}

}  // namespace

cel::Row DeviceTable::add(std::string_view driver, const json::Value& device) {
  DeviceInput read = DeviceInput::read(driver, device, lists_);
  const cel::Row row =
      read.error().empty() ? rows_.add({&read.value(), 1}) : rows_.add_failed(read.error());
  if (devices_.size() <= row) devices_.resize(row + 1);
  devices_[row] = std::move(read);
  return row;
}

void DeviceTable::remove(cel::Row row) {
  rows_.remove(row);
  devices_[row].reset();
}

void DeviceTable::put_slice(std::string_view name, const json::Value& slice) {
  const auto found = slices_.find(name);
  Slice& kept = found != slices_.end() ? found->second : slices_[std::string(name)];
  const json::Value before = std::move(kept.object);
  const std::vector<cel::Row> old_rows = std::move(kept.rows);
  std::vector<bool> stays(old_rows.size());
  Known known = known_devices(before);
  const json::Value& driver = slice["spec"]["driver"];
  const bool same_driver = before["spec"]["driver"] == driver;

  kept.object = slice;
  kept.rows.clear();
  kept.rows.reserve(slice["spec"]["devices"].size());
  for (const json::Value& device : kept.object["spec"]["devices"].items()) {
    const auto old = known.find(device["name"].as_string());
    if (old == known.end()) {
      kept.rows.push_back(add(driver.as_string(), device));
      continue;
    }
    const cel::Row row = old_rows[old->second];
    const bool same = same_driver && before["spec"]["devices"][old->second] == device;
    stays[old->second] = true;
    known.erase(old);
    kept.rows.push_back(row);
    if (same) continue;
    DeviceInput read = DeviceInput::read(driver.as_string(), device, lists_);
    if (read.error().empty())
      rows_.change(row, {&read.value(), 1});
    else
      rows_.change_to_failed(row, read.error());
    devices_[row] = std::move(read);
  }
  for (std::size_t i = 0; i < old_rows.size(); ++i) {
    if (!stays[i]) remove(old_rows[i]);
  }
}

void DeviceTable::remove_slice(std::string_view name) {
  const auto found = slices_.find(name);
  if (found == slices_.end()) return;
  for (const cel::Row row : found->second.rows) remove(row);
  slices_.erase(found);
}

std::span<const cel::Row> DeviceTable::slice(std::string_view name) const {
  const auto found = slices_.find(name);
  if (found == slices_.end()) return {};
  return found->second.rows;
}

DeviceFilter::DeviceFilter(DeviceTable& table, Selector selector)
    : table_(table), selector_(std::move(selector)) {
  if (selector_.program != nullptr)
    filter_.emplace(table.rows_, selector_.program, kSelectorCostLimit);
}

void DeviceFilter::update() {
  if (filter_)
    filter_->update();
  else
    all_ = table_.rows();
}

DeviceMatch DeviceFilter::match(cel::Row row) const {
  return api::match(selector_, table_.device(row));
}

}  // namespace dibs::api
