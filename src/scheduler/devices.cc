#include "scheduler/devices.h"

#include <algorithm>
#include <charconv>

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "client/client.h"

namespace dibs::scheduler {
namespace {

using json::Value;

using client::uid_of;

bool marks(const Value& rule, const Value& slice, std::string_view device) {
  const Value& selector = rule["spec"]["deviceSelector"];
  const auto fits = [&](const char* field, std::string_view value) {
    const Value* wanted = selector.find(field);
    return wanted == nullptr || !wanted->is_string() || wanted->as_string() == value;
  };
  return fits("driver", slice["spec"]["driver"].as_string()) &&
         fits("pool", slice["spec"]["pool"]["name"].as_string()) && fits("device", device);
}

}  // namespace

std::uint64_t revision_of(const Value& object) {
  const std::string_view text = object["metadata"]["resourceVersion"].as_string();
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool is_allocated(const Value& claim) { return claim["status"]["allocation"].is_object(); }

bool is_owned_by(const Value& object, std::string_view uid) {
  for (const Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["uid"].as_string() == uid) return true;
  }
  return false;
}

bool is_reserved_for(const Value& claim, std::string_view uid) {
  for (const Value& consumer : claim["status"]["reservedFor"].items()) {
    if (consumer["uid"].as_string() == uid) return true;
  }
  return false;
}

BindingState binding_state(const Value& claim) {
  BindingState made;
  const Value& status = claim["status"];
  for (const Value& result : status["allocation"]["devices"]["results"].items()) {
    if (result["bindingConditions"].empty()) continue;
    made.has_conditions = true;
    const Value* found = nullptr;
    for (const Value& device : status["devices"].items()) {
      if (device["driver"] == result["driver"] && device["pool"] == result["pool"] &&
          device["device"] == result["device"]) {
        found = &device;
      }
    }
    const auto holds = [&](std::string_view type) -> const Value* {
      if (found == nullptr) return nullptr;
      for (const Value& condition : (*found)["conditions"].items()) {
        if (condition["type"].as_string() == type && condition["status"].as_string() == "True") {
          return &condition;
        }
      }
      return nullptr;
    };
    for (const Value& type : result["bindingFailureConditions"].items()) {
      if (const Value* failed = holds(type.as_string())) {
        made.ready = false;
        made.failure = cat("device binding failed: claim=", claim["metadata"]["name"].as_string(),
                           ", reason=", (*failed)["reason"].as_string(),
                           ", message=", quoted((*failed)["message"].as_string()));
        return made;
      }
    }
    for (const Value& type : result["bindingConditions"].items()) {
      if (holds(type.as_string()) == nullptr) made.ready = false;
    }
  }
  return made;
}

Time allocated_at(const Value& claim) {
  auto time = parse_rfc3339(claim["status"]["allocation"]["allocationTimestamp"].as_string());
  return time.ok() ? *time : Time{};
}

Devices::Devices(const alloc::Features& features, std::function<std::string()> share_ids,
                 int release)
    : release_(release),
      inventory_(features),
      named_inventory_(alloc::Features(), alloc::Resources::named),
      share_ids_(std::move(share_ids)) {}

void Devices::recount(Held& held) {
  const Value allocation = is_allocated(held.object) ? counted_form(held.object) : held.in_flight;
  if (allocation == held.counted) {
    held.counted = allocation;  // one tree instead of two that are equal
    return;
  }
  if (!held.counted.is_null()) {
    inventory_of(held.counted).release(held.counted);
    refusals_.allocation_changed(held.counted);
  }
  held.counted = allocation;
  if (!held.counted.is_null()) {
    inventory_of(held.counted).take(held.counted);
    refusals_.allocation_changed(held.counted);
  }
}

const std::shared_ptr<const alloc::Claim>& Devices::parsed(Held& held) {
  if (held.parsed == nullptr) {
    held.parsed = std::make_shared<const alloc::Claim>(alloc::Claim::read(held.object));
  }
  return held.parsed;
}

void Devices::forget_node(std::string_view name) {
  inventory_.forget_node(name);
  named_inventory_.forget_node(name);
  // Another node may come to stand at the same address.
  refusals_.all_changed();
}

ClaimChange Devices::put_claim(const Value& object) {
  const std::string key = client::key_of(object);
  Held& held = claims_[key];
  const bool same = uid_of(held.object) == uid_of(object);
  if (!held.object.is_null() && revision_of(object) < revision_of(held.object)) {
    return {.known = false};
  }
  ClaimChange change;
  const bool had = !held.counted.is_null();
  change.changed =
      !same || !(held.object["status"] == object["status"]) ||
      held.object["metadata"]["deletionTimestamp"] != object["metadata"]["deletionTimestamp"] ||
      held.object["metadata"]["ownerReferences"] != object["metadata"]["ownerReferences"];
  if (!same && !held.object.is_null()) held.in_flight = Value();
  // Its spec never changes, but is of no interest while it has devices.
  if (!same || is_allocated(object)) held.parsed = nullptr;
  held.object = object;
  recount(held);
  change.freed = had && held.counted.is_null();
  if (object["metadata"]["annotations"][kExtendedClaimAnnotation].as_string() == "true") {
    for (const Value& owner : object["metadata"]["ownerReferences"].items()) {
      if (owner["kind"].as_string() == "Pod") extended_claims_[owner["uid"].str()] = key;
    }
  }
  return change;
}

ClaimChange Devices::remove_claim(const Value& object) {
  const std::string key = client::key_of(object);
  const auto found = claims_.find(key);
  if (found == claims_.end() || uid_of(found->second.object) != uid_of(object)) {
    return {.known = false};
  }
  Held& held = found->second;
  ClaimChange change;
  change.changed = true;
  change.freed = !held.counted.is_null();
  if (change.freed) {
    inventory_of(held.counted).release(held.counted);
    refusals_.allocation_changed(held.counted);
  }
  for (const Value& owner : held.object["metadata"]["ownerReferences"].items()) {
    const auto mine = extended_claims_.find(owner["uid"].str());
    if (mine != extended_claims_.end() && mine->second == key) extended_claims_.erase(mine);
  }
  claims_.erase(found);
  return change;
}

bool Devices::put_class(const Value& object) {
  const std::string name = object["metadata"]["name"].str();
  Value& known = class_objects_[name];
  const bool changed = known.is_null() || !(known["spec"] == object["spec"]);
  known = object;
  extended_.put(object);
  if (changed) {
    refusals_.all_changed();
    classes_[name] = std::make_shared<const alloc::DeviceClass>(alloc::DeviceClass::read(object));
  }
  return changed;
}

void Devices::remove_class(const Value& object) {
  const std::string name = object["metadata"]["name"].str();
  class_objects_.erase(name);
  refusals_.all_changed();
  classes_.erase(name);
  extended_.remove(object);
}

void Devices::put_marked(const std::string& name, const Value& slice) {
  refusals_.slice_changed(slice);
  if (rules_.empty()) {
    inventory_.put(name, slice);
    return;
  }
  Value marked = slice;
  const std::size_t count = slice["spec"]["devices"].size();
  for (std::size_t i = 0; i < count; ++i) {
    const Value& device = slice["spec"]["devices"][i];
    for (const auto& [key, rule] : rules_) {
      if (!marks(rule, slice, device["name"].as_string())) continue;
      Value& target = marked.mut("spec").mut("devices").mut(i);
      Value& taints = target.mut("taints");
      if (!taints.is_array()) taints = Value::array();
      taints.push(rule["spec"]["taint"]);
    }
  }
  inventory_.put(name, marked);
}

void Devices::put_slice(const Value& object) {
  const std::string name = object["metadata"]["name"].str();
  // A name may have been given to a slice of the other kind before.
  if (api::is_classic(object)) {
    if (const auto other = slices_.find(name); other != slices_.end()) {
      remove_slice(Value(other->second));
    }
    return named_inventory_.put(name, object);
  }
  named_inventory_.remove(name);
  slices_[name] = object;
  node_allocatable_.put_slice(object);
  put_marked(name, object);
}

void Devices::remove_slice(const Value& object) {
  const std::string name = object["metadata"]["name"].str();
  if (api::is_classic(object)) {
    named_inventory_.remove(name);
    return;
  }
  slices_.erase(name);
  node_allocatable_.remove_slice(name);
  inventory_.remove(name);
  refusals_.slice_changed(object);
}

void Devices::mark_again(const Value& rule) {
  const Value& selector = rule["spec"]["deviceSelector"];
  for (const auto& [name, slice] : slices_) {
    const Value* driver = selector.find("driver");
    if (driver != nullptr && driver->is_string() && !(*driver == slice["spec"]["driver"])) continue;
    put_marked(name, slice);
  }
}

void Devices::put_rule(const Value& object) {
  Value& known = rules_[object["metadata"]["name"].str()];
  const Value before = known;
  if (before["spec"] == object["spec"]) return;
  known = object;
  if (!before.is_null()) mark_again(before);
  mark_again(object);
}

void Devices::remove_rule(const Value& object) {
  if (rules_.erase(object["metadata"]["name"].str()) > 0) mark_again(object);
}

Value Devices::claim(const std::string& key) const {
  const auto found = claims_.find(key);
  return found != claims_.end() ? found->second.object : Value();
}

std::vector<std::string> Devices::holders(const std::vector<std::string>& device_ids) const {
  std::vector<std::string> made;
  const auto wanted = [&](const Value& driver, const Value& pool, const Value& device) {
    const std::string id = cat(driver.as_string(), "/", pool.as_string(), "/", device.as_string());
    return std::find(device_ids.begin(), device_ids.end(), id) != device_ids.end();
  };
  for (const auto& [key, held] : claims_) {
    bool holds = false;
    for (const Value& result : held.counted["devices"]["results"].items()) {
      holds = holds || wanted(result["driver"], result["pool"], result["device"]);
    }
    for (const Value& handle : held.counted["resourceHandles"].items()) {
      const Value& data = handle["structuredData"];
      for (const Value& result : data["results"].items()) {
        holds = holds ||
                wanted(handle["driverName"], data["nodeName"], result["namedResources"]["name"]);
      }
    }
    if (holds) made.push_back(key);
  }
  std::sort(made.begin(), made.end());
  return made;
}

void Devices::reserve(const std::string& id, const Value& allocation) {
  Held& held = claims_[id];
  held.in_flight = allocation;
  recount(held);
}

void Devices::unreserve(const std::string& id) {
  const auto found = claims_.find(id);
  if (found == claims_.end()) return;
  found->second.in_flight = Value();
  recount(found->second);
  if (found->second.object.is_null()) claims_.erase(found);
}

bool Devices::in_flight(const std::string& id) const {
  const auto found = claims_.find(id);
  return found != claims_.end() && !found->second.in_flight.is_null();
}

}  // namespace dibs::scheduler
