#include "node/pods/volume_claim.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

const client::Gvr kClaims{"", "v1", "persistentvolumeclaims"};
const client::Gvr kVolumes{"", "v1", "persistentvolumes"};

std::string claim_name(const Value& pod, const Value& volume) {
  const Value& named = volume["persistentVolumeClaim"]["claimName"];
  if (named.is_string()) return named.str();
  return cat(client::name_of(pod), '-', volume["name"].as_string());
}

bool has(const Value& list, std::string_view text) {
  const auto items = list.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& item) { return item.as_string() == text; });
}

bool is_controlled_by(const Value& object, std::string_view uid) {
  for (const Value& owner : object["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool()) return owner["uid"].as_string() == uid;
  }
  return false;
}

Result<Value> read_claim(client::Client& client, const std::string& name_space,
                         const std::string& name) {
  auto claim = client.get(kClaims, name_space, name);
  if (!claim) return claim.error().within("failed to fetch PVC from API server");
  const Value& metadata = (*claim)["metadata"];
  // With the finalizer the claim stays until no pod uses it; this may be one that does already.
  if (!metadata["deletionTimestamp"].is_null() &&
      !has(metadata["finalizers"], "kubernetes.io/pvc-protection")) {
    return Error::invalid("PVC is being deleted");
  }
  if ((*claim)["status"]["phase"].as_string() != "Bound") {
    return Error::invalid("PVC is not bound");
  }
  if ((*claim)["spec"]["volumeName"].as_string().empty()) {
    return Error::invalid("PVC has empty pvc.Spec.VolumeName");
  }
  return claim;
}

Result<Value> read_volume(client::Client& client, const std::string& name,
                          std::string_view claim_uid) {
  auto volume = client.get(kVolumes, "", name);
  if (!volume) {
    return volume.error().within(cat("failed to fetch PV ", name, " from API server"));
  }
  const Value& claim = (*volume)["spec"]["claimRef"];
  if (claim.is_null()) {
    return Error::invalid(cat("found PV object ", name,
                              " but it has a nil pv.Spec.ClaimRef indicating it is not yet bound "
                              "to the claim"));
  }
  if (claim["uid"].as_string() != claim_uid) {
    return Error::invalid(cat("found PV object ", name, " but its pv.Spec.ClaimRef.UID ",
                              claim["uid"].as_string(), " does not point to claim.UID ",
                              claim_uid));
  }
  return volume;
}

}  // namespace

bool names_claim(const Value& volume) {
  return volume["persistentVolumeClaim"].is_object() || volume["ephemeral"].is_object();
}

Result<ClaimedVolume> read_claimed_volume(client::Client& client, const Value& pod,
                                          const Value& volume) {
  const std::string name_space(client::namespace_of(pod));
  const std::string name = claim_name(pod, volume);
  const auto wrong = [&](const Error& error) {
    return Error(error.code(),
                 cat("error processing PVC ", name_space, '/', name, ": ", error.message()));
  };
  auto claim = read_claim(client, name_space, name);
  if (!claim) return wrong(claim.error());
  if (volume["ephemeral"].is_object() && !is_controlled_by(*claim, client::uid_of(pod))) {
    return Error::invalid(cat("PVC ", name_space, '/', name, " was not created for pod ",
                              name_space, '/', client::name_of(pod), " (pod is not owner)"));
  }
  auto found = read_volume(client, (*claim)["spec"]["volumeName"].str(), client::uid_of(*claim));
  if (!found) return wrong(found.error());
  return ClaimedVolume{std::move(*claim), std::move(*found),
                       volume["persistentVolumeClaim"]["readOnly"].as_bool()};
}

Result<> check_volume_mode(const Value& pod, std::string_view volume_name,
                           const Value& persistent_volume) {
  const std::string mode = persistent_volume["spec"]["volumeMode"].str();
  const bool block = mode == "Block";
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : pod["spec"][list].items()) {
      for (const char* use : {"volumeMounts", "volumeDevices"}) {
        if (block == (std::string_view(use) == "volumeDevices")) continue;
        for (const Value& one : container[use].items()) {
          if (one["name"].as_string() != volume_name) continue;
          return Error::invalid(cat("volume ", volume_name, " has volumeMode ",
                                    block ? "Block" : "Filesystem", ", but is specified in ", use));
        }
      }
    }
  }
  return success();
}

}  // namespace dibs::node
