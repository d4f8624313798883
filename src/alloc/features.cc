#include "alloc/features.h"

namespace dibs::alloc {
namespace {

struct Gate {
  std::string_view name;
  bool Features::*member;
};

constexpr Gate kGates[] = {
    {"DRAAdminAccess", &Features::admin_access},
    {"DRADeviceBindingConditions", &Features::binding_conditions},
    {"DRADeviceCompatibilityGroups", &Features::compatibility_groups},
    {"DRAConsumableCapacity", &Features::consumable_capacity},
    {"DRADerivedAttributes", &Features::derived_attributes},
    {"DRADeviceTaints", &Features::device_taints},
    {"DRAFractionalCapacityRange", &Features::fractional_capacity},
    {"DRAListTypeAttributes", &Features::list_attributes},
    {"DRAOptionalNodeOperations", &Features::optional_node_operations},
    {"DRAPartitionableDevices", &Features::partitionable_devices},
    {"DRAPrioritizedList", &Features::prioritized_list},
};

}  // namespace

Features Features::from_gates(const api::Features& gates) {
  Features made;
  for (const Gate& gate : kGates) made.*gate.member = gates.on(gate.name);
  made.binding_conditions = made.binding_conditions && gates.on("DRAResourceClaimDeviceStatus");
  made.ignore_skip_operations = !made.compatibility_groups && !made.derived_attributes &&
                                !made.list_attributes && !made.optional_node_operations;
  return made;
}

Features Features::all() {
  Features made;
  for (const Gate& gate : kGates) made.*gate.member = true;
  return made;
}

bool Features::enable(std::string_view gate) {
  if (gate == "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus") {
    gate = "DRADeviceBindingConditions";
  }
  for (const Gate& known : kGates) {
    if (known.name != gate) continue;
    this->*known.member = true;
    return true;
  }
  return false;
}

}  // namespace dibs::alloc
