#pragma once
// What a ResourcePoolStatusRequest is answered: how much of a driver's pools is in use. A pure
// function of slices, claims and rules.

#include <string>
#include <vector>

#include "base/time.h"
#include "json/value.h"

namespace dibs::controllers {

struct PoolObjects {
  std::vector<json::Value> slices = {};
  std::vector<json::Value> claims = {};
  std::vector<json::Value> taint_rules = {};
};

/// The status; null while a pool that it is about is not complete, since its driver is about to
/// publish the rest.
json::Value pool_status(const json::Value& request, const PoolObjects& objects, Time now);

}  // namespace dibs::controllers
