#pragma once
// Which claims a pod has, and whether it may use them: functions of API objects.
//
// The words of the errors are the kubelet's of the release; users see them in events.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"
#include "node/plugins/claim_cache.h"
#include "node/plugins/release.h"

namespace dibs::node {

/// A claim as a pod names it.
struct PodClaim {
  std::string pod_name = {};  // within the pod; "" for the claim of extended resources
  std::string claim = {};     // the ResourceClaim
  bool generated = false;     // from a template, so it must belong to the pod
  bool prepared = true;       // false: must be the pod's as any other, but no driver hears of it
};

/// In the pod's order; claims that were left out on purpose are left out.
Result<std::vector<PodClaim>> claims_of(const json::Value& pod, NodeRelease release);
/// The ResourceClaim that `name` stands for in the pod; nothing when there is none.
std::optional<std::string> claim_named(const json::Value& pod, std::string_view name,
                                       NodeRelease release);

/// Generated for the pod (or its group), reserved for it, allocated.
Result<> check_claim(const json::Value& pod, const PodClaim& wanted, const json::Value& claim,
                     NodeRelease release);

/// The entry of a claim that is allocated, in the form of its own model
/// (client/resource_versions.h).
ClaimInfo info_of(const json::Value& claim);

/// The container, wherever it stands in the pod; null when there is none.
const json::Value& container_of(const json::Value& pod, std::string_view name);

/// What a container takes of a claim: all of it when `request` is empty.
struct ContainerUse {
  std::string pod_claim = {};
  std::string claim = {};
  std::string request = {};
};
std::vector<ContainerUse> uses_of(const json::Value& pod, const json::Value& container,
                                  NodeRelease release);
bool selects(const ContainerUse& use, const PreparedDevice& device);

}  // namespace dibs::node
