#pragma once
// What is left of a pool whose devices are parts of others (counters) or can be shared (capacity).
// Pure functions.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "json/value.h"

namespace dibs::controllers {

struct PoolDevice {
  json::Value device = {};
  std::string attribute = {};  // its slice's partitionTypeAttribute
};

/// A complete pool.
struct PoolView {
  std::string driver = {};
  std::string name = {};
  std::vector<PoolDevice> devices = {};
  std::vector<json::Value> counters = {};  // sharedCounters of all slices
  std::set<std::string> in_use = {};
  std::map<std::string, Quantity> consumed = {};  // capacity, over all claims
};

struct PoolSummaries {
  json::Value partitions = {};  // partitionSummary, null: none
  json::Value shareable = {};   // shareableSummary, null: none
  std::string error = {};       // validationError
};

/// `fallback`: the attribute where no slice of the pool names one.
PoolSummaries summarize(const PoolView& pool, const std::string& fallback);

}  // namespace dibs::controllers
