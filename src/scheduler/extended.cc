#include "scheduler/extended.h"

#include <algorithm>

#include "base/finalizers.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace dibs::scheduler {
namespace {

using json::Value;

std::int64_t amount_of(const Value& container, std::string_view resource) {
  const Value& value = container["resources"]["requests"][resource];
  if (!value.is_string()) return value.as_int();
  auto quantity = Quantity::parse(value.as_string());
  return quantity.ok() ? quantity->value() : 0;
}

/// Where a resource stands among all that a container requests, by name.
std::size_t place_of(const Value& container, std::string_view resource) {
  std::size_t before = 0;
  for (const auto& [name, value] : container["resources"]["requests"].members()) {
    if (name < resource) ++before;
  }
  return before;
}

struct Wanted {
  std::string name;  // of the request
  std::int64_t count = 0;
  std::string device_class;
};

struct Mapping {
  std::string container;
  std::string resource;
  std::string request;
};

struct Part {
  const Value* container = nullptr;
  std::size_t index = 0;
  bool lasts = false;  // runs as long as the pod does
};

void demand_of(std::string_view resource, const std::string& device_class,
               const std::vector<Part>& parts, std::vector<Wanted>& requests,
               std::vector<Mapping>& mappings) {
  struct Lasting {
    std::size_t index;
    std::string request;
    std::int64_t count;
  };
  std::vector<Lasting> lasting;
  for (const Part& part : parts) {
    const std::int64_t count = part.lasts ? amount_of(*part.container, resource) : 0;
    if (count <= 0) continue;
    const std::string name =
        cat("container-", part.index, "-request-", place_of(*part.container, resource));
    requests.push_back({name, count, device_class});
    mappings.push_back({(*part.container)["name"].str(), std::string(resource), name});
    lasting.push_back({part.index, name, count});
  }
  // Init containers use, before the others start, what these will have; only the largest shortage
  // needs devices of its own, since they run one after another.
  Wanted largest;
  std::vector<Mapping> short_of;
  for (const Part& part : parts) {
    std::int64_t need = part.lasts ? 0 : amount_of(*part.container, resource);
    if (need <= 0) continue;
    for (const Lasting& other : lasting) {
      if (need <= 0) break;
      if (other.index < part.index) continue;
      mappings.push_back({(*part.container)["name"].str(), std::string(resource), other.request});
      need -= other.count;
    }
    if (need <= 0) continue;
    const std::string name =
        cat("container-", part.index, "-request-", place_of(*part.container, resource));
    if (need > largest.count) largest = {name, need, device_class};
    short_of.push_back({(*part.container)["name"].str(), std::string(resource), name});
  }
  if (largest.count == 0) return;
  for (Mapping& mapping : short_of) mapping.request = largest.name;
  requests.push_back(largest);
  mappings.insert(mappings.end(), short_of.begin(), short_of.end());
}

}  // namespace

void ExtendedClasses::put(const Value& device_class) {
  remove(device_class);
  const std::string name = device_class["metadata"]["name"].str();
  classes_.insert(name);
  const std::string resource = device_class["spec"]["extendedResourceName"].str();
  if (resource.empty()) return;
  resource_of_[name] = resource;
  auto& entries = by_resource_[resource];
  entries.push_back({device_class["metadata"]["creationTimestamp"].str(), name});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.created != b.created ? a.created > b.created : a.name < b.name;
  });
}

void ExtendedClasses::remove(const Value& device_class) {
  const std::string name = device_class["metadata"]["name"].str();
  classes_.erase(name);
  const auto found = resource_of_.find(name);
  if (found == resource_of_.end()) return;
  auto& entries = by_resource_[found->second];
  std::erase_if(entries, [&](const Entry& entry) { return entry.name == name; });
  if (entries.empty()) by_resource_.erase(found->second);
  resource_of_.erase(found);
}

std::string ExtendedClasses::class_of(std::string_view resource) const {
  const auto found = by_resource_.find(resource);
  if (found != by_resource_.end()) return found->second.front().name;
  constexpr std::string_view kPrefix = kImplicitPrefix;
  if (resource.starts_with(kPrefix)) {
    const std::string_view name = resource.substr(kPrefix.size());
    if (classes_.contains(name)) return std::string(name);
  }
  return {};
}

ExtendedDemand make_extended_demand(const Pod& pod, const std::vector<std::string>& served,
                                    const ExtendedClasses& classes) {
  const Value& spec = pod.object["spec"];
  std::vector<Part> parts;
  for (const Value& container : spec["initContainers"].items()) {
    parts.push_back({&container, parts.size(), container["restartPolicy"].as_string() == "Always"});
  }
  for (const Value& container : spec["containers"].items()) {
    parts.push_back({&container, parts.size(), true});
  }
  std::vector<Wanted> requests;
  std::vector<Mapping> mappings;
  for (const std::string& resource : served) {
    demand_of(resource, classes.class_of(resource), parts, requests, mappings);
  }
  std::sort(requests.begin(), requests.end(),
            [](const Wanted& a, const Wanted& b) { return a.name < b.name; });
  ExtendedDemand made{Value::array(), Value::array()};
  for (const Wanted& wanted : requests) {
    made.requests.push(
        Value::object({{"name", wanted.name},
                       {"exactly", Value::object({{"deviceClassName", wanted.device_class},
                                                  {"allocationMode", "ExactCount"},
                                                  {"count", wanted.count}})}}));
  }
  for (const Mapping& mapping : mappings) {
    made.mappings.push(Value::object({{"containerName", mapping.container},
                                      {"resourceName", mapping.resource},
                                      {"requestName", mapping.request}}));
  }
  return made;
}

Value make_extended_claim(const Pod& pod, const Value& requests) {
  return Value::object(
      {{"apiVersion", "resource.k8s.io/v1"},
       {"kind", "ResourceClaim"},
       {"metadata",
        Value::object({{"generateName", cat(pod.name, "-extended-resources-")},
                       {"namespace", pod.name_space},
                       {"annotations", Value::object({{kExtendedClaimAnnotation, "true"}})},
                       {"ownerReferences", Value::array({Value::object({{"apiVersion", "v1"},
                                                                        {"kind", "Pod"},
                                                                        {"name", pod.name},
                                                                        {"uid", pod.uid},
                                                                        {"controller", true}})})},
                       {"finalizers", Value::array({Value(kClaimFinalizer)})}})},
       {"spec", Value::object({{"devices", Value::object({{"requests", requests}})}})}});
}

}  // namespace dibs::scheduler
