// Claims of v1alpha2 with parameters: the search, in the inventory of named resources.
#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "json/parse.h"
#include "scheduler/devices.h"

namespace dibs::scheduler {

using json::Value;

Value Devices::counted_form(const Value& claim) {
  const Value& allocation = claim["status"]["allocation"];
  if (!api::is_classic(claim)) return allocation;
  for (const Value& handle : allocation["resourceHandles"].items()) {
    if (handle["structuredData"].is_object()) return allocation;
  }
  return {};
}

alloc::Inventory& Devices::inventory_of(const Value& allocation) {
  return allocation["resourceHandles"].is_array() ? named_inventory_ : inventory_;
}

std::string Devices::add_parameters(const Value& claim, const ResourceClass& of, DeviceRun& run) {
  FoundParameters found = parameters_.find(claim, of.object);
  if (!found.problem.empty()) return found.problem;
  json::write_to(run.signature, found.of_claim["driverRequests"]);
  json::write_to(run.signature, found.of_class["filters"]);
  std::string problem;
  run.named.push_back(NamedClaim::read(claim, of.object, std::move(found), problem));
  return problem;
}

void Devices::prepare_named(DeviceRun& run) {
  std::vector<std::shared_ptr<const alloc::Claim>> wanted;
  for (const NamedClaim& named : run.named) wanted.push_back(named.claim());
  run.named_demand = alloc::Demand::prepare(
      named_inventory_, std::move(wanted),
      [&run](std::string_view name) -> std::shared_ptr<const alloc::DeviceClass> {
        for (const NamedClaim& named : run.named) {
          if (auto found = named.class_of(name)) return found;
        }
        return nullptr;
      });
}

/// Adds the allocations of claims with parameters to those of the others.
bool Devices::check_named(const DeviceRun& run, const NodeInfo& node, NodeDevices& made) {
  const alloc::Outcome outcome =
      alloc::allocate(named_inventory_, node.place, run.named_demand, share_ids_);
  made.steps += outcome.stats.steps;
  if (outcome.answer != alloc::Answer::allocated) {
    const bool undecided = outcome.answer == alloc::Answer::undecided;
    made.kind = undecided ? NodeDevices::Kind::failed : NodeDevices::Kind::refused;
    made.named = true;
    made.reason = undecided ? cat("node ", node.name, ": timed out trying to allocate devices")
                  : outcome.answer == alloc::Answer::failed
                      // A fault of some instance is one of its node: others are still asked.
                      ? cat("checking structured parameters failed: ", outcome.error)
                      : kUnsuitable;
    return false;
  }
  std::vector<Value> all;
  std::size_t of_devices = 0;
  std::size_t of_named = 0;
  for (const std::size_t place : run.open) {
    if (run.claims[place].way == Way::parameters) {
      all.push_back(run.named[of_named].allocation(node.place, outcome.allocations[of_named]));
      ++of_named;
    } else {
      all.push_back(std::move(made.allocations[of_devices++]));
    }
  }
  while (of_devices < made.allocations.size()) {
    all.push_back(std::move(made.allocations[of_devices++]));
  }
  made.allocations = std::move(all);
  return true;
}

}  // namespace dibs::scheduler
