// Parts of resource.k8s.io objects that their gates keep out.
//
// A part goes when its gate is off and the object that is replaced does not use the feature: what
// was accepted once stays.
#include <functional>

#include "api/kinds/checks.h"
#include "api/kinds/resource/rules.h"

namespace dibs::api {
namespace {

using Visit = std::function<void(Value&)>;

void each(Value& holder, const char* key, const Visit& visit) {
  if (!holder[key].is_array()) return;
  Value& list = holder.mut(key);
  for (std::size_t i = 0; i < list.size(); ++i) visit(list.mut(i));
}

bool any(const Value& list, const std::function<bool(const Value&)>& test) {
  for (const Value& item : list.items()) {
    if (test(item)) return true;
  }
  return false;
}

/// Requests with their alternatives: everything that names a class.
bool any_body(const Value& spec, const std::function<bool(const Value&)>& test) {
  return any(spec["devices"]["requests"], [&](const Value& request) {
    return test(request["exactly"]) || any(request["firstAvailable"], test);
  });
}

void each_body(Value& spec, const Visit& visit) {
  if (spec["devices"]["requests"].empty()) return;
  each(spec.mut("devices"), "requests", [&](Value& request) {
    if (is_set(request, "exactly")) visit(request.mut("exactly"));
    each(request, "firstAvailable", visit);
  });
}

bool uses_capacity(const Value& spec) {
  return any_body(spec, [](const Value& body) { return is_set(body, "capacity"); }) ||
         any(spec["devices"]["constraints"],
             [](const Value& constraint) { return is_set(constraint, "distinctAttribute"); });
}

bool uses_admin_access(const Value& spec) {
  return any_body(spec, [](const Value& body) { return is_set(body, "adminAccess"); });
}

const Value& results_of(const Value& claim) {
  return claim["status"]["allocation"]["devices"]["results"];
}

bool any_result(const Value& claim, std::initializer_list<const char*> keys) {
  return any(results_of(claim), [&](const Value& result) {
    for (const char* key : keys) {
      if (is_set(result, key)) return true;
    }
    return false;
  });
}

void drop_from_results(Value& claim, std::initializer_list<const char*> keys) {
  if (results_of(claim).empty()) return;
  each(claim.mut("status").mut("allocation").mut("devices"), "results", [&](Value& result) {
    for (const char* key : keys) result.erase(key);
  });
}

bool any_device(const Value* spec, std::initializer_list<const char*> keys) {
  return spec != nullptr && any((*spec)["devices"], [&](const Value& device) {
           for (const char* key : keys) {
             if (is_set(device, key)) return true;
           }
           return false;
         });
}

bool any_capacity_policy(const Value* spec) {
  return spec != nullptr && any((*spec)["devices"], [](const Value& device) {
           for (const auto& [name, capacity] : device["capacity"].members()) {
             if (is_set(capacity, "requestPolicy")) return true;
           }
           return false;
         });
}

constexpr const char* kLists[] = {"ints", "bools", "strings", "versions"};

bool any_list_attribute(const Value* spec) {
  return spec != nullptr && any((*spec)["devices"], [](const Value& device) {
           for (const auto& [name, attribute] : device["attributes"].members()) {
             for (const char* list : kLists) {
               if (is_set(attribute, list)) return true;
             }
           }
           return false;
         });
}

bool any_compatibility_group(const Value* spec) {
  return spec != nullptr && any((*spec)["devices"], [](const Value& device) {
           return any(device["consumesCounters"], [](const Value& consumption) {
             return is_set(consumption, "compatibilityGroups");
           });
         });
}

void drop_from_devices(Value& spec, std::initializer_list<const char*> keys) {
  each(spec, "devices", [&](Value& device) {
    for (const char* key : keys) device.erase(key);
  });
}

}  // namespace

void drop_disabled_claim_spec(Value& spec, const Value* old, const Features& features) {
  auto off = [&](const char* gate) { return !features.on(gate); };
  auto unused = [&](const std::function<bool(const Value&)>& test) {
    return old == nullptr || !test(*old);
  };
  auto has = [](const char* key) {
    return [key](const Value& spec) {
      return any_body(spec, [key](const Value& body) { return is_set(body, key); });
    };
  };
  if (off("DRAPrioritizedList") && unused([](const Value& before) {
        return any(before["devices"]["requests"],
                   [](const Value& request) { return !request["firstAvailable"].empty(); });
      })) {
    each(spec.mut("devices"), "requests", [](Value& request) { request.erase("firstAvailable"); });
  }
  if (off("DRADeviceTaints") && unused(has("tolerations"))) {
    each_body(spec, [](Value& body) { body.erase("tolerations"); });
  }
  if (off("DRAAdminAccess") && unused(uses_admin_access)) {
    each_body(spec, [](Value& body) { body.erase("adminAccess"); });
  }
  if (off("DRAConsumableCapacity") && unused(uses_capacity)) {
    each_body(spec, [](Value& body) { body.erase("capacity"); });
    each(spec.mut("devices"), "constraints",
         [](Value& constraint) { constraint.erase("distinctAttribute"); });
  }
  if (off("DRADerivedAttributes") && unused(has("derivedAttributes"))) {
    each_body(spec, [](Value& body) { body.erase("derivedAttributes"); });
  }
}

void drop_disabled_claim_status(Value& claim, const Value& old, const Features& features) {
  auto off = [&](const char* gate) { return !features.on(gate); };
  if (off("DRAAdminAccess") && !uses_admin_access(old["spec"]) &&
      !any_result(old, {"adminAccess"})) {
    drop_from_results(claim, {"adminAccess"});
  }
  if (off("DRAResourceClaimDeviceStatus") && old["status"]["devices"].empty() &&
      is_set(claim["status"], "devices")) {
    claim.mut("status").erase("devices");
  }
  bool shares =
      any_result(old, {"shareID", "consumedCapacity"}) ||
      any(old["status"]["devices"], [](const Value& device) { return is_set(device, "shareID"); });
  if (off("DRAConsumableCapacity") && !uses_capacity(old["spec"]) && !shares) {
    drop_from_results(claim, {"shareID", "consumedCapacity"});
    if (is_set(claim["status"], "devices")) {
      each(claim.mut("status"), "devices", [](Value& device) { device.erase("shareID"); });
    }
  }
  if (off("DRADeviceBindingConditions") &&
      !any_result(old, {"bindingConditions", "bindingFailureConditions"})) {
    drop_from_results(claim, {"bindingConditions", "bindingFailureConditions"});
  }
  if (off("DRAOptionalNodeOperations") && !any_result(old, {"skipNodeOperations"})) {
    drop_from_results(claim, {"skipNodeOperations"});
  }
}

void drop_disabled_slice(Value& spec, const Value* old, const Features& features) {
  auto off = [&](const char* gate) { return !features.on(gate); };
  if (off("DRADeviceTaints") && !any_device(old, {"taints"})) drop_from_devices(spec, {"taints"});
  bool partitions =
      old != nullptr && (is_set(*old, "sharedCounters") || is_set(*old, "perDeviceNodeSelection"));
  if (off("DRAPartitionableDevices") && !partitions &&
      !any_device(old, {"consumesCounters", "nodeName", "nodeSelector", "allNodes"})) {
    spec.erase("sharedCounters");
    spec.erase("perDeviceNodeSelection");
    drop_from_devices(spec, {"consumesCounters", "nodeName", "nodeSelector", "allNodes"});
  }
  if ((off("DRADeviceBindingConditions") || off("DRAResourceClaimDeviceStatus")) &&
      !any_device(old, {"bindingConditions", "bindingFailureConditions", "bindsToNode"})) {
    drop_from_devices(spec, {"bindingConditions", "bindingFailureConditions", "bindsToNode"});
  }
  if (off("DRAConsumableCapacity") && !any_device(old, {"allowMultipleAllocations"}) &&
      !any_capacity_policy(old)) {
    drop_from_devices(spec, {"allowMultipleAllocations"});
    each(spec, "devices", [](Value& device) {
      if (device["capacity"].empty()) return;
      Value capacities = device["capacity"];
      for (const auto& [name, capacity] : capacities.members()) {
        if (is_set(capacity, "requestPolicy")) {
          device.mut("capacity").mut(name).erase("requestPolicy");
        }
      }
    });
  }
  if (off("DRANodeAllocatableResources") &&
      !any_device(old, {"nodeAllocatableResources", "nodeAllocatableResourceMappings"})) {
    drop_from_devices(spec, {"nodeAllocatableResources", "nodeAllocatableResourceMappings"});
  }
  if (off("DRAListTypeAttributes") && !any_list_attribute(old)) {
    each(spec, "devices", [](Value& device) {
      if (device["attributes"].empty()) return;
      Value attributes = device["attributes"];
      for (const auto& [name, attribute] : attributes.members()) {
        for (const char* list : kLists) {
          if (is_set(attribute, list)) device.mut("attributes").mut(name).erase(list);
        }
      }
    });
  }
  if (off("DRADeviceCompatibilityGroups") && !any_compatibility_group(old)) {
    each(spec, "devices", [](Value& device) {
      each(device, "consumesCounters",
           [](Value& consumption) { consumption.erase("compatibilityGroups"); });
    });
  }
  if (off("DRAPartitionableDevicesType") &&
      !(old != nullptr && is_set(*old, "partitionTypeAttribute"))) {
    spec.erase("partitionTypeAttribute");
  }
  if (off("DRAOptionalNodeOperations") && !(old != nullptr && is_set(*old, "skipNodeOperations"))) {
    spec.erase("skipNodeOperations");
  }
}

}  // namespace dibs::api
