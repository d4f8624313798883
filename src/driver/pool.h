#pragma once
// What a driver offers: pools of devices.
//
// A pool is published as one or several ResourceSlices. A driver may say itself what goes into
// which slice; where a slice would hold more than the API takes, it is split, so a pool of ten
// thousand devices is as good as one of eight.
//
// Devices are objects of resource.k8s.io/v1; servers that only know an older version get them
// converted. Nothing here does I/O.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::driver {

/// A device of a ResourceSlice, put together step by step:
///   Device("gpu-0").attribute("index", 0).version("driverVersion", "1.0.0").capacity("memory",
///   "80Gi")
class Device {
 public:
  explicit Device(std::string_view name) { object_.set("name", name); }
  /// One that is an object of the API already.
  static Device from_object(json::Value object) {
    Device device("");
    device.object_ = std::move(object);
    return device;
  }

  /// An int, bool or string attribute by the kind of `value`.
  Device& attribute(std::string_view name, const json::Value& value);
  Device& version(std::string_view name, std::string_view value);
  /// A quantity ("80Gi"), with a requestPolicy where it is not null.
  Device& capacity(std::string_view name, std::string_view quantity, json::Value policy = {});
  /// Keeps pods from it that do not tolerate that: "NoSchedule", or "NoExecute" for those, too,
  /// that have it. "None" only shows it.
  Device& taint(std::string_view key, std::string_view effect, std::string_view value = {});
  /// Any other field of a device: "consumesCounters", …
  Device& set(std::string_view field, json::Value value);

  const json::Value& object() const { return object_; }

 private:
  json::Value object_ = json::Value::object();
};

struct SliceContent {
  std::vector<Device> devices = {};
  /// {"name": …, "counters": {…}} each.
  std::vector<json::Value> shared_counters = {};
  bool per_device_node_selection = false;
};

struct Pool {
  std::string name = {};
  std::vector<SliceContent> slices = {};
  /// Raises the pool's generation to at least this; 0: the publisher counts by itself.
  std::int64_t generation = 0;
  /// Where the devices can be reached, when that is not the driver's own node.
  json::Value node_selector = {};
  bool all_nodes = false;
  /// Of the pool's first slice, by name; others that are there stay. Null: none.
  json::Value annotations = {};
};

/// One slice's worth of devices.
Pool make_pool(std::string name, std::vector<Device> devices);

/// Limits of the API for one slice.
inline constexpr std::size_t kMaxDevices = 128;
/// Where a device of the slice has taints, counters or lists as attributes.
inline constexpr std::size_t kMaxCostlyDevices = 64;
inline constexpr std::size_t kMaxCounterSets = 8;

/// The spec of each slice without driver, pool and nodeName, in order: quantities in canonical
/// form, slices within the limits, counters apart from devices. Errors (invalid) are mistakes of
/// the driver that the server could not tell as well: names that repeat, unknown counters.
Result<std::vector<json::Value>> slices_of(const Pool& pool);

}  // namespace dibs::driver
