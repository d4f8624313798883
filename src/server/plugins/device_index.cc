#include "server/plugins/device_index.h"

#include <algorithm>
#include <set>

#include "api/kinds/pod_resources.h"
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
      holds.push_back({cat(handle["driverName"].as_string(), "/", data["nodeName"].as_string(),
                           "/", result["namedResources"]["name"].as_string()),
                       handle["driverName"].str(), "", nullptr});
    }
  }
  return holds;
}

void DeviceIndex::hold(const std::string& key, const void* write,
                       const std::vector<DeviceHold>& holds) {
  for (const DeviceHold& one : holds) {
    holders_[one.device].push_back({key, write, one.share, one.consumed});
  }
}

void DeviceIndex::let_go(const std::string& key, const void* write,
                         const std::vector<DeviceHold>& holds) {
  for (const DeviceHold& one : holds) {
    auto found = holders_.find(one.device);
    if (found == holders_.end()) continue;
    std::erase_if(found->second, [&](const Holder& holder) {
      return holder.claim == key && holder.write == write;
    });
    if (found->second.empty()) holders_.erase(found);
  }
}

void DeviceIndex::put_claim(const std::string& key, const Value& claim) {
  remove_claim(key);
  std::vector<DeviceHold> holds = holds_of(claim);
  if (holds.empty()) return;
  hold(key, nullptr, holds);
  claims_[key] = std::move(holds);
}

void DeviceIndex::remove_claim(const std::string& key) {
  auto found = claims_.find(key);
  if (found == claims_.end()) return;
  let_go(key, nullptr, found->second);
  claims_.erase(found);
}

void DeviceIndex::clear_claims() {
  for (const auto& [key, holds] : claims_) let_go(key, nullptr, holds);
  claims_.clear();
}

void DeviceIndex::reserve(const void* write, const std::string& key,
                          std::vector<DeviceHold> holds) {
  release(write);
  hold(key, write, holds);
  reserved_.emplace(write, std::pair(key, std::move(holds)));
}

void DeviceIndex::release(const void* write) {
  auto found = reserved_.find(write);
  if (found == reserved_.end()) return;
  let_go(found->second.first, write, found->second.second);
  reserved_.erase(found);
}

void DeviceIndex::put_slice(const std::string& key, const Value& slice) {
  remove_slice(key);
  const Value& spec = slice["spec"];
  std::string prefix =
      cat(spec["driver"].as_string(), "/", spec["pool"]["name"].as_string(), "/");
  std::vector<std::string> devices;
  for (const Value& device : spec["devices"].items()) {
    std::string id = cat(prefix, device["name"].as_string());
    published_[id][key] = {spec["pool"]["generation"].as_int(),
                           device["allowMultipleAllocations"].as_bool(), device["capacity"]};
    devices.push_back(std::move(id));
  }
  if (!devices.empty()) slices_[key] = std::move(devices);
}

void DeviceIndex::remove_slice(const std::string& key) {
  auto found = slices_.find(key);
  if (found == slices_.end()) return;
  for (const std::string& device : found->second) {
    auto published = published_.find(device);
    if (published == published_.end()) continue;
    published->second.erase(key);
    if (published->second.empty()) published_.erase(published);
  }
  slices_.erase(found);
}

void DeviceIndex::clear_slices() {
  published_.clear();
  slices_.clear();
}

const DeviceIndex::Published* DeviceIndex::published(const std::string& device) const {
  auto found = published_.find(device);
  if (found == published_.end()) return nullptr;
  const Published* newest = nullptr;
  for (const auto& [slice, one] : found->second) {
    if (newest == nullptr || one.generation > newest->generation) newest = &one;
  }
  return newest;
}

std::string DeviceIndex::over_capacity(const std::string& key,
                                       const std::vector<DeviceHold>& holds, const DeviceHold& one,
                                       const Published& device) const {
  api::Amounts sum;
  for (const DeviceHold& own : holds) {
    if (own.device == one.device) add_consumed(own.consumed, one.driver, sum);
  }
  // A claim whose write is on its way may be there stored as well: its share counts once.
  std::set<std::pair<std::string, std::string>> counted;
  for (const Holder& holder : holders_.find(one.device)->second) {
    if (holder.claim == key || !counted.insert({holder.claim, holder.share}).second) continue;
    add_consumed(holder.consumed, one.driver, sum);
  }
  for (const auto& [name, capacity] : device.capacity.members()) {
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
    auto found = holders_.find(one.device);
    if (found == holders_.end()) continue;
    const Published* device = published(one.device);
    const Holder* other = nullptr;
    for (const Holder& holder : found->second) {
      if (holder.claim == key) continue;
      other = &holder;
      if (one.share.empty() || holder.share.empty()) {
        return Conflict{one.device, holder.claim, ""};
      }
      if (one.share == holder.share) {
        return Conflict{one.device, holder.claim, cat("both under the share ", one.share)};
      }
      if (device != nullptr && !device->shared) {
        return Conflict{one.device, holder.claim, "the device is not published as shareable"};
      }
    }
    if (other == nullptr || device == nullptr) continue;
    std::string over = over_capacity(key, holds, one, *device);
    if (!over.empty()) return Conflict{one.device, other->claim, over};
  }
  return std::nullopt;
}

}  // namespace dibs::server
