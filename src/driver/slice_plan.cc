#include "driver/slice_plan.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "base/time.h"

namespace dibs::driver {
namespace {

using json::Value;

constexpr const char* kFields[] = {"nodeSelector", "allNodes", "devices", "sharedCounters",
                                   "perDeviceNodeSelection"};
constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

std::size_t index_of(const Value& slice, const PlanInput& input) {
  const auto name = slice["metadata"]["name"].as_string();
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos || dash < 5 || dash > 8) return kNoIndex;
  std::size_t index = 0;
  for (const char c : name.substr(0, dash)) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (c < 'a' || c > 'f')) return kNoIndex;
    index = index * 16 + static_cast<std::size_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  // Names of releases up to 1.35 began with the node's, which may look like a number.
  const auto* prefix = slice["metadata"].find("generateName");
  if (prefix != nullptr && prefix->as_string() != generate_name(index, input.driver, input.node)) {
    return kNoIndex;
  }
  return index;
}

bool is_nothing(const Value& value) {
  return value.is_null() || (value.is_boolean() && !value.as_bool()) ||
         ((value.is_array() || value.is_object()) && value.empty());
}

bool same_time(const Value& a, const Value& b) {
  const auto first = parse_rfc3339(a.as_string());
  const auto second = parse_rfc3339(b.as_string());
  if (!first || !second) return a == b;
  const Duration apart = *first - *second;
  return apart <= std::chrono::seconds(1) && apart >= std::chrono::seconds(-1);
}

/// The wanted device with taint times as stored, where they count as the same.
Value with_times(const Value& wanted, const Value& stored) {
  if (wanted["taints"].empty()) return wanted;
  Value device = wanted;
  for (std::size_t i = 0; i < wanted["taints"].size(); ++i) {
    const Value& added = stored["taints"][i]["timeAdded"];
    if (added.is_null() || stored["taints"][i]["key"] != wanted["taints"][i]["key"]) continue;
    const Value& own = wanted["taints"][i]["timeAdded"];
    if (own.is_null() || same_time(own, added)) {
      device.mut("taints").mut(i).set("timeAdded", added);
    }
  }
  return device;
}

Value devices_with_times(const Value& wanted, const Value& stored) {
  Value out = Value::array();
  for (std::size_t i = 0; i < wanted.size(); ++i) out.push(with_times(wanted[i], stored[i]));
  return out;
}

bool any_device(const Value& content, bool (*test)(const Value& device)) {
  const auto devices = content["devices"].items();
  return std::any_of(devices.begin(), devices.end(), test);
}

struct Feature {
  const char* name;
  bool (*uses)(const Value& content);
};

// A content that uses a feature, against one that does not any more: that feature is off.
const Feature kFeatures[] = {
    {"DRADeviceTaints",
     [](const Value& content) {
       return any_device(content, [](const Value& device) { return !device["taints"].empty(); });
     }},
    {"DRAPartitionableDevices",
     [](const Value& content) {
       return !content["sharedCounters"].empty() || content["perDeviceNodeSelection"].as_bool() ||
              any_device(content, [](const Value& device) {
                return !device["consumesCounters"].empty() || device.contains("nodeName") ||
                       device.contains("nodeSelector") || device.contains("allNodes");
              });
     }},
    {"DRADeviceBindingConditions",
     [](const Value& content) {
       return any_device(content, [](const Value& device) {
         return !device["bindingConditions"].empty() ||
                !device["bindingFailureConditions"].empty() || device.contains("bindsToNode");
       });
     }},
    {"DRAConsumableCapacity",
     [](const Value& content) {
       return any_device(content, [](const Value& device) {
         if (device.contains("allowMultipleAllocations")) return true;
         const auto amounts = device["capacity"].members();
         return std::any_of(amounts.begin(), amounts.end(), [](const json::Member& amount) {
           return amount.value().contains("requestPolicy");
         });
       });
     }},
    {"DRANodeAllocatableResources",
     [](const Value& content) {
       return any_device(content, [](const Value& device) {
         return !device["nodeAllocatableResourceMappings"].empty();
       });
     }},
    {"DRAListTypeAttributes",
     [](const Value& content) {
       return any_device(content, [](const Value& device) {
         const auto attributes = device["attributes"].members();
         return std::any_of(attributes.begin(), attributes.end(), [](const json::Member& one) {
           const Value& value = one.value();
           return value.contains("ints") || value.contains("bools") || value.contains("strings") ||
                  value.contains("versions");
         });
       });
     }},
};

Value pool_value(const PlanInput& input, std::int64_t generation) {
  return Value::object({{"name", input.pool},
                        {"generation", generation},
                        {"resourceSliceCount", input.wanted.size()}});
}

Value new_slice(const PlanInput& input, std::size_t index, std::int64_t generation) {
  Value metadata =
      Value::object({{"generateName", generate_name(index, input.driver, input.node)}});
  if (index == 0 && !input.annotations.empty()) metadata.set("annotations", input.annotations);
  if (!input.owner.is_null()) metadata.set("ownerReferences", Value::array({input.owner}));
  Value spec = Value::object({{"driver", input.driver}, {"pool", pool_value(input, generation)}});
  const Value& wanted = input.wanted[index];
  // A slice says in exactly one way which nodes reach its devices.
  if (!input.node.empty() && !wanted.contains("nodeSelector") && !wanted.contains("allNodes") &&
      !wanted.contains("perDeviceNodeSelection")) {
    spec.set("nodeName", input.node);
  }
  for (const auto& [key, value] : wanted.members()) spec.set(key, value);
  return Value::object({{"apiVersion", "resource.k8s.io/v1"},
                        {"kind", "ResourceSlice"},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(spec)}});
}

Value changed_slice(const PlanInput& input, std::size_t index, const Value& before,
                    std::int64_t generation) {
  Value slice = before;
  if (index == 0) {
    for (const auto& [key, value] : input.annotations.members()) {
      slice.mut("metadata").mut("annotations").set(key, value);
    }
  }
  Value& spec = slice.mut("spec");
  spec.set("pool", pool_value(input, generation));
  for (const char* field : kFields) spec.erase(field);
  for (const auto& [key, value] : input.wanted[index].members()) {
    spec.set(key, key == "devices" ? devices_with_times(value, before["spec"]["devices"]) : value);
  }
  return slice;
}

bool has_annotations(const Value& slice, const Value& wanted) {
  const auto members = wanted.members();
  return std::all_of(members.begin(), members.end(), [&](const json::Member& one) {
    return slice["metadata"]["annotations"][one.key()] == one.value();
  });
}

}  // namespace

std::string generate_name(std::size_t index, std::string_view driver, std::string_view owner) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string number;
  for (; index > 0 || number.size() < 5; index /= 16) number.insert(0, 1, kDigits[index % 16]);
  if (owner.empty()) return cat(number, "-", driver, "-");
  return cat(number, "-", driver, "-", owner, "-");
}

Value content_of(const Value& slice) {
  Value content = Value::object();
  for (const char* field : kFields) {
    if (!is_nothing(slice["spec"][field])) content.set(field, slice["spec"][field]);
  }
  return content;
}

bool same_content(const Value& stored, const Value& wanted) {
  for (const char* field : kFields) {
    const Value& is = stored[field];
    const Value& should = wanted[field];
    if (is_nothing(is) && is_nothing(should)) continue;
    if (std::string_view(field) != "devices") {
      if (is != should) return false;
      continue;
    }
    if (is.size() != should.size()) return false;
    for (std::size_t i = 0; i < is.size(); ++i) {
      if (is[i] != with_times(should[i], is[i])) return false;
    }
  }
  return true;
}

std::vector<std::string> dropped_features(const Value& stored, const Value& wanted) {
  std::vector<std::string> out;
  for (const auto& feature : kFeatures) {
    if (feature.uses(wanted) && !feature.uses(stored)) out.emplace_back(feature.name);
  }
  return out;
}

Plan plan_pool(const PlanInput& input) {
  Plan plan;
  std::int64_t newest = 0;
  for (const auto& slice : input.existing) {
    newest = std::max(newest, slice["spec"]["pool"]["generation"].as_int());
  }
  std::vector<const Value*> current(input.wanted.size(), nullptr);
  for (const auto& slice : input.existing) {
    const std::size_t index = index_of(slice, input);
    const bool is_old = slice["spec"]["pool"]["generation"].as_int() < newest;
    if (is_old || index >= current.size() || current[index] != nullptr) {
      plan.remove.push_back(slice);
    } else {
      current[index] = &slice;
    }
  }
  std::vector<bool> changed(input.wanted.size(), false);
  std::size_t changes = 0;
  bool is_new = false;
  for (std::size_t i = 0; i < current.size(); ++i) {
    if (current[i] == nullptr) {
      is_new = true;
      continue;
    }
    const Value& spec = (*current[i])["spec"];
    const bool known = i < input.stored.size() && !input.stored[i].is_null();
    const bool same =
        (i > 0 || has_annotations(*current[i], input.annotations)) &&
        spec["pool"]["resourceSliceCount"].as_int() ==
            static_cast<std::int64_t>(input.wanted.size()) &&
        (same_content(spec, input.wanted[i]) || (known && same_content(spec, input.stored[i])));
    changed[i] = !same;
    changes += same ? 0 : 1;
  }
  plan.generation = newest;
  if (input.generation > newest) {
    plan.generation = input.generation;
  } else if (is_new || changes > 1) {
    plan.generation = newest + 1;
  }
  const bool bumped = plan.generation != newest;
  for (std::size_t i = 0; i < current.size(); ++i) {
    if (current[i] == nullptr) {
      plan.create.emplace_back(i, new_slice(input, i, plan.generation));
    } else if (changed[i] || bumped) {
      plan.update.emplace_back(i, changed_slice(input, i, *current[i], plan.generation));
    }
  }
  return plan;
}

}  // namespace dibs::driver
