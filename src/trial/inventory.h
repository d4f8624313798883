#pragma once
// What a driver offers, read off its ResourceSlices; and what is wrong with those, which the API
// server cannot see as it looks at one at a time.

#include <string>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::trial {

struct Offered {
  std::string pool = {};
  json::Value device = {};  // as the slice has it
  std::string name() const { return device["name"].str(); }
};

/// Of the driver's slices on that node, those best to try first: without taints. Errors say what is
/// missing or wrong.
Result<std::vector<Offered>> read_inventory(const std::vector<json::Value>& slices,
                                            std::string_view node, std::string_view node_uid);

/// Whether both can be in use at once: they take nothing from the same counters.
bool go_together(const Offered& a, const Offered& b);

/// A result of an allocation that has the device as a whole, or a share of it where it can be
/// shared.
json::Value allocation_result(const Offered& offered, std::string_view driver,
                              std::string_view request, const std::string& share_id);

}  // namespace dibs::trial
