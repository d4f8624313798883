#include "trial/inventory.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace dibs::trial {
namespace {

using json::Value;

struct Pool {
  std::int64_t generation = 0;
  std::int64_t wanted = 0;
  std::vector<const Value*> slices;
};

/// Who owns a slice is what takes it away with the node.
Result<> check_owner(const Value& slice, std::string_view node, std::string_view node_uid) {
  const std::string name = slice["metadata"]["name"].str();
  const auto on = slice["spec"]["nodeName"].as_string();
  if (on.empty()) return success();
  if (on != node) return Error::invalid(cat("slice ", name, " is of node ", quoted(on)));
  for (const Value& owner : slice["metadata"]["ownerReferences"].items()) {
    if (owner["kind"].as_string() == "Node" && owner["uid"].as_string() == node_uid) {
      return success();
    }
  }
  return Error::invalid(cat("slice ", name, " is not owned by its node and would outlive it"));
}

Result<> check_pool(const std::string& name, const Pool& pool) {
  if (static_cast<std::int64_t>(pool.slices.size()) != pool.wanted) {
    return Error::invalid(cat("pool ", name, " says that it has ", pool.wanted,
                              pool.wanted == 1 ? " slice" : " slices", " and has ",
                              pool.slices.size()));
  }
  std::set<std::string> names;
  for (const Value* slice : pool.slices) {
    if ((*slice)["spec"]["pool"]["resourceSliceCount"].as_int() != pool.wanted) {
      return Error::invalid(cat("slices of pool ", name, " differ in how many there are"));
    }
    for (const Value& device : (*slice)["spec"]["devices"].items()) {
      if (names.insert(device["name"].str()).second) continue;
      return Error::invalid(cat("pool ", name, " has device ", device["name"].str(), " twice"));
    }
  }
  return success();
}

std::set<std::string> counters_of(const Offered& offered) {
  std::set<std::string> out;
  for (const Value& use : offered.device["consumesCounters"].items()) {
    out.insert(cat(offered.pool, "/", use["counterSet"].as_string()));
  }
  return out;
}

}  // namespace

Result<std::vector<Offered>> read_inventory(const std::vector<Value>& slices, std::string_view node,
                                            std::string_view node_uid) {
  if (slices.empty()) return Error::not_found("no ResourceSlice");
  std::map<std::string, Pool> pools;
  for (const Value& slice : slices) {
    DIBS_CHECK(check_owner(slice, node, node_uid));
    const Value& says = slice["spec"]["pool"];
    Pool& pool = pools[says["name"].str()];
    if (says["generation"].as_int() < pool.generation) continue;
    if (says["generation"].as_int() > pool.generation) pool = {};
    pool.generation = says["generation"].as_int();
    pool.wanted = says["resourceSliceCount"].as_int();
    pool.slices.push_back(&slice);
  }
  std::vector<Offered> out;
  for (const auto& [name, pool] : pools) {
    DIBS_CHECK(check_pool(name, pool));
    for (const Value* slice : pool.slices) {
      for (const Value& device : (*slice)["spec"]["devices"].items()) out.push_back({name, device});
    }
  }
  if (out.empty()) return Error::not_found("slices without devices");
  std::stable_partition(out.begin(), out.end(),
                        [](const Offered& one) { return one.device["taints"].size() == 0; });
  return out;
}

bool go_together(const Offered& a, const Offered& b) {
  const auto of_a = counters_of(a);
  const auto of_b = counters_of(b);
  return std::none_of(of_a.begin(), of_a.end(),
                      [&](const std::string& one) { return of_b.contains(one); });
}

Value allocation_result(const Offered& offered, std::string_view driver, std::string_view request,
                        const std::string& share_id) {
  Value result = Value::object({{"request", request},
                                {"driver", driver},
                                {"pool", offered.pool},
                                {"device", offered.name()}});
  if (!offered.device["allowMultipleAllocations"].as_bool()) return result;
  result.set("shareID", share_id);
  Value consumed = Value::object();
  for (const auto& [name, capacity] : offered.device["capacity"].members()) {
    const Value* least = capacity["requestPolicy"].find("default");
    consumed.set(name, least != nullptr ? *least : capacity["value"]);
  }
  if (consumed.size() > 0) result.set("consumedCapacity", std::move(consumed));
  return result;
}

}  // namespace dibs::trial
