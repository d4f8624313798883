#include "node/pods/pod_resize.h"

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/pod_resources.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr const char* kResizable[] = {"cpu", "memory"};

/// Without what no resize changes: claims.
Value amounts(const Value& resources) {
  Value out = Value::object();
  for (const char* key : {"limits", "requests"}) {
    if (!resources[key].empty()) out.set(key, resources[key]);
  }
  return out;
}

void put(const Value& granted, Value& owner) {
  const Value before = owner["resources"];
  Value after = granted;
  if (before.contains("claims")) after.set("claims", before["claims"]);
  owner.set("resources", std::move(after));
}

bool differs(const Value& a, const Value& b, const char* resource) {
  for (const char* key : {"limits", "requests"}) {
    if (amount_of(a[key][resource], resource) != amount_of(b[key][resource], resource)) return true;
  }
  return false;
}

}  // namespace

Value allocation_of(const Value& pod) {
  const Value& spec = pod["spec"];
  Value out = Value::object();
  if (spec["resources"].is_object()) out.set("", amounts(spec["resources"]));
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value& container : spec[list].items()) {
      out.set(container["name"].as_string(), amounts(container["resources"]));
    }
  }
  return out;
}

Value with_allocation(Value pod, const Value& allocation) {
  Value& spec = pod.mut("spec");
  if (allocation.contains("")) put(allocation[""], spec);
  for (const char* list : {"initContainers", "containers"}) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      const std::string name = spec[list][i]["name"].str();
      if (const Value* granted = allocation.find(name);
          granted != nullptr && !(amounts(spec[list][i]["resources"]) == *granted)) {
        put(*granted, spec.mut(list).mut(i));
      }
    }
  }
  return pod;
}

std::optional<WaitingReason> refuse_resize(const Value& pod, const Value& node,
                                           const std::vector<Value>& others) {
  const Value& allocatable = node["status"]["allocatable"];
  for (const char* resource : kResizable) {
    if (!allocatable.contains(resource)) continue;
    const std::int64_t wanted = requested(pod, resource);
    const std::int64_t capacity = amount_of(allocatable[resource], resource);
    if (wanted > capacity) {
      return WaitingReason{"Infeasible", cat("Node didn't have enough capacity: ", resource,
                                             ", requested: ", wanted, ", capacity: ", capacity)};
    }
    std::int64_t used = 0;
    for (const Value& other : others) used += requested(other, resource);
    if (wanted + used > capacity) {
      return WaitingReason{
          "Deferred", cat("Node didn't have enough resource: ", resource, ", requested: ", wanted,
                          ", used: ", used, ", capacity: ", capacity)};
    }
  }
  return std::nullopt;
}

bool restarts_for(const Value& container, const Value& had, const Value& has) {
  for (const Value& policy : container["resizePolicy"].items()) {
    if (policy["restartPolicy"].as_string() != "RestartContainer") continue;
    for (const char* resource : kResizable) {
      if (policy["resourceName"].as_string() == resource && differs(had, has, resource))
        return true;
    }
  }
  return false;
}

std::string limits_text(const ContainerLimits& limits) {
  return json::write(Value::object({{"shares", limits.cpu_shares},
                                    {"period", limits.cpu_period},
                                    {"quota", limits.cpu_quota},
                                    {"memory", limits.memory_bytes}}));
}

std::optional<ContainerLimits> read_limits(const std::string& text) {
  const auto parsed = json::parse(text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  ContainerLimits out;
  out.cpu_shares = (*parsed)["shares"].as_int();
  out.cpu_period = (*parsed)["period"].as_int();
  out.cpu_quota = (*parsed)["quota"].as_int();
  out.memory_bytes = (*parsed)["memory"].as_int();
  return out;
}

ContainerLimits wider(const ContainerLimits& a, const ContainerLimits& b) {
  // 0 is no limit at all.
  const auto most = [](std::int64_t one, std::int64_t other) -> std::int64_t {
    return one == 0 || other == 0 ? 0 : std::max(one, other);
  };
  ContainerLimits out = b;
  out.cpu_shares = std::max(a.cpu_shares, b.cpu_shares);
  out.cpu_quota = most(a.cpu_quota, b.cpu_quota);
  out.cpu_period = out.cpu_quota == 0 ? 0 : std::max(a.cpu_period, b.cpu_period);
  out.memory_bytes = most(a.memory_bytes, b.memory_bytes);
  return out;
}

std::string resize_summary(const Value& pod, const std::string& error) {
  Value out = Value::object();
  for (const char* list : {"initContainers", "containers"}) {
    Value entries;
    for (const Value& container : pod["spec"][list].items()) {
      entries.push(Value::object(
          {{"name", container["name"]}, {"resources", amounts(container["resources"])}}));
    }
    if (!entries.empty()) out.set(list, std::move(entries));
  }
  out.set("generation", pod["metadata"]["generation"].as_int());
  if (!error.empty()) out.set("error", error);
  return json::write(out);
}

}  // namespace dibs::node
