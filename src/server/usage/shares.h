#pragma once
// How much of a device an allocation has, from what is published of devices.
//
// 1 for a device as a whole. For a part, the mean of its fractions: of the counters of the set that
// a partition is made of, of the capacities of a device that is given several times. So what the
// parts of one device have never adds up to more than the device. Not thread-safe.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json/value.h"

namespace dibs::server {

class DeviceShares {
 public:
  void put_slice(const std::string& key, const json::Value& slice);
  void remove_slice(const std::string& key);
  void clear();

  /// Of an entry of status.allocation.devices.results. Nothing where no part is published of that
  /// name: it is a device as a whole, or one whose slice is gone.
  std::optional<double> share_of(const json::Value& result) const;

 private:
  /// What is published of a device that is given in parts, or of a set of counters.
  struct Published {
    std::string slice;
    std::int64_t generation = 0;
    json::Value body;
  };
  using Table = std::unordered_map<std::string, Published>;
  struct Names {
    std::vector<std::string> devices;
    std::vector<std::string> counters;
  };
  static void put(Table& table, std::vector<std::string>& names, std::string name,
                  Published published);

  std::optional<double> of_counters(const std::string& pool, const json::Value& device) const;

  std::unordered_map<std::string, Names> slices_;
  Table devices_;   // by "driver/pool/device"
  Table counters_;  // by "driver/pool/set"
};

}  // namespace dibs::server
