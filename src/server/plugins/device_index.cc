#include "server/plugins/device_index.h"

#include <algorithm>
#include <set>

#include "api/kinds/pod/resources.h"
#include "base/strings.h"

namespace dibs::server {
namespace {

std::string device_of(const Value& result) {
  return cat(result["driver"].as_string(), "/", result["pool"].as_string(), "/",
             result["device"].as_string());
}

// Capacities of the driver's own domain are named with or without it.
std::string_view short_name(std::string_view name, std::string_view driver) {
  if (name.size() > driver.size() + 1 && name.substr(0, driver.size()) == driver &&
      name[driver.size()] == '/') {
    return name.substr(driver.size() + 1);
  }
  return name;
}

void add_consumed(const Value& consumed, std::string_view driver, api::Amounts& sum) {
  api::Amounts amounts;
  for (const auto& [name, amount] : consumed.members()) {
    amounts.emplace(std::string(short_name(name, driver)), api::quantity_of(amount));
  }
  api::add_amounts(sum, amounts);
}

}  // namespace

std::vector<DeviceHold> holds_of(const Value& claim) {
  std::vector<DeviceHold> holds;
  const Value& allocation = claim["status"]["allocation"];
  for (const Value& result : allocation["devices"]["results"].items()) {
    if (result["adminAccess"].as_bool()) continue;
    holds.push_back({device_of(result), result["driver"].str(), result["shareID"].str(),
                     result["consumedCapacity"]});
  }
  // Named resources of the classic model: instances of a node.
  for (const Value& handle : allocation["resourceHandles"].items()) {
    const Value& data = handle["structuredData"];
    for (const Value& result : data["results"].items()) {
      holds.push_back({cat(handle["driverName"].as_string(), "/", data["nodeName"].as_string(), "/",
                           result["namedResources"]["name"].as_string()),
                       handle["driverName"].str(), "", nullptr});
    }
  }
  return holds;
}

DeviceIndex::DeviceList DeviceIndex::hold(const std::string& key, Reservation reservation,
                                          const std::vector<DeviceHold>& holds) {
  DeviceList devices;
  devices.reserve(holds.size());
  for (const DeviceHold& one : holds) {
    DeviceEntry& device = *devices_.try_emplace(one.device).first;
    std::vector<Holder>& holders = device.second.holders;
    if (holders.empty()) ++held_;
    holders.reserve(holders.size() + 1);
    holders.push_back(
        {&key, reservation, one.share.empty() ? Value() : Value(one.share), one.consumed});
    devices.push_back(&device);
  }
  return devices;
}

void DeviceIndex::let_go(const std::string& key, Reservation reservation,
                         const DeviceList& devices) {
  for (DeviceEntry* device : devices) {
    std::vector<Holder>& holders = device->second.holders;
    if (holders.empty()) continue;  // named twice by one claim
    std::erase_if(holders, [&](const Holder& holder) {
      return holder.reservation == reservation && *holder.claim == key;
    });
    if (holders.empty()) --held_;
  }
  // At last: a claim may name one device several times.
  std::set<DeviceEntry*> seen;
  for (DeviceEntry* device : devices) {
    if (devices.size() == 1 || seen.insert(device).second) forget_if_unused(*device);
  }
}

void DeviceIndex::forget_if_unused(DeviceEntry& device) {
  if (device.second.holders.empty() && device.second.published.empty()) {
    devices_.erase(devices_.find(device.first));
  }
}

void DeviceIndex::put_claim(const std::string& key, const Value& claim) {
  remove_claim(key);
  const std::vector<DeviceHold> holds = holds_of(claim);
  if (holds.empty()) return;
  auto& [kept, devices] = *claims_.try_emplace(key).first;
  devices = hold(kept, 0, holds);
}

void DeviceIndex::remove_claim(const std::string& key) {
  auto found = claims_.find(key);
  if (found == claims_.end()) return;
  let_go(found->first, 0, found->second);
  claims_.erase(found);
}

void DeviceIndex::clear_claims() {
  for (const auto& [key, devices] : claims_) let_go(key, 0, devices);
  claims_.clear();
}

DeviceIndex::Reservation DeviceIndex::reserve(const std::string& key,
                                              const std::vector<DeviceHold>& holds) {
  auto& [kept, devices] = reserved_[++last_reservation_];
  kept = key;
  devices = hold(kept, last_reservation_, holds);
  return last_reservation_;
}

void DeviceIndex::release(Reservation reservation) {
  auto found = reserved_.find(reservation);
  if (found == reserved_.end()) return;
  let_go(found->second.first, reservation, found->second.second);
  reserved_.erase(found);
}

void DeviceIndex::put_slice(const std::string& key, const Value& slice) {
  remove_slice(key);
  const Value& spec = slice["spec"];
  if (spec["devices"].empty()) return;
  std::string prefix = cat(spec["driver"].as_string(), "/", spec["pool"]["name"].as_string(), "/");
  auto& [kept, devices] = *slices_.try_emplace(key).first;
  devices.reserve(spec["devices"].size());
  for (const Value& device : spec["devices"].items()) {
    DeviceEntry& entry = *devices_.try_emplace(cat(prefix, device["name"].as_string())).first;
    std::vector<Published>& published = entry.second.published;
    std::erase_if(published, [&kept = kept](const Published& p) { return p.slice == &kept; });
    const bool shared = device["allowMultipleAllocations"].as_bool();
    published.reserve(published.size() + 1);
    published.push_back({&kept, spec["pool"]["generation"].as_int(), shared,
                         shared ? device["capacity"] : Value()});
    devices.push_back(&entry);
  }
}

void DeviceIndex::withdraw(const std::string& slice, const DeviceList& devices) {
  std::set<DeviceEntry*> unused;
  for (DeviceEntry* device : devices) {
    std::vector<Published>& published = device->second.published;
    std::erase_if(published, [&](const Published& one) { return one.slice == &slice; });
    if (published.empty() && device->second.holders.empty()) unused.insert(device);
  }
  for (DeviceEntry* device : unused) forget_if_unused(*device);
}

void DeviceIndex::remove_slice(const std::string& key) {
  auto found = slices_.find(key);
  if (found == slices_.end()) return;
  withdraw(found->first, found->second);
  slices_.erase(found);
}

void DeviceIndex::clear_slices() {
  for (const auto& [key, devices] : slices_) withdraw(key, devices);
  slices_.clear();
}

const DeviceIndex::Published* DeviceIndex::newest(const Device& device) {
  const Published* newest = nullptr;
  for (const Published& one : device.published) {
    if (newest == nullptr || one.generation > newest->generation) newest = &one;
  }
  return newest;
}

std::string DeviceIndex::over_capacity(const std::string& key, const std::vector<DeviceHold>& holds,
                                       const DeviceHold& one, const Device& device) const {
  api::Amounts sum;
  for (const DeviceHold& own : holds) {
    if (own.device == one.device) add_consumed(own.consumed, one.driver, sum);
  }
  // A claim whose write is on its way may be there stored as well: its share counts once.
  std::set<std::pair<std::string_view, std::string_view>> counted;
  for (const Holder& holder : device.holders) {
    if (*holder.claim == key || !counted.insert({*holder.claim, holder.share.as_string()}).second) {
      continue;
    }
    add_consumed(holder.consumed, one.driver, sum);
  }
  for (const auto& [name, capacity] : newest(device)->capacity.members()) {
    auto used = sum.find(short_name(name, one.driver));
    if (used == sum.end() || used->second <= api::quantity_of(capacity["value"])) continue;
    return cat("together they would use ", used->second.str(), " of its ", name, ", which is ",
               capacity["value"].as_string());
  }
  return "";
}

std::optional<DeviceIndex::Conflict> DeviceIndex::conflict(
    const std::string& key, const std::vector<DeviceHold>& holds) const {
  for (const DeviceHold& one : holds) {
    auto found = devices_.find(one.device);
    if (found == devices_.end()) continue;
    const Device& device = found->second;
    const Published* published = newest(device);
    const Holder* other = nullptr;
    for (const Holder& holder : device.holders) {
      if (*holder.claim == key) continue;
      other = &holder;
      if (one.share.empty() || holder.share.is_null()) {
        return Conflict{one.device, *holder.claim, ""};
      }
      if (one.share == holder.share.as_string()) {
        return Conflict{one.device, *holder.claim, cat("both under the share ", one.share)};
      }
      if (published != nullptr && !published->shared) {
        return Conflict{one.device, *holder.claim, "the device is not published as shareable"};
      }
    }
    if (other == nullptr || published == nullptr) continue;
    std::string over = over_capacity(key, holds, one, device);
    if (!over.empty()) return Conflict{one.device, *other->claim, over};
  }
  return std::nullopt;
}

}  // namespace dibs::server
