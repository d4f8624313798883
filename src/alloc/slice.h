#pragma once
// Slices and their devices, read once from their JSON to what allocation asks about. Attributes
// stay JSON: selectors and columns read them on demand.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "alloc/amount.h"
#include "alloc/node.h"
#include "base/quantity.h"
#include "json/value.h"

namespace dibs::alloc {

/// What slices offer, and how requests speak of it.
enum class Resources : std::uint8_t {
  devices,  // resource.k8s.io/v1
  named,    // named resources of resource.k8s.io/v1alpha2, Kubernetes 1.30
};

/// Which amounts of a capacity may be consumed.
struct CapacityPolicy {
  bool has_default = false;
  Quantity fallback;  // `default`
  Amount fallback_amount = 0;
  bool has_range = false;
  bool has_min = false;
  Quantity min;
  bool has_max = false;
  Quantity max;
  bool has_step = false;
  Quantity step;
  std::vector<Quantity> values;  // `validValues`, as listed
};

struct Capacity {
  std::string name;
  Quantity value;
  Amount amount = 0;
  std::shared_ptr<const CapacityPolicy> policy;  // null: none
};

struct CounterAmount {
  std::string name;
  Amount amount = 0;
};

struct CounterSet {
  std::string name;
  std::vector<CounterAmount> counters;
};

/// What a device takes from one counter set.
struct Consumption {
  std::string set;
  std::vector<CounterAmount> counters;
  std::vector<std::string> groups;  // compatibility groups
};

/// Only taints that keep pods away are kept.
struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

struct Device {
  std::string name;
  json::Value source;
  std::unique_ptr<const NodeSelection> nodes;  // null: where its slice is
  std::vector<Capacity> capacities;            // by name
  std::vector<Consumption> consumptions;
  std::vector<Taint> taints;
  bool multiple = false;  // allowMultipleAllocations
  bool binds_to_node = false;
  bool binding_conditions = false;
};

struct Slice {
  std::string name;
  std::string driver;
  std::string pool;
  std::int64_t generation = 0;
  std::int64_t expected_slices = 0;  // below 0: not stated, as many as there are
  NodeSelection nodes;
  bool states_per_device = false;  // perDeviceNodeSelection is there, whatever its value
  bool per_device = false;
  bool has_groups = false;
  bool has_binding_conditions = false;
  json::Value skip_operations;  // null: none
  std::vector<CounterSet> counter_sets;
  std::vector<Device> devices;

  /// Of resource.k8s.io/v1.
  static Slice read(const json::Value& slice);
  /// Of v1alpha2: what a driver has on a node is a pool with the name of the node.
  static Slice read_named(const json::Value& slice);
};

/// "driver/pool/device"
std::string device_id(const Slice& slice, const Device& device);

/// A quantity that cannot be read counts as nothing; the API does not let one in.
Quantity read_quantity(const json::Value& value);

}  // namespace dibs::alloc
