#pragma once
// How many devices there are, by driver, node and state, kept up by each change alone: a claim
// costs as much as it has devices, a slice as much as its pool has.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"

namespace dibs::controllers {

/// Of a device of any version of the API.
const json::Value& taints_of(const json::Value& device);
/// Whether a DeviceTaintRule is about this device.
bool selects_device(const json::Value& rule, std::string_view driver, std::string_view pool,
                    std::string_view device);

/// Not thread-safe.
class DeviceCounts {
 public:
  void put_slice(const json::Value& slice);
  void remove_slice(const json::Value& slice);
  void put_claim(const json::Value& claim);
  void remove_claim(const json::Value& claim);
  void put_rule(const json::Value& rule);
  void remove_rule(const json::Value& rule);

  struct Kind {
    std::string driver;
    std::string node;  // "": of no single node
    bool allocated = false;
    bool tainted = false;  // by its slice or a rule, so that it is not given out or is taken away
    friend auto operator<=>(const Kind&, const Kind&) = default;
  };
  /// Devices of the newest generation of each pool; none with 0.
  const std::map<Kind, std::int64_t>& all() const { return counts_; }

 private:
  struct Slice {
    std::int64_t generation = 0;
    std::string node;
    json::Value devices;
  };
  struct Pool {
    std::string driver;
    std::string name;
    std::map<std::string, Slice> slices;                 // by name
    std::map<std::string, Kind, std::less<>> published;  // by device
  };
  /// A device that a claim holds: pool and device.
  using Held = std::pair<std::string, std::string>;

  void count(const Kind& kind, int change);
  void publish(const std::string& key);
  void forget_slice(const std::string& name);
  void hold(const Held& held, int change);
  bool is_tainted(const Pool& pool, const json::Value& device) const;

  std::unordered_map<std::string, Pool> pools_;
  std::unordered_map<std::string, std::string> pool_of_;  // by slice
  std::map<Held, int> holders_;
  std::unordered_map<std::string, std::vector<Held>> claims_;
  std::map<std::string, json::Value> rules_;  // that taint
  std::map<Kind, std::int64_t> counts_;
};

}  // namespace dibs::controllers
