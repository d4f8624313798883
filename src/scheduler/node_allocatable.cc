#include "scheduler/node_allocatable.h"

#include <algorithm>
#include <limits>

#include "base/quantity.h"
#include "base/strings.h"
#include "scheduler/counted_spec.h"

namespace dibs::scheduler {
namespace {

using json::Value;

std::string id_of(const Value& driver, const Value& pool, const Value& device) {
  return cat(driver.as_string(), '/', pool.as_string(), '/', device.as_string());
}

Quantity amount(const Value& value) {
  auto parsed = Quantity::parse(value.as_string());
  return parsed.ok() ? *parsed : Quantity();
}

/// Exact to thousandths of each; more than can be counted is the most that can.
Quantity product(const Quantity& a, const Quantity& b) {
  std::int64_t out = 0;
  if (const auto whole_a = a.exact(), whole_b = b.exact(); whole_a && whole_b) {
    if (!__builtin_mul_overflow(*whole_a, *whole_b, &out)) return Quantity(out, 0, a.format());
  } else if (!__builtin_mul_overflow(a.milli_value(), b.milli_value(), &out)) {
    return Quantity(out, -6, a.format());
  }
  return Quantity(std::numeric_limits<std::int64_t>::max(), 0, a.format());
}

bool is_huge_pages(std::string_view name) { return name.starts_with("hugepages-"); }
bool is_pod_level(std::string_view name) {
  return name == "cpu" || name == "memory" || is_huge_pages(name);
}

using Sums = std::map<std::string, Quantity, std::less<>>;

struct Overhead {
  bool has_pod = false;
  bool has_container = false;
  Quantity pod = {};
  Quantity container = {};
};

/// The pod's containers alone: neither the pod as a whole nor its overhead.
Value containers_alone(const Value& pod) {
  Value out = pod;
  Value& spec = out.mut("spec");
  spec.set("resources", Value());
  spec.set("overhead", Value());
  return out;
}

std::int64_t claimed_by(const Value& pod, std::string_view container, const std::string& resource) {
  Quantity sum;
  for (const Value& claim : pod["status"]["nodeAllocatableResourceClaimStatuses"].items()) {
    bool uses = false;
    for (const Value& name : claim["containers"].items())
      uses = uses || name.as_string() == container;
    if (!uses) continue;
    for (const Value& mapping : claim["mapping"].items()) {
      if (mapping["name"].as_string() == resource) sum.add(amount(mapping["quantity"]));
    }
    for (const Value& overhead : claim["overhead"].items()) {
      if (overhead["name"].as_string() != resource) continue;
      sum.add(amount(overhead["perPod"]));
      sum.add(amount(overhead["perContainer"]));
    }
  }
  return sum.milli_value();
}

}  // namespace

void NodeAllocatable::put_slice(const Value& slice) {
  const std::string name = slice["metadata"]["name"].str();
  remove_slice(name);
  const Value& spec = slice["spec"];
  for (const Value& device : spec["devices"].items()) {
    const Value& resources = device["nodeAllocatableResources"];
    if (resources.empty()) continue;
    std::string id = id_of(spec["driver"], spec["pool"]["name"], device["name"]);
    by_device_[id][name] = resources;
    by_slice_[name].push_back(std::move(id));
  }
}

void NodeAllocatable::remove_slice(const std::string& name) {
  const auto found = by_slice_.find(name);
  if (found == by_slice_.end()) return;
  for (const std::string& id : found->second) {
    const auto device = by_device_.find(id);
    if (device == by_device_.end()) continue;
    device->second.erase(name);
    if (device->second.empty()) by_device_.erase(device);
  }
  by_slice_.erase(found);
}

const Value* NodeAllocatable::find(const Value& result) const {
  const auto found = by_device_.find(id_of(result["driver"], result["pool"], result["device"]));
  return found == by_device_.end() ? nullptr : &found->second.begin()->second;
}

bool NodeAllocatable::has_any(const Value& allocation) const {
  if (empty()) return false;
  const auto results = allocation["devices"]["results"].items();
  return std::any_of(results.begin(), results.end(),
                     [this](const Value& result) { return find(result) != nullptr; });
}

Result<Value> NodeAllocatable::status_of(std::string_view name_space, std::string_view claim,
                                         const Value& allocation) const {
  Sums mapped;
  std::map<std::string, Overhead, std::less<>> overheads;
  for (const Value& result : allocation["devices"]["results"].items()) {
    const Value* resources = find(result);
    if (resources == nullptr) continue;
    for (const auto& [key_name, entry] : resources->members()) {
      const std::string name(key_name);
      const Value& mapping = entry["mapping"];
      if (const std::string key = mapping["capacityKey"].str(); !key.empty()) {
        const Value& consumed = result["consumedCapacity"];
        if (!consumed.is_object()) {
          return Error::internal(cat("claim ", name_space, '/', claim, ", device ",
                                     result["device"].as_string(),
                                     ": ConsumedCapacity is nil, but Capacity key '", key,
                                     "' is set in NodeAllocatableResources for resource ", name));
        }
        if (consumed.contains(key)) {
          const Value& times = mapping["capacityMultiplier"];
          const Quantity one = amount(consumed[key]);
          mapped[name].add(times.is_string() ? product(one, amount(times)) : one);
        }
      } else if (mapping["deviceMultiplier"].is_string()) {
        mapped[name].add(amount(mapping["deviceMultiplier"]));
      }
      const Value& overhead = entry["overhead"];
      if (overhead["perPod"].is_string()) {
        overheads[name].has_pod = true;
        overheads[name].pod.add(amount(overhead["perPod"]));
      }
      if (overhead["perContainer"].is_string()) {
        overheads[name].has_container = true;
        overheads[name].container.add(amount(overhead["perContainer"]));
      }
    }
  }
  if (mapped.empty() && overheads.empty()) return Value();
  Value out = Value::object({{"resourceClaimName", claim}});
  for (const auto& [name, sum] : mapped) {
    out.mut("mapping").push(Value::object({{"name", name}, {"quantity", sum.canonical()}}));
  }
  for (const auto& [name, sums] : overheads) {
    Value entry = Value::object({{"name", name}});
    if (sums.has_pod) entry.set("perPod", sums.pod.canonical());
    if (sums.has_container) entry.set("perContainer", sums.container.canonical());
    out.mut("overhead").push(std::move(entry));
  }
  return out;
}

Value with_claim_statuses(Value pod, const Value& statuses) {
  pod.mut("status").set("nodeAllocatableResourceClaimStatuses", statuses);
  return pod;
}

std::string uncovered(const Value& pod) {
  const Value& whole = pod["spec"]["resources"];
  const Resources sums = pod_requests(counted_spec(containers_alone(pod)));
  const auto sum_of = [&](std::string_view name) { return sums.amount(name); };
  const Resources requests = Resources::read(whole["requests"]);
  for (const auto& [name, value] : whole["requests"].members()) {
    if (is_pod_level(name) && sum_of(name) > requests.amount(name)) {
      return cat("pod level request for ", name,
                 " is insufficient to cover the aggregated container and node-allocatable DRA "
                 "requests");
    }
  }
  const Resources limits = Resources::read(whole["limits"]);
  for (const auto& [name, value] : whole["limits"].members()) {
    if (is_huge_pages(name) && sum_of(name) > limits.amount(name)) {
      return cat("pod level limit for ", name,
                 " is insufficient to cover the aggregated container and node-allocatable DRA "
                 "limits");
    }
  }
  for (const Value& container : pod["spec"]["containers"].items()) {
    for (const auto& [name, value] : container["resources"]["limits"].members()) {
      if (is_huge_pages(name) || !whole["limits"].contains(name)) continue;
      const std::int64_t own = amount(value).milli_value() +
                               claimed_by(pod, container["name"].as_string(), std::string(name));
      if (own <= amount(whole["limits"][name]).milli_value()) continue;
      return cat("pod level limit for ", name,
                 " is insufficient to cover the limit and DRA overhead for container ",
                 container["name"].as_string());
    }
  }
  return "";
}

std::vector<std::string> lacking(const Value& pod, const NodeInfo& node) {
  const Resources wanted = pod_requests(counted_spec(pod));
  std::vector<std::string> out;
  const auto look = [&](const std::string& name) {
    const std::int64_t free = node.allocatable.amount(name) - node.requested.amount(name);
    const std::int64_t asked = wanted.amount(name);
    if (asked > 0 && asked > free) out.push_back(cat("Insufficient ", name));
  };
  for (const char* name : {"cpu", "memory", "ephemeral-storage"}) look(name);
  for (const auto& [name, amount] : wanted.scalars) {
    if (is_huge_pages(name)) look(name);
  }
  return out;
}

}  // namespace dibs::scheduler
