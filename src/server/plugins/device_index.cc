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

void add_consumed(const Value& consumed, std::string_view driver, api::Amounts& sum) {
  api::Amounts amounts;
  for (const auto& [name, amount] : consumed.members()) {
    amounts.emplace(std::string(short_name(name, driver)), api::quantity_of(amount));
  }
  api::add_amounts(sum, amounts);
}

constexpr std::string_view kNamedResource = "named resource ";

}  // namespace

std::string_view short_name(std::string_view name, std::string_view driver) {
  if (name.size() > driver.size() + 1 && name.substr(0, driver.size()) == driver &&
      name[driver.size()] == '/') {
    return name.substr(driver.size() + 1);
  }
  return name;
}

std::vector<DeviceHold> holds_of(const Value& claim) {
  std::vector<DeviceHold> holds;
  const Value& allocation = claim["status"]["allocation"];
  for (const Value& result : allocation["devices"]["results"].items()) {
    if (result["adminAccess"].as_bool()) continue;
    holds.push_back({device_of(result), result["driver"].str(), result["shareID"].str(),
                     result["consumedCapacity"]});
  }
  // Named resources of the classic model: instances of a node. They are no devices, even where a
  // driver gives both the same names.
  for (const Value& handle : allocation["resourceHandles"].items()) {
    const Value& data = handle["structuredData"];
    for (const Value& result : data["results"].items()) {
      holds.push_back(
          {cat(kNamedResource, handle["driverName"].as_string(), "/", data["nodeName"].as_string(),
               "/", result["namedResources"]["name"].as_string()),
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

void DeviceIndex::put_slice(const std::string& key, const Value& object) {
  remove_slice(key);
  const Value& spec = object["spec"];
  if (spec["devices"].empty() && spec["sharedCounters"].empty()) return;
  auto& [kept, slice] = *slices_.try_emplace(key).first;
  slice.pool = cat(spec["driver"].as_string(), "/", spec["pool"]["name"].as_string(), "/");
  slice.devices.reserve(spec["devices"].size());
  for (const Value& device : spec["devices"].items()) {
    DeviceEntry& entry = *devices_.try_emplace(cat(slice.pool, device["name"].as_string())).first;
    std::vector<Published>& published = entry.second.published;
    // Named twice by one slice, which no server takes: the first counts.
    if (std::any_of(published.begin(), published.end(),
                    [&kept = kept](const Published& p) { return p.slice == &kept; })) {
      continue;
    }
    const bool shared = device["allowMultipleAllocations"].as_bool();
    published.reserve(published.size() + 1);
    published.push_back({&kept, spec["pool"]["generation"].as_int(), shared,
                         shared ? device["capacity"] : Value(), device["consumesCounters"]});
    for (const Value& used : device["consumesCounters"].items())
      ++counters_[cat(slice.pool, used["counterSet"].as_string())].consumers[&entry];
    slice.devices.push_back(&entry);
  }
  put_counters(kept, slice, spec);
}

void DeviceIndex::put_counters(const std::string& key, Slice& slice, const Value& spec) {
  for (const Value& set : spec["sharedCounters"].items()) {
    slice.counter_sets.push_back(cat(slice.pool, set["name"].as_string()));
    counters_[slice.counter_sets.back()].published.push_back(
        {&key, spec["pool"]["generation"].as_int(), set["counters"]});
  }
}

void DeviceIndex::withdraw(const std::string& key, const Slice& slice) {
  std::set<DeviceEntry*> unused;
  for (DeviceEntry* device : slice.devices) {
    std::vector<Published>& published = device->second.published;
    for (const Published& one : published) {
      if (one.slice != &key) continue;
      for (const Value& used : one.consumes.items()) {
        const std::string name = cat(slice.pool, used["counterSet"].as_string());
        auto& consumers = counters_[name].consumers;
        if (auto found = consumers.find(device); found != consumers.end() && --found->second == 0)
          consumers.erase(found);
        forget_if_unused(name);
      }
    }
    std::erase_if(published, [&](const Published& one) { return one.slice == &key; });
    if (published.empty() && device->second.holders.empty()) unused.insert(device);
  }
  for (DeviceEntry* device : unused) forget_if_unused(*device);
  for (const std::string& name : slice.counter_sets) {
    std::erase_if(counters_[name].published, [&](const auto& one) { return one.slice == &key; });
    forget_if_unused(name);
  }
}

void DeviceIndex::forget_if_unused(const std::string& counter_set) {
  auto found = counters_.find(counter_set);
  if (found->second.published.empty() && found->second.consumers.empty()) counters_.erase(found);
}

void DeviceIndex::remove_slice(const std::string& key) {
  auto found = slices_.find(key);
  if (found == slices_.end()) return;
  withdraw(found->first, found->second);
  slices_.erase(found);
}

void DeviceIndex::clear_slices() {
  for (const auto& [key, slice] : slices_) withdraw(key, slice);
  slices_.clear();
}

const DeviceIndex::Published* DeviceIndex::newest(const Device& device) {
  const Published* newest = nullptr;
  for (const Published& one : device.published) {
    if (newest == nullptr || one.generation > newest->generation) newest = &one;
  }
  return newest;
}

std::vector<std::string> DeviceIndex::counter_sets_of(const std::vector<DeviceHold>& holds) const {
  std::vector<std::string> sets;
  for (const DeviceHold& one : holds) {
    auto found = devices_.find(one.device);
    if (found == devices_.end()) continue;
    const std::string pool = one.device.substr(0, one.device.rfind('/') + 1);
    for (const Published& published : found->second.published) {
      for (const Value& used : published.consumes.items())
        sets.push_back(cat(pool, used["counterSet"].as_string()));
    }
  }
  return sets;
}

bool DeviceIndex::depends_on_slices(const std::vector<DeviceHold>& holds) const {
  return std::any_of(holds.begin(), holds.end(), [this](const DeviceHold& one) {
    if (one.device.starts_with(kNamedResource)) return false;
    auto found = devices_.find(one.device);
    const Published* published = found == devices_.end() ? nullptr : newest(found->second);
    return published == nullptr || published->shared || !one.share.empty() ||
           !published->consumes.empty();
  });
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

std::optional<DeviceIndex::Conflict> DeviceIndex::over_counters(
    const std::string& key, const std::vector<DeviceHold>& holds, const DeviceHold& one,
    const Published& published) const {
  const std::string pool = one.device.substr(0, one.device.rfind('/') + 1);
  for (const Value& wanted : published.consumes.items()) {
    const std::string name = cat(pool, wanted["counterSet"].as_string());
    auto found = counters_.find(name);
    if (found == counters_.end() || found->second.published.empty()) continue;
    const auto& sets = found->second.published;
    const auto newest_set =
        std::max_element(sets.begin(), sets.end(),
                         [](const auto& a, const auto& b) { return a.generation < b.generation; });
    // Each device that is held counts once, by however many.
    api::Amounts sum;
    std::string other;
    for (const auto& [device, slices] : found->second.consumers) {
      const auto& holders = device->second.holders;
      const auto by_other = std::find_if(holders.begin(), holders.end(),
                                         [&](const Holder& h) { return *h.claim != key; });
      const bool own = std::any_of(holds.begin(), holds.end(), [&, entry = device](const auto& h) {
        return h.device == entry->first;
      });
      if (!own && by_other == holders.end()) continue;
      if (by_other != holders.end()) other = *by_other->claim;
      for (const Value& used : newest(device->second)->consumes.items()) {
        if (used["counterSet"] != wanted["counterSet"]) continue;
        api::Amounts amounts;
        for (const auto& [counter, amount] : used["counters"].members())
          amounts.emplace(counter, api::quantity_of(amount["value"]));
        api::add_amounts(sum, amounts);
      }
    }
    for (const auto& [counter, amount] : newest_set->counters.members()) {
      auto used = sum.find(counter);
      if (used == sum.end() || used->second <= api::quantity_of(amount["value"])) continue;
      return Conflict{one.device, other.empty() ? key : other,
                      cat("with what ", other.empty() ? "it" : cat("claim ", other), " holds, ",
                          used->second.str(), " of counter ", counter, " of counter set ",
                          wanted["counterSet"].as_string(), " would be used, which is ",
                          amount["value"].as_string())};
    }
  }
  return std::nullopt;
}

std::optional<DeviceIndex::Conflict> DeviceIndex::conflict(
    const std::string& key, const std::vector<DeviceHold>& holds) const {
  for (const DeviceHold& one : holds) {
    auto found = devices_.find(one.device);
    if (found == devices_.end()) continue;
    const Device& device = found->second;
    const Published* published = newest(device);
    const std::string* holder_key = &key;
    const auto taken = [&](std::string_view more) {
      return Conflict{
          one.device, *holder_key,
          cat("it is allocated to claim ", *holder_key, more.empty() ? "" : ", and ", more)};
    };
    for (const Holder& holder : device.holders) {
      if (*holder.claim == key) continue;
      holder_key = holder.claim;
      if (one.share.empty() || holder.share.is_null()) return taken("");
      if (one.share == holder.share.as_string())
        return taken(cat("both under the share ", one.share));
      if (published != nullptr && !published->shared)
        return taken("the device is not published as shareable");
    }
    if (published == nullptr) continue;
    std::string over = over_capacity(key, holds, one, device);
    if (!over.empty()) return taken(over);
    if (auto too_much = over_counters(key, holds, one, *published)) return too_much;
  }
  return std::nullopt;
}

}  // namespace dibs::server
