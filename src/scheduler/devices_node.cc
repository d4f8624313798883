// Claims on the node's own resources, in an attempt to place a pod.

#include <algorithm>

#include "base/strings.h"
#include "scheduler/devices.h"

namespace dibs::scheduler {
namespace {

using json::Value;

/// Containers that use the claim by one of these entries of the pod, in their order.
Value users_of(const Value& spec, const std::vector<std::string_view>& entries) {
  Value out;
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value& container : spec[list].items()) {
      for (const Value& use : container["resources"]["claims"].items()) {
        if (std::find(entries.begin(), entries.end(), use["name"].as_string()) != entries.end()) {
          out.push(container["name"]);
        }
      }
    }
  }
  return out;
}

}  // namespace

bool Devices::count_node_resources(const DeviceRun& run, const NodeInfo& node,
                                   NodeDevices& made) const {
  const auto refuse = [&](std::string reason) {
    made.kind = NodeDevices::Kind::refused;
    made.reason = std::move(reason);
    return false;
  };
  const Pod& pod = *run.pod;
  std::map<std::string, Value> statuses;
  std::size_t next = 0;
  for (const PodClaim& claim : run.claims) {
    Value allocation = claim.object["status"]["allocation"];
    if (!claim.allocated) {
      if (claim.way == Way::driver || next >= made.allocations.size()) continue;
      allocation = made.allocations[next++];
    }
    if (claim.way != Way::devices) continue;
    const std::string name = claim.object["metadata"]["name"].str();
    auto status = node_allocatable_.status_of(pod.name_space, name, allocation);
    if (!status.ok()) {
      made.kind = NodeDevices::Kind::failed;
      made.reason = status.error().message();
      return false;
    }
    if (status->is_null()) continue;
    const bool mapped = !(*status)["mapping"].empty();
    if (claim.allocated && mapped && !claim.reserved &&
        !claim.object["status"]["reservedFor"].empty()) {
      return refuse(cat("node allocatable resource claim ", name,
                        " has a mapped device and cannot be shared across pods"));
    }
    std::vector<std::string_view> entries;
    for (const PodClaimRef& entry : pod.shape->claims) {
      if (claim_name(pod, entry) == name) entries.push_back(entry.name);
    }
    if (Value users = users_of(pod.object["spec"], entries); !users.empty()) {
      status->set("containers", std::move(users));
    }
    statuses[name] = std::move(*status);
  }
  if (statuses.empty()) return true;
  Value list;
  for (auto& [name, status] : statuses) list.push(std::move(status));
  const Value counted = with_claim_statuses(pod.object, list);
  if (std::string why = uncovered(counted); !why.empty()) return refuse(std::move(why));
  if (const auto short_of = lacking(counted, node); !short_of.empty()) {
    made.lacks_resources = true;
    return refuse(join(short_of, ", "));
  }
  made.node_allocatable = std::move(list);
  return true;
}

}  // namespace dibs::scheduler
