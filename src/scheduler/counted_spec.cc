#include "scheduler/counted_spec.h"

#include "base/quantity.h"

namespace dibs::scheduler {
namespace {

using json::Value;

Quantity amount(const Value& value) {
  auto parsed = Quantity::parse(value.as_string());
  return parsed.ok() ? *parsed : Quantity();
}

void raise(Value& list, const Value& other) {
  for (const auto& [name, value] : other.members()) {
    if (!list.contains(name) || amount(value) > amount(list[name])) list.set(name, value);
  }
}

bool is_infeasible(const Value& status) {
  for (const Value& condition : status["conditions"].items()) {
    if (condition["type"].as_string() != "PodResizePending") continue;
    return condition["reason"].as_string() == "Infeasible";
  }
  return false;
}

const Value& status_of(const Value& statuses, const Value& name) {
  for (const Value& status : statuses.items()) {
    if (status["name"] == name) return status;
  }
  return json::null_value();
}

/// The container's status says something else than its spec.
bool differs(const Value& container, const Value& status) {
  const Value& asked = container["resources"]["requests"];
  const auto other = [&](const Value& list) { return !list.empty() && !(list == asked); };
  return other(status["allocatedResources"]) || other(status["resources"]["requests"]);
}

bool any_resize(const Value& spec, const Value& status) {
  for (const auto& [list, statuses] : {std::pair{"containers", "containerStatuses"},
                                       {"initContainers", "initContainerStatuses"}}) {
    for (const Value& container : spec[list].items()) {
      if (differs(container, status_of(status[statuses], container["name"]))) return true;
    }
  }
  const Value& whole = spec["resources"]["requests"];
  for (const auto& [name, value] : whole.members()) {
    for (const Value* shown : {&status["allocatedResources"], &status["resources"]["requests"]}) {
      if (shown->contains(name) && !(amount((*shown)[name]) == amount(value))) return true;
    }
  }
  return false;
}

void count_resize(const Value& status, Value& spec) {
  const bool infeasible = is_infeasible(status);
  for (const auto& [list, statuses] : {std::pair{"containers", "containerStatuses"},
                                       {"initContainers", "initContainerStatuses"}}) {
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      const Value& container = spec[list][i];
      const Value& shown = status_of(status[statuses], container["name"]);
      if (!differs(container, shown)) continue;
      Value counted = infeasible ? Value() : container["resources"]["requests"];
      raise(counted, shown["allocatedResources"]);
      raise(counted, shown["resources"]["requests"]);
      spec.mut(list).mut(i).mut("resources").set("requests", std::move(counted));
    }
  }
  const Value whole = spec["resources"]["requests"];
  if (whole.empty()) return;
  Value counted = whole;
  for (const auto& [name, value] : whole.members()) {
    Value most = infeasible ? Value() : Value::object({{name, value}});
    for (const Value* shown : {&status["allocatedResources"], &status["resources"]["requests"]}) {
      if (shown->contains(name)) raise(most, Value::object({{name, (*shown)[name]}}));
    }
    if (most.contains(name)) counted.set(name, most[name]);
  }
  spec.mut("resources").set("requests", std::move(counted));
}

/// What the pod as a whole asks for covers its claims already.
void count_claims(const Value& claims, Value& spec) {
  const Value whole = spec["resources"]["requests"];
  Value more = spec["overhead"];
  const auto add = [&](const Value& name, const Value& quantity, std::int64_t times) {
    if (whole.contains(name.as_string()) || !quantity.is_string()) return;
    Quantity sum = amount(more[name.as_string()]);
    for (std::int64_t i = 0; i < times; ++i) sum.add(amount(quantity));
    more.set(name.as_string(), sum.canonical());
  };
  for (const Value& claim : claims.items()) {
    for (const Value& mapping : claim["mapping"].items()) {
      add(mapping["name"], mapping["quantity"], 1);
    }
    for (const Value& overhead : claim["overhead"].items()) {
      add(overhead["name"], overhead["perPod"], 1);
      add(overhead["name"], overhead["perContainer"],
          static_cast<std::int64_t>(claim["containers"].size()));
    }
  }
  if (!more.empty()) spec.set("overhead", std::move(more));
}

}  // namespace

Value counted_spec(const Value& pod) {
  const Value& spec = pod["spec"];
  const Value& status = pod["status"];
  const Value& claims = status["nodeAllocatableResourceClaimStatuses"];
  const bool resized = any_resize(spec, status);
  if (!resized && claims.empty()) return spec;
  Value counted = spec;
  if (resized) count_resize(status, counted);
  if (!claims.empty()) count_claims(claims, counted);
  return counted;
}

}  // namespace dibs::scheduler
