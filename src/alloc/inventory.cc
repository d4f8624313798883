#include "alloc/inventory.h"

#include <algorithm>

#include "alloc/view.h"
#include "base/strings.h"

namespace dibs::alloc {
namespace {

api::SelectorEnvironment environment_of(const Features& features) {
  api::SelectorEnvironment made;
  made.stored = true;
  made.consumable_capacity = features.consumable_capacity;
  made.list_attributes = features.list_attributes;
  return made;
}

std::string use_key(std::string_view driver, std::string_view pool, std::string_view device) {
  return cat(driver, "/", pool, "\n", device);
}

template <typename T>
void erase_one(std::vector<T>& from, const T& value) {
  if (const auto at = std::find(from.begin(), from.end(), value); at != from.end()) from.erase(at);
}

/// Whether the devices of a slice can take the places of those that it had before.
bool is_successor(const SliceRecord& record, const SliceRecord& old) {
  return !record.dropped && !old.dropped && !record.slice.devices.empty() &&
         record.slice.devices.size() == old.slice.devices.size() &&
         record.slice.driver == old.slice.driver;
}

bool is_plain(const Slice& slice, const Device& device) {
  return !device.multiple && !device.binding_conditions && device.consumptions.empty() &&
         device.taints.empty() && slice.skip_operations.is_null() &&
         std::all_of(device.capacities.begin(), device.capacities.end(),
                     [](const Capacity& capacity) {
                       return capacity.policy == nullptr && capacity.amount >= 0;
                     });
}

void insert_by_arrival(std::vector<SliceRecord*>& into, SliceRecord* record) {
  const auto later = [](const SliceRecord* a, const SliceRecord* b) {
    return a->arrival < b->arrival;
  };
  into.insert(std::upper_bound(into.begin(), into.end(), record, later), record);
}

}  // namespace

Inventory::Inventory(const Features& features, Resources resources)
    : features_(features),
      resources_(resources),
      selectors_(resources, environment_of(features)),
      attributes_(environment_of(features), features.list_attributes) {}

Inventory::~Inventory() = default;

void Inventory::judge(SliceRecord& record) const {
  const Slice& slice = record.slice;
  record.unseen =
      !features_.partitionable_devices && (slice.states_per_device || !slice.counter_sets.empty());
  record.dropped = !features_.compatibility_groups && slice.has_groups;
}

void Inventory::put(std::string_view key, const json::Value& slice) {
  std::unique_ptr<SliceRecord>& record = records_[std::string(key)];
  std::unique_ptr<SliceRecord> old = std::move(record);
  record = std::make_unique<SliceRecord>();
  record->key = key;
  record->slice = resources_ == Resources::named ? Slice::read_named(slice) : Slice::read(slice);
  judge(*record);
  record->arrival = old ? old->arrival : ++arrivals_;
  // A slice of the same size keeps its rows; devices that did not change then keep what is known
  // about them.
  if (old) detach(*old, !is_successor(*record, *old));
  attach(*record, old.get());
}

bool Inventory::remove(std::string_view key) {
  const auto at = records_.find(std::string(key));
  if (at == records_.end()) return false;
  detach(*at->second, true);
  records_.erase(at);
  return true;
}

Row Inventory::allocate_rows(std::size_t count) {
  auto fit = free_rows_.lower_bound(count);
  if (fit != free_rows_.end()) {
    const std::size_t length = fit->first;
    const Row first = fit->second.back();
    fit->second.pop_back();
    if (fit->second.empty()) free_rows_.erase(fit);
    if (length > count) free_rows_[length - count].push_back(first + static_cast<Row>(count));
    return first;
  }
  const Row first = static_cast<Row>(rows_.size());
  rows_.resize(rows_.size() + count);
  return first;
}

void Inventory::fill_row(Row row, const SliceRecord& record, const Device& device) {
  RowInfo& info = rows_[row];
  info.record = &record;
  info.device = &device;
  info.use = use_id(record.slice.driver, record.slice.pool, device.name);
  info.plain = is_plain(record.slice, device);
  info.counters.reset();
  uses_[info.use].rows.push_back(row);
}

void Inventory::attach(SliceRecord& record, const SliceRecord* old) {
  if (record.dropped) return;
  Slice& slice = record.slice;
  Pool& pool = pools_[{slice.driver, slice.pool}];
  if (pool.driver.empty()) {
    pool.driver = slice.driver;
    pool.name = slice.pool;
  }
  record.pool = &pool;
  Generation& generation = pool.generations[slice.generation];
  generation.number = slice.generation;
  generation.resolved = false;
  insert_by_arrival(generation.slices, &record);
  record.generation = &generation;
  if (slice.nodes.node_name.empty()) {
    insert_by_arrival(elsewhere_, &record);
  } else {
    insert_by_arrival(by_node_[slice.nodes.node_name], &record);
  }
  touch(pool);
  if (slice.devices.empty()) return;
  const bool in_place = old != nullptr && is_successor(record, *old);
  record.first_row = in_place ? old->first_row : allocate_rows(slice.devices.size());
  for (std::size_t i = 0; i < slice.devices.size(); ++i) {
    const Row row = record.first_row + static_cast<Row>(i);
    fill_row(row, record, slice.devices[i]);
    if (in_place && old->slice.devices[i].source == slice.devices[i].source) continue;
    selectors_.put(row, slice.driver, slice.devices[i].source);
    attributes_.forget(row);
  }
}

void Inventory::detach(SliceRecord& record, bool gone) {
  if (record.dropped) return;
  Pool& pool = *record.pool;
  touch(pool);
  const Slice& slice = record.slice;
  for (std::size_t i = 0; i < slice.devices.size(); ++i) {
    const Row row = record.first_row + static_cast<Row>(i);
    erase_one(uses_[rows_[row].use].rows, row);
    rows_[row] = RowInfo{};
    if (gone) selectors_.remove(row);
  }
  if (gone && !slice.devices.empty()) {
    free_rows_[slice.devices.size()].push_back(record.first_row);
  }
  std::vector<SliceRecord*>& indexed =
      slice.nodes.node_name.empty() ? elsewhere_ : by_node_[slice.nodes.node_name];
  erase_one(indexed, &record);
  if (indexed.empty() && !slice.nodes.node_name.empty()) by_node_.erase(slice.nodes.node_name);
  record.generation->resolved = false;
  erase_one(record.generation->slices, &record);
  if (record.generation->slices.empty()) pool.generations.erase(slice.generation);
  if (pool.generations.empty()) pools_.erase({slice.driver, slice.pool});
}

void Inventory::touch(const Pool& pool) {
  for (const auto& [number, generation] : pool.generations) {
    for (const SliceRecord* record : generation.slices) {
      const std::string& name = record->slice.nodes.node_name;
      if (name.empty()) {
        ++shared_epoch_;
        return;
      }
      if (const auto at = views_.find(name); at != views_.end()) at->second->stale = true;
    }
  }
}

void Inventory::resolve(Generation& generation) {
  if (generation.resolved) return;
  generation.resolved = true;
  generation.sets.clear();
  generation.counters.clear();
  generation.declared.clear();
  std::unordered_map<std::string, std::uint32_t> sets;
  std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> counters;
  for (const SliceRecord* record : generation.slices) {
    for (const CounterSet& set : record->slice.counter_sets) {
      const auto id = static_cast<std::uint32_t>(generation.sets.size());
      if (!sets.try_emplace(set.name, id).second) continue;
      generation.sets.push_back(set.name);
      for (const CounterAmount& counter : set.counters) {
        counters.try_emplace({id, counter.name},
                             static_cast<std::uint32_t>(generation.counters.size()));
        generation.counters.emplace_back(id, counter.name);
        generation.declared.push_back(counter.amount);
      }
    }
  }
  generation.available = generation.declared;
  generation.members.assign(generation.sets.size(), {});
  for (const SliceRecord* record : generation.slices) {
    for (std::size_t i = 0; i < record->slice.devices.size(); ++i) {
      RowInfo& row = rows_[record->first_row + i];
      row.counters.reset();
      if (row.device->consumptions.empty()) continue;
      row.counters = std::make_unique<RowCounters>();
      for (const Consumption& consumption : row.device->consumptions) {
        const auto set = sets.find(consumption.set);
        if (set == sets.end()) continue;
        SetUse used;
        used.set = set->second;
        for (const std::string& group : consumption.groups) used.groups.push_back(group_id(group));
        row.counters->sets.push_back(std::move(used));
        for (const CounterAmount& counter : consumption.counters) {
          const auto at = counters.find({set->second, counter.name});
          if (at != counters.end()) row.counters->counters.push_back({at->second, counter.amount});
        }
      }
      if (uses_[row.use].allocated()) count(row, 1);
    }
  }
}

void Inventory::count(const RowInfo& row, int sign) {
  if (row.counters == nullptr) return;
  Generation& generation = *row.record->generation;
  for (const CounterUse& use : row.counters->counters) {
    generation.available[use.counter] -= sign * use.amount;
  }
  for (const SetUse& use : row.counters->sets) {
    SetMembers& members = generation.members[use.set];
    members.members += static_cast<std::uint32_t>(sign);
    if (use.groups.empty()) members.without_groups += static_cast<std::uint32_t>(sign);
    for (const std::uint32_t group : use.groups) {
      auto at = std::find_if(members.groups.begin(), members.groups.end(),
                             [group](const auto& entry) { return entry.first == group; });
      if (at == members.groups.end()) at = members.groups.insert(at, {group, 0});
      at->second += static_cast<std::uint32_t>(sign);
    }
  }
}

std::uint32_t Inventory::group_id(const std::string& name) {
  const auto [at, added] =
      group_ids_.try_emplace(name, static_cast<std::uint32_t>(group_names_.size()));
  if (added) group_names_.push_back(name);
  return at->second;
}

std::uint32_t Inventory::use_id(std::string_view driver, std::string_view pool,
                                std::string_view device) {
  const auto [at, added] =
      use_ids_.try_emplace(use_key(driver, pool, device), static_cast<std::uint32_t>(uses_.size()));
  if (added) uses_.emplace_back();
  return at->second;
}

template <typename Change>
void Inventory::change_use(std::string_view driver, std::string_view pool, std::string_view device,
                           Change change) {
  DeviceUse& use = uses_[use_id(driver, pool, device)];
  const bool before = use.allocated();
  change(use);
  const bool after = use.allocated();
  if (before == after) return;
  for (const Row row : use.rows) {
    const RowInfo& info = rows_[row];
    if (info.record->generation->resolved) count(info, after ? 1 : -1);
  }
}

void Inventory::take_device(std::string_view driver, std::string_view pool,
                            std::string_view device) {
  change_use(driver, pool, device, [](DeviceUse& use) { ++use.exclusive; });
}

void Inventory::release_device(std::string_view driver, std::string_view pool,
                               std::string_view device) {
  change_use(driver, pool, device, [](DeviceUse& use) {
    if (use.exclusive > 0) --use.exclusive;
  });
}

void Inventory::take_share(std::string_view driver, std::string_view pool,
                           std::string_view device) {
  change_use(driver, pool, device, [](DeviceUse& use) { ++use.shares; });
}

void Inventory::release_share(std::string_view driver, std::string_view pool,
                              std::string_view device) {
  change_use(driver, pool, device, [](DeviceUse& use) {
    if (use.shares > 0) --use.shares;
  });
}

namespace {

void consume(DeviceUse& use, const json::Value& consumed, int sign) {
  for (const auto& [name, value] : consumed.members()) {
    auto at = std::find_if(use.consumed.begin(), use.consumed.end(),
                           [&name = name](const auto& entry) { return entry.first == name; });
    if (at == use.consumed.end()) at = use.consumed.insert(at, {std::string(name), 0});
    at->second += sign * to_amount(read_quantity(value));
  }
}

}  // namespace

void Inventory::take_capacity(std::string_view driver, std::string_view pool,
                              std::string_view device, const json::Value& consumed) {
  change_use(driver, pool, device, [&](DeviceUse& use) {
    ++use.capacity_entries;
    consume(use, consumed, 1);
  });
}

void Inventory::release_capacity(std::string_view driver, std::string_view pool,
                                 std::string_view device, const json::Value& consumed) {
  change_use(driver, pool, device, [&](DeviceUse& use) {
    if (use.capacity_entries == 0) return;
    --use.capacity_entries;
    consume(use, consumed, -1);
    if (use.capacity_entries == 0) use.consumed.clear();
  });
}

void Inventory::change_named(const json::Value& allocation, bool taking) {
  for (const json::Value& handle : allocation["resourceHandles"].items()) {
    const json::Value& data = handle["structuredData"];
    const std::string_view driver = handle["driverName"].as_string();
    const std::string_view pool = data["nodeName"].as_string();
    for (const json::Value& result : data["results"].items()) {
      const std::string_view name = result["namedResources"]["name"].as_string();
      taking ? take_device(driver, pool, name) : release_device(driver, pool, name);
    }
  }
}

void Inventory::change(const json::Value& allocation, bool taking) {
  if (resources_ == Resources::named) return change_named(allocation, taking);
  for (const json::Value& result : allocation["devices"]["results"].items()) {
    // Access for administration takes nothing away from others.
    if (result["adminAccess"].as_bool()) continue;
    const std::string_view driver = result["driver"].as_string();
    const std::string_view pool = result["pool"].as_string();
    const std::string_view device = result["device"].as_string();
    if (!features_.consumable_capacity || result["shareID"].is_null()) {
      taking ? take_device(driver, pool, device) : release_device(driver, pool, device);
      continue;
    }
    taking ? take_share(driver, pool, device) : release_share(driver, pool, device);
    const json::Value& consumed = result["consumedCapacity"];
    if (consumed.is_null()) continue;
    taking ? take_capacity(driver, pool, device, consumed)
           : release_capacity(driver, pool, device, consumed);
  }
}

void Inventory::take(const json::Value& allocation) { change(allocation, true); }
void Inventory::release(const json::Value& allocation) { change(allocation, false); }

}  // namespace dibs::alloc
