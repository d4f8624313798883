#include "alloc/slice.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::alloc {
namespace {

std::vector<CounterAmount> read_counters(const json::Value& counters) {
  std::vector<CounterAmount> made;
  made.reserve(counters.size());
  for (const auto& [name, counter] : counters.members()) {
    made.push_back({std::string(name), to_amount(read_quantity(counter["value"]))});
  }
  return made;
}

std::shared_ptr<const CapacityPolicy> read_policy(const json::Value& policy) {
  if (!policy.is_object()) return nullptr;
  auto made = std::make_shared<CapacityPolicy>();
  const auto read = [](const json::Value& value, bool& present, Quantity& out) {
    present = !value.is_null();
    if (present) out = read_quantity(value);
  };
  read(policy["default"], made->has_default, made->fallback);
  made->fallback_amount = to_amount(made->fallback);
  const json::Value& range = policy["validRange"];
  made->has_range = range.is_object();
  read(range["min"], made->has_min, made->min);
  read(range["max"], made->has_max, made->max);
  read(range["step"], made->has_step, made->step);
  for (const json::Value& value : policy["validValues"].items()) {
    made->values.push_back(read_quantity(value));
  }
  return made;
}

std::vector<Capacity> read_capacities(const json::Value& capacities) {
  std::vector<Capacity> made;
  made.reserve(capacities.size());
  for (const auto& [name, capacity] : capacities.members()) {
    Capacity read;
    read.name = name;
    read.value = read_quantity(capacity["value"]);
    read.amount = to_amount(read.value);
    read.policy = read_policy(capacity["requestPolicy"]);
    made.push_back(std::move(read));
  }
  std::sort(made.begin(), made.end(),
            [](const Capacity& a, const Capacity& b) { return a.name < b.name; });
  return made;
}

Device read_device(const json::Value& source, bool per_device) {
  Device made;
  made.source = source;
  made.name = source["name"].str();
  if (per_device) made.nodes = std::make_unique<NodeSelection>(NodeSelection::read(source));
  made.capacities = read_capacities(source["capacity"]);
  for (const json::Value& consumption : source["consumesCounters"].items()) {
    Consumption read;
    read.set = consumption["counterSet"].str();
    read.counters = read_counters(consumption["counters"]);
    for (const json::Value& group : consumption["compatibilityGroups"].items()) {
      read.groups.push_back(group.str());
    }
    made.consumptions.push_back(std::move(read));
  }
  for (const json::Value& taint : source["taints"].items()) {
    const std::string_view effect = taint["effect"].as_string();
    if (effect != "NoSchedule" && effect != "NoExecute") continue;
    made.taints.push_back({taint["key"].str(), taint["value"].str(), std::string(effect)});
  }
  made.multiple = source["allowMultipleAllocations"].as_bool();
  made.binds_to_node = source["bindsToNode"].as_bool();
  made.binding_conditions = source["bindingConditions"].is_array();
  return made;
}

}  // namespace

Quantity read_quantity(const json::Value& value) {
  if (value.is_integer()) return Quantity(value.as_int());
  Result<Quantity> parsed = Quantity::parse(value.as_string());
  return parsed.ok() ? std::move(parsed).value() : Quantity();
}

Slice Slice::read(const json::Value& slice) {
  Slice made;
  const json::Value& spec = slice["spec"];
  const json::Value& pool = spec["pool"];
  made.name = slice["metadata"]["name"].str();
  made.driver = spec["driver"].str();
  made.pool = pool["name"].str();
  made.generation = pool["generation"].as_int();
  made.expected_slices = pool["resourceSliceCount"].as_int();
  made.nodes = NodeSelection::read(spec);
  made.states_per_device = spec["perDeviceNodeSelection"].is_boolean();
  made.per_device = spec["perDeviceNodeSelection"].as_bool();
  if (!spec["skipNodeOperations"].empty()) made.skip_operations = spec["skipNodeOperations"];
  for (const json::Value& set : spec["sharedCounters"].items()) {
    made.counter_sets.push_back({set["name"].str(), read_counters(set["counters"])});
  }
  made.devices.reserve(spec["devices"].size());
  for (const json::Value& device : spec["devices"].items()) {
    made.devices.push_back(read_device(device, made.per_device));
    const Device& read = made.devices.back();
    made.has_binding_conditions = made.has_binding_conditions || read.binding_conditions;
    for (const Consumption& consumption : read.consumptions) {
      made.has_groups = made.has_groups || !consumption.groups.empty();
    }
  }
  return made;
}

Slice Slice::read_named(const json::Value& slice) {
  Slice made;
  made.name = slice["metadata"]["name"].str();
  made.driver = slice["driverName"].str();
  made.pool = slice["nodeName"].str();
  made.expected_slices = -1;
  made.nodes.node_name = made.pool;
  const json::Value& instances = slice["namedResources"]["instances"];
  made.devices.reserve(instances.size());
  for (const json::Value& instance : instances.items()) {
    Device device;
    device.name = instance["name"].str();
    device.source = instance;
    made.devices.push_back(std::move(device));
  }
  return made;
}

std::string device_id(const Slice& slice, const Device& device) {
  return cat(slice.driver, "/", slice.pool, "/", device.name);
}

}  // namespace dibs::alloc
