#pragma once
// The optional parts of allocation that are switched on, after the feature gates of the API.

#include <string_view>

#include "api/schema/features.h"

namespace dibs::alloc {

struct Features {
  bool admin_access = false;
  bool binding_conditions = false;
  bool compatibility_groups = false;
  bool consumable_capacity = false;
  bool derived_attributes = false;
  bool device_taints = false;
  bool fractional_capacity = false;
  bool list_attributes = false;
  bool optional_node_operations = false;
  bool partitionable_devices = false;
  bool prioritized_list = false;
  /// Devices whose slice lists node operations to skip are allocated like all others, as releases
  /// do that have none of the newer features on; else they need optional_node_operations.
  bool ignore_skip_operations = false;

  static Features from_gates(const api::Features& gates);
  static Features all();
  /// Turns on what the gate stands for; false when allocation does not know it.
  bool enable(std::string_view gate);

  friend bool operator==(const Features&, const Features&) = default;
};

}  // namespace dibs::alloc
