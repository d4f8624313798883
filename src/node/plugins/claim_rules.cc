#include "node/plugins/claim_rules.h"

#include <algorithm>
#include <map>

#include "api/kinds/resource/versions/model.h"
#include "base/strings.h"
#include "client/client.h"

namespace dibs::node {
namespace {

using json::Value;

using client::name_of;
using client::namespace_of;
using client::uid_of;
std::string pod_key(const Value& pod) { return cat(namespace_of(pod), "/", name_of(pod)); }

/// resource.k8s.io/v1alpha2 had the names one level deeper.
const Value& source_of(const Value& entry) {
  const auto* source = entry.find("source");
  return source ? *source : entry;
}

const Value* status_of(const Value& pod, std::string_view name) {
  for (const auto& status : pod["status"]["resourceClaimStatuses"].items()) {
    if (status["name"].as_string() == name) return &status;
  }
  return nullptr;
}

/// As releases up to 1.27 name the claims that they make.
std::string fixed_name(const Value& pod, std::string_view entry) {
  return cat(name_of(pod), "-", entry);
}

bool used_by_container(const Value& pod, std::string_view name) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      for (const auto& claim : container["resources"]["claims"].items()) {
        if (claim["name"].as_string() == name) return true;
      }
    }
  }
  return false;
}

std::string_view group_of(const Value& pod) {
  return pod["spec"]["schedulingGroup"]["podGroupName"].as_string();
}

bool belongs_to(const Value& claim, const Value& pod) {
  for (const auto& owner : claim["metadata"]["ownerReferences"].items()) {
    if (!owner["controller"].as_bool()) continue;
    if (owner["uid"].as_string() == uid_of(pod)) return true;
    return owner["kind"].as_string() == "PodGroup" && !group_of(pod).empty() &&
           owner["name"].as_string() == group_of(pod);
  }
  return false;
}

bool reserved_for(const Value& claim, const Value& pod) {
  for (const auto& consumer : claim["status"]["reservedFor"].items()) {
    if (consumer["uid"].as_string() == uid_of(pod)) return true;
    if (consumer["resource"].as_string() == "podgroups" &&
        consumer["apiGroup"].as_string() == "scheduling.k8s.io" && !group_of(pod).empty() &&
        consumer["name"].as_string() == group_of(pod)) {
      return true;
    }
  }
  return false;
}

/// What all results of a driver agree to skip.
std::vector<std::string> skipped_by_all(const std::vector<const Value*>& results) {
  std::vector<std::string> out;
  for (const char* operation : {"*", "NodePrepareResources", "NodeUnprepareResources"}) {
    const bool all = std::all_of(results.begin(), results.end(), [&](const Value* result) {
      const auto skips = (*result)["skipNodeOperations"].items();
      return std::any_of(skips.begin(), skips.end(), [&](const Value& skip) {
        return skip.as_string() == operation || skip.as_string() == "*";
      });
    });
    if (!all) continue;
    out.emplace_back(operation);
    if (out.back() == "*") break;
  }
  return out;
}

void add_handles(const Value& claim, ClaimInfo& info) {
  info.classic = true;
  const Value& status = claim["status"];
  const std::string driver = status["driverName"].str();
  info.class_name = claim["spec"]["resourceClassName"].str();
  for (const auto& handle : status["allocation"]["resourceHandles"].items()) {
    const auto* named = handle.find("driverName");
    info.handles.push_back(
        {named ? named->str() : driver, handle["data"].str(), handle["structuredData"]});
  }
  if (info.handles.empty()) info.handles.push_back({driver, "", {}});
  for (const auto& handle : info.handles) info.drivers[handle.driver];
}

bool wants_resource(const Value& container, std::string_view resource) {
  for (const char* part : {"requests", "limits"}) {
    const Value& amount = container["resources"][part][resource];
    if (amount.is_null()) continue;
    return !(amount.is_string() ? amount.as_string() == "0" : amount.as_int() == 0);
  }
  return false;
}

}  // namespace

Result<std::vector<PodClaim>> claims_of(const Value& pod, NodeRelease release) {
  std::vector<PodClaim> out;
  for (const auto& entry : pod["spec"]["resourceClaims"].items()) {
    const std::string name = entry["name"].str();
    const Value& source = source_of(entry);
    const bool prepared = !release.classic() || used_by_container(pod, name);
    if (const auto* direct = source.find("resourceClaimName")) {
      out.push_back({name, direct->str(), false, prepared});
      continue;
    }
    if (!source.contains("resourceClaimTemplateName") &&
        !source.contains("podGroupResourceClaim")) {
      return Error::invalid(cat("pod ", quoted(pod_key(pod)), ", spec.resourceClaim ", quoted(name),
                                ": none of the supported fields are set"));
    }
    if (release.fixed_claim_names()) {
      out.push_back({name, fixed_name(pod, name), true, prepared});
      continue;
    }
    const auto* status = status_of(pod, name);
    if (!status) {
      return Error::not_found(cat("pod ", quoted(pod_key(pod)), ": ResourceClaim not created yet"));
    }
    const Value& claim = (*status)["resourceClaimName"];
    if (claim.is_string()) out.push_back({name, claim.str(), true, prepared});
  }
  const Value& extended = pod["status"]["extendedResourceClaimStatus"]["resourceClaimName"];
  if (extended.is_string()) out.push_back({"", extended.str(), false});
  return out;
}

std::optional<std::string> claim_named(const Value& pod, std::string_view name,
                                       NodeRelease release) {
  for (const auto& entry : pod["spec"]["resourceClaims"].items()) {
    if (entry["name"].as_string() != name) continue;
    if (const auto* direct = source_of(entry).find("resourceClaimName")) return direct->str();
    if (release.fixed_claim_names()) return fixed_name(pod, name);
    const auto* status = status_of(pod, name);
    if (status && (*status)["resourceClaimName"].is_string()) {
      return (*status)["resourceClaimName"].str();
    }
  }
  return std::nullopt;
}

Result<> check_claim(const Value& pod, const PodClaim& wanted, const Value& claim,
                     NodeRelease release) {
  if (wanted.generated && !belongs_to(claim, pod)) {
    const char* kind = release.classic() ? "pod" : "Pod";
    return Error::forbidden(cat("ResourceClaim ", namespace_of(claim), "/", name_of(claim),
                                " was not created for ", kind, " ", pod_key(pod), " (", kind,
                                " is not owner)"));
  }
  if (!reserved_for(claim, pod)) {
    if (release.minor <= 33) {
      return Error::forbidden(cat("pod ", name_of(pod), "(", uid_of(pod),
                                  ") is not allowed to use resource claim ", name_of(claim), "(",
                                  uid_of(claim), ")"));
    }
    return Error::forbidden(cat("pod ", name_of(pod), " (", uid_of(pod),
                                ") is not allowed to use ResourceClaim ", name_of(claim), " (",
                                uid_of(claim), ")"));
  }
  if (!claim["status"]["allocation"].is_object()) {
    return Error::conflict(cat("ResourceClaim ", name_of(claim), ": not allocated"));
  }
  return success();
}

ClaimInfo info_of(const Value& claim) {
  ClaimInfo info;
  info.uid = uid_of(claim);
  info.name = name_of(claim);
  info.name_space = namespace_of(claim);
  if (api::is_classic(claim)) {
    add_handles(claim, info);
    return info;
  }
  std::map<std::string, std::vector<const Value*>> results;
  for (const auto& result : claim["status"]["allocation"]["devices"]["results"].items()) {
    results[result["driver"].str()].push_back(&result);
  }
  for (const auto& [driver, mine] : results) info.drivers[driver].skip = skipped_by_all(mine);
  return info;
}

const Value& container_of(const Value& pod, std::string_view name) {
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      if (container["name"].as_string() == name) return container;
    }
  }
  return json::null_value();
}

std::vector<ContainerUse> uses_of(const Value& pod, const Value& container, NodeRelease release) {
  std::vector<ContainerUse> out;
  for (const auto& claim : container["resources"]["claims"].items()) {
    const std::string name = claim["name"].str();
    const auto resolved = claim_named(pod, name, release);
    if (resolved) out.push_back({name, *resolved, claim["request"].str()});
  }
  const Value& extended = pod["status"]["extendedResourceClaimStatus"];
  for (const auto& mapping : extended["requestMappings"].items()) {
    if (mapping["containerName"].as_string() != container["name"].as_string() ||
        !wants_resource(container, mapping["resourceName"].as_string())) {
      continue;
    }
    out.push_back({"", extended["resourceClaimName"].str(), mapping["requestName"].str()});
  }
  return out;
}

bool selects(const ContainerUse& use, const PreparedDevice& device) {
  return use.request.empty() || device.requests.empty() ||
         std::find(device.requests.begin(), device.requests.end(), use.request) !=
             device.requests.end();
}

}  // namespace dibs::node
