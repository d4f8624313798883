// ResourceSlices: devices as a driver publishes them.
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/resource/checks.h"
#include "api/kinds/resource/names.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kDevices = 128;
constexpr std::size_t kDevicesWithMore = 64;
constexpr std::size_t kAttributesAndCapacities = 32;
constexpr std::size_t kAttributeValues = 48;
constexpr std::size_t kAttributeLength = 64;
constexpr std::size_t kKeyLength = 63 + 1 + 32;
constexpr std::size_t kTaints = 16;
constexpr std::size_t kCounterSets = 8;
constexpr std::size_t kConsumptions = 2;
constexpr std::size_t kCounters = 32;
constexpr std::size_t kBindingConditions = 4;

constexpr const char* kLists[] = {"bools", "ints", "strings", "versions"};

// Devices with more to them are fewer in a slice.
std::size_t device_limit(const Value& spec) {
  for (const Value& device : spec["devices"].items()) {
    if (!device["taints"].empty() || !device["consumesCounters"].empty()) return kDevicesWithMore;
    for (const auto& [name, attribute] : device["attributes"].members()) {
      for (const char* list : kLists) {
        if (is_set(attribute, list)) return kDevicesWithMore;
      }
    }
  }
  return kDevices;
}

void check_pool(const Value& pool, const Path& path, Findings& found) {
  check_pool_name(pool["name"].as_string(), path.child("name"), found.errors);
  std::int64_t count = pool["resourceSliceCount"].as_int();
  if (count <= 0) {
    found.errors.invalid(path.child("resourceSliceCount"), Value(count),
                         "must be greater than zero");
  }
  std::int64_t generation = pool["generation"].as_int();
  if (generation < 0) {
    found.errors.invalid(path.child("generation"), Value(generation),
                         "must be greater than or equal to zero");
  }
}

void check_nodes(const Value& spec, const Path& path, Findings& found) {
  std::vector<std::string> set;
  if (is_set(spec, "nodeName")) {
    std::string_view name = spec["nodeName"].as_string();
    if (name.empty()) {
      found.errors.invalid(path.child("nodeName"), "",
                           "must be either unset or set to a non-empty string");
    } else {
      set.push_back("`nodeName`");
      check_node_name(name, path.child("nodeName"), found.errors);
    }
  }
  if (is_set(spec, "nodeSelector")) {
    set.push_back("`nodeSelector`");
    Path selector_at = path.child("nodeSelector");
    validate_node_selector(spec["nodeSelector"], selector_at, found.errors);
    const Value& terms = spec["nodeSelector"]["nodeSelectorTerms"];
    if (terms.size() != 1) {
      found.errors.invalid(selector_at.child("nodeSelectorTerms"), shown_terms(terms),
                           "must have exactly one node selector term");
    }
  }
  for (const char* key : {"allNodes", "perDeviceNodeSelection"}) {
    if (!is_set(spec, key)) continue;
    if (spec[key].as_bool()) {
      set.push_back(cat("`", key, "`"));
    } else {
      found.errors.invalid(path.child(key), false, "must be either unset or set to true");
    }
  }
  constexpr std::string_view one =
      "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
  if (set.empty()) {
    found.errors.required(path, one);
  } else if (set.size() > 1) {
    found.errors.invalid(path, cat("{", join(set, ", "), "}"),
                         cat(one, ", but multiple fields are set"));
  }
}

void check_device_nodes(const Value& device, bool per_device, const Path& path, Findings& found) {
  bool any =
      is_set(device, "nodeName") || is_set(device, "nodeSelector") || is_set(device, "allNodes");
  if (!per_device) {
    if (any) {
      found.errors.invalid(path, Value(),
                           "`nodeName`, `nodeSelector` and `allNodes` can only be set if "
                           "`perDeviceNodeSelection` is set to true in the ResourceSlice spec");
    }
    return;
  }
  std::vector<std::string> set;
  if (is_set(device, "nodeName")) {
    std::string_view name = device["nodeName"].as_string();
    if (name.empty()) {
      found.errors.invalid(path.child("nodeName"), "", "must not be empty");
    } else {
      set.push_back("`nodeName`");
      check_node_name(name, path.child("nodeName"), found.errors);
    }
  }
  if (is_set(device, "nodeSelector")) {
    set.push_back("`nodeSelector`");
    validate_node_selector(device["nodeSelector"], path.child("nodeSelector"), found.errors);
  }
  if (is_set(device, "allNodes")) {
    if (device["allNodes"].as_bool()) {
      set.push_back("`allNodes`");
    } else {
      found.errors.invalid(path.child("allNodes"), false, "must be either unset or set to true");
    }
  }
  constexpr std::string_view one =
      "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when "
      "`perDeviceNodeSelection` is set to true in the ResourceSlice spec";
  if (set.empty()) {
    found.errors.required(path, one);
  } else if (set.size() > 1) {
    found.errors.invalid(path, cat("{", join(set, ", "), "}"), one);
  }
}

void check_attribute_text(const Value& text, const Path& path, Findings& found) {
  if (text.as_string().size() > kAttributeLength) found.errors.too_long(path, kAttributeLength);
}

void check_attribute(const Value& attribute, const Path& path, Findings& found) {
  int set = is_set(attribute, "bool") + is_set(attribute, "int");
  if (is_set(attribute, "string")) {
    ++set;
    check_attribute_text(attribute["string"], path.child("string"), found);
  }
  if (is_set(attribute, "version")) {
    ++set;
    check_version_value(attribute["version"], path.child("version"), found.errors);
  }
  for (const char* key : kLists) {
    if (!is_set(attribute, key)) continue;
    ++set;
    const Value& list = attribute[key];
    Path at = path.child(key);
    if (list.empty()) found.errors.invalid(at, list, "must not be empty if specified");
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (std::string_view(key) == "strings") check_attribute_text(list[i], at.index(i), found);
      if (std::string_view(key) == "versions") {
        check_version_value(list[i], at.index(i), found.errors);
      }
    }
  }
  if (set == 1) return;
  std::size_t from = found.errors.size();
  found.errors.invalid(path, set == 0 ? Value("") : shown_attribute(attribute),
                       "exactly one value must be specified");
  found.cover(from);
}

std::size_t attribute_values(const Value& device) {
  std::size_t count = 0;
  for (const auto& [name, attribute] : device["attributes"].members()) {
    std::size_t values = 0;
    for (const char* list : kLists) values += attribute[list].size();
    count += values == 0 ? 1 : values;
  }
  return count;
}

void check_capacities(const Value& device, const Path& path, Findings& found) {
  bool shared = device["allowMultipleAllocations"].as_bool();
  const Value& capacity = device["capacity"];
  for (const std::string& name : sorted_keys(capacity)) {
    check_qualified_name(name, path, found.errors);
    std::string key = shortened_key(name, kKeyLength);
    Path at = path.key(key);
    if (!is_set(capacity[name], "requestPolicy")) continue;
    if (shared) {
      check_request_policy(capacity[name], at.child("requestPolicy"), found);
    } else {
      found.errors.forbidden(at.child("requestPolicy"), "allowMultipleAllocations must be true");
    }
  }
}

void check_counters(const Value& counters, const Path& path, Findings& found) {
  std::size_t from = found.errors.size();
  if (counters.empty()) {
    found.errors.required(path);
    found.cover(from);
    return;
  }
  if (!fits(counters, kCounters, path, found, false)) return;
  for (const std::string& name : sorted_keys(counters)) {
    add_invalid(is_dns1123_label(name), Value(name), path, found.errors);
  }
  found.cover(from);
}

void check_counter_name(const Value& name, const Path& path, Findings& found) {
  std::size_t from = found.errors.size();
  if (name.as_string().empty()) {
    found.errors.required(path);
  } else {
    add_invalid(is_dns1123_label(name.as_string()), name, path, found.errors);
  }
  found.cover(from);
}

void check_positive(const Value& holder, const char* key, const Path& path, Findings& found) {
  if (!is_set(holder, key) || quantity_of(holder[key]).sign() > 0) return;
  found.errors.invalid(path.child(key), holder[key], "must be positive");
}

void check_capacity_key(const Value& key, const Value& capacity, const Path& path,
                        Findings& found) {
  if (key.as_string().empty()) {
    found.errors.invalid(path, "", "capacityKey must not be an empty string");
  } else if (!capacity.contains(key.as_string())) {
    found.errors.not_found(path, key);
  }
}

// What of a node's own resources a device takes along, as 1.36 had it.
void check_node_resource_mappings(const Value& device, const Path& path, Findings& found) {
  const Value& mappings = device["nodeAllocatableResourceMappings"];
  for (const std::string& name : sorted_keys(mappings)) {
    const Value& mapping = mappings[name];
    Path at = path.key(name);
    if (!is_native_resource(name)) {
      found.errors.invalid(at, Value(name), "must be a node allocatable resource name");
    }
    if (!is_set(mapping, "allocationMultiplier") && !is_set(mapping, "capacityKey")) {
      found.errors.invalid(at, "",
                           "at least one of allocationMultiplier or capacityKey must be set");
    }
    check_positive(mapping, "allocationMultiplier", at, found);
    if (is_set(mapping, "capacityKey")) {
      check_capacity_key(mapping["capacityKey"], device["capacity"], at.child("capacityKey"),
                         found);
    }
  }
}

void check_node_resources(const Value& device, const Path& path, Findings& found) {
  const Value& resources = device["nodeAllocatableResources"];
  for (const std::string& name : sorted_keys(resources)) {
    Path at = path.key(name);
    if (name != "cpu" && name != "memory" && !is_huge_page_resource(name)) {
      found.errors.invalid(at, Value(name), "must be a node allocatable resource name");
    }
    const Value& mapping = resources[name]["mapping"];
    const Value& overhead = resources[name]["overhead"];
    if (mapping.is_null() && overhead.is_null()) {
      found.errors.required(at, "at least one of mapping or overhead must be set");
    }
    Path mapping_at = at.child("mapping");
    if (is_set(mapping, "capacityKey")) {
      check_capacity_key(mapping["capacityKey"], device["capacity"],
                         mapping_at.child("capacityKey"), found);
      if (is_set(mapping, "capacityMultiplier")) {
        check_positive(mapping, "capacityMultiplier", mapping_at, found);
      } else {
        found.errors.required(mapping_at.child("capacityMultiplier"),
                              "capacityMultiplier is required when capacityKey is set");
      }
    }
    check_positive(mapping, "deviceMultiplier", mapping_at, found);
    if (is_set(mapping, "capacityMultiplier") && !is_set(mapping, "capacityKey")) {
      found.errors.required(mapping_at.child("capacityKey"),
                            "capacityKey is required when capacityMultiplier is set");
    }
    if (overhead.is_null()) continue;
    Path overhead_at = at.child("overhead");
    if (!is_set(overhead, "perPod") && !is_set(overhead, "perContainer")) {
      found.errors.invalid(overhead_at, "", "at least one of perPod or perContainer must be set");
      continue;
    }
    for (const char* key : {"perPod", "perContainer"}) {
      if (quantity_of(overhead[key]).sign() < 0) {
        found.errors.invalid(overhead_at.child(key), overhead[key], "must be non-negative");
      }
    }
  }
}

const Value* find_device(const Value* spec, std::string_view name) {
  if (spec == nullptr) return nullptr;
  for (const Value& device : (*spec)["devices"].items()) {
    if (device["name"].as_string() == name) return &device;
  }
  return nullptr;
}

void check_device(const Value& device, const Value* old, bool per_device, const Path& path,
                  Findings& found) {
  add_invalid(is_dns1123_label(device["name"].as_string()), Value(device["name"].as_string()),
              path.child("name"), found.errors);

  const Value& attributes = device["attributes"];
  std::size_t entries = attributes.size() + device["capacity"].size();
  if (entries > kAttributesAndCapacities) {
    found.errors.invalid(path, Value(entries),
                         cat("the total number of attributes and capacities must not exceed ",
                             kAttributesAndCapacities));
  }
  if (std::size_t values = attribute_values(device); values > kAttributeValues) {
    found.errors.invalid(
        path, Value(values),
        cat("the total number of attribute values must not exceed ", kAttributeValues));
  }
  Path attributes_at = path.child("attributes");
  for (const std::string& name : sorted_keys(attributes)) {
    check_qualified_name(name, attributes_at, found.errors);
    std::string key = shortened_key(name, kKeyLength);
    check_attribute(attributes[name], attributes_at.key(key), found);
  }
  // Since 1.37 a capacity that is as it was is not judged again.
  if (old == nullptr || found.features.minor() < 37 ||
      !((*old)["capacity"] == device["capacity"])) {
    check_capacities(device, path.child("capacity"), found);
  }

  const Value& taints = device["taints"];
  Path taints_at = path.child("taints");
  if ((old == nullptr || !((*old)["taints"] == taints)) &&
      fits(taints, kTaints, taints_at, found, false)) {
    for (std::size_t i = 0; i < taints.size(); ++i) {
      check_device_taint(taints[i], nullptr, taints_at.index(i), found);
    }
  }

  const Value& consumes = device["consumesCounters"];
  Path consumes_at = path.child("consumesCounters");
  if (fits(consumes, kConsumptions, consumes_at, found, true)) {
    for (std::size_t i = 0; i < consumes.size(); ++i) {
      Path at = consumes_at.index(i);
      check_counter_name(consumes[i]["counterSet"], at.child("counterSet"), found);
      check_counters(consumes[i]["counters"], at.child("counters"), found);
    }
    check_unique_key(consumes, "counterSet", consumes_at, found, true);
  }

  check_device_nodes(device, per_device, path, found);
  check_binding_conditions(device, path, found);
  check_node_resource_mappings(device, path.child("nodeAllocatableResourceMappings"), found);
  check_node_resources(device, path.child("nodeAllocatableResources"), found);
}

// Every device that consumes counters must say of which type of partition it is.
void check_partition_type(const Value& spec, const Path& path, Findings& found) {
  std::string name = spec["partitionTypeAttribute"].str();
  bool consumes = false;
  for (const Value& device : spec["devices"].items()) {
    consumes = consumes || !device["consumesCounters"].empty();
  }
  if (!consumes) {
    found.errors.invalid(path.child("partitionTypeAttribute"), Value(name),
                         "may only be set on a slice which declares devices that consume counters");
    return;
  }
  FieldErrors malformed;
  check_fully_qualified_name(name, path, malformed);
  if (!malformed.empty()) return;
  std::string own = cat(spec["driver"].as_string(), "/");
  std::string bare = name.substr(0, own.size()) == own ? name.substr(own.size()) : name;
  Path devices_at = path.child("devices");
  for (std::size_t i = 0; i < spec["devices"].size(); ++i) {
    const Value& device = spec["devices"][i];
    if (device["consumesCounters"].empty()) continue;
    const Value* attribute = device["attributes"].find(name);
    if (attribute == nullptr) attribute = device["attributes"].find(bare);
    Path device_at = devices_at.index(i);
    Path attributes_at = device_at.child("attributes");
    Path at = attributes_at.key(name);
    if (attribute == nullptr) {
      found.errors.required(at,
                            "device consumes counters and `partitionTypeAttribute` names this "
                            "attribute, so it must be set");
    } else if (!is_set(*attribute, "string")) {
      found.errors.invalid(at, shown_attribute(*attribute),
                           "must be a string value because `partitionTypeAttribute` names this "
                           "attribute");
    }
  }
}

}  // namespace

void check_device_taint(const Value& taint, const Value* old_effect, const Path& path,
                        Findings& found) {
  check_label_name(Value(taint["key"].as_string()), path.child("key"), found.errors);
  if (!taint["value"].as_string().empty()) {
    add_invalid(is_label_value(taint["value"].as_string()), taint["value"], path.child("value"),
                found.errors);
  }
  std::string_view effect = taint["effect"].as_string();
  if (old_effect != nullptr && old_effect->as_string() == effect) return;
  std::size_t from = found.errors.size();
  if (effect.empty()) {
    found.errors.required(path.child("effect"));
  } else if (!is_one_of(effect, {"NoExecute", "NoSchedule", "None"})) {
    found.errors.not_supported(path.child("effect"), Value(effect),
                               {"NoExecute", "NoSchedule", "None"});
  }
  found.cover(from);
}

void check_binding_conditions(const Value& holder, const Path& path, Findings& found) {
  const Value& conditions = holder["bindingConditions"];
  const Value& failures = holder["bindingFailureConditions"];
  Path conditions_at = path.child("bindingConditions");
  Path failures_at = path.child("bindingFailureConditions");
  auto check_names = [&](const Value& list, const Path& at) {
    if (!fits(list, kBindingConditions, at, found, true)) return;
    for (std::size_t i = 0; i < list.size(); ++i) {
      check_label_name(list[i], at.index(i), found.errors);
    }
  };
  check_names(conditions, conditions_at);
  check_names(failures, failures_at);
  check_unique_key(conditions, "", conditions_at, found, false);
  std::set<std::string, std::less<>> wanted;
  for (const Value& condition : conditions.items()) wanted.insert(condition.str());
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!seen.insert(failures[i].str()).second) {
      found.errors.duplicate(failures_at.index(i), failures[i]);
    }
    if (wanted.count(failures[i].str()) != 0) {
      found.errors.invalid(failures_at.index(i), failures[i],
                           "bindingFailureConditions must not overlap with bindingConditions");
    }
  }
  if (conditions.empty() && !failures.empty()) {
    found.errors.invalid(conditions_at, conditions,
                         "bindingConditions are required to use bindingFailureConditions");
  }
  if (failures.empty() && !conditions.empty()) {
    found.errors.invalid(failures_at, failures,
                         "bindingFailureConditions are required to use bindingConditions");
  }
}

void check_skipped_operations(const Value& operations, const Path& path, Findings& found) {
  bool prepare = false;
  bool unprepare = false;
  for (const Value& operation : operations.items()) {
    std::string_view name = operation.as_string();
    prepare = prepare || name == "NodePrepareResources";
    unprepare = unprepare || name == "NodeUnprepareResources" || name == "*";
  }
  if (prepare && !unprepare) {
    found.errors.invalid(
        path, operations,
        "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped");
  }
}

void check_slice_spec(const Value& spec, const Value* old, const Path& path, Findings& found) {
  check_driver_name(spec["driver"].as_string(), path.child("driver"), found.errors);
  Path pool_at = path.child("pool");
  check_pool(spec["pool"], pool_at, found);
  if (old != nullptr) {
    auto kept = [&](const Value& value, const Value& before, const Path& at) {
      if (!(value == before)) found.errors.invalid(at, value, "field is immutable");
    };
    kept(Value(spec["pool"]["name"].as_string()), Value((*old)["pool"]["name"].as_string()),
         pool_at.child("name"));
    kept(Value(spec["driver"].as_string()), Value((*old)["driver"].as_string()),
         path.child("driver"));
    kept(spec["nodeName"], (*old)["nodeName"], path.child("nodeName"));
  }
  check_nodes(spec, path, found);
  if (is_set(spec, "sharedCounters") && is_set(spec, "devices")) {
    found.errors.invalid(path, "", "only one of `sharedCounters` or `devices` is allowed");
  }

  const Value& devices = spec["devices"];
  Path devices_at = path.child("devices");
  if (fits(devices, device_limit(spec), devices_at, found, false)) {
    bool per_device = spec["perDeviceNodeSelection"].as_bool();
    for (std::size_t i = 0; i < devices.size(); ++i) {
      check_device(devices[i], find_device(old, devices[i]["name"].as_string()), per_device,
                   devices_at.index(i), found);
    }
    check_unique_key(devices, "name", devices_at, found, false);
  }

  const Value& counters = spec["sharedCounters"];
  Path counters_at = path.child("sharedCounters");
  if (fits(counters, kCounterSets, counters_at, found, true)) {
    for (std::size_t i = 0; i < counters.size(); ++i) {
      Path at = counters_at.index(i);
      check_counter_name(counters[i]["name"], at.child("name"), found);
      check_counters(counters[i]["counters"], at.child("counters"), found);
    }
    check_unique_key(counters, "name", counters_at, found, true);
  }
  if (is_set(spec, "partitionTypeAttribute")) check_partition_type(spec, path, found);
  check_skipped_operations(spec["skipNodeOperations"], path.child("skipNodeOperations"), found);
}

}  // namespace dibs::api
