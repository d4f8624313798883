#include "controllers/volumes/binding_writes.h"

#include "api/volumes/matching.h"
#include "api/volumes/volumes.h"
#include "base/quantity.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

constexpr std::string_view kCurrentAttributes = "currentVolumeAttributesClassName";

void set_or_erase(Value& object, std::string_view key, const Value& value) {
  if (value.is_null() || (value.is_array() && value.empty()))
    object.erase(key);
  else
    object.set(key, value);
}

/// What the claim has now. A volume that is being enlarged counts as it was before.
Value capacity_of(const Value& volume) {
  const Value& before = api::annotation_of(volume, api::kSizeBeforeResize);
  if (!before.is_string() || !Quantity::parse(before.as_string()).ok())
    return volume["spec"]["capacity"];
  Value capacity = volume["spec"]["capacity"];
  capacity.set("storage", before);
  return capacity;
}

Result<Value> bind_claim(client::Client& client, const Value& claim, const Value& volume) {
  Value next = claim;
  if (name_of(volume) != claim["spec"]["volumeName"].as_string()) {
    next.mut("spec").set("volumeName", volume["metadata"]["name"]);
    next.mut("metadata").mut("annotations").set(api::kBoundByController, "yes");
  }
  if (!api::has_annotation(claim, api::kBindCompleted))
    next.mut("metadata").mut("annotations").set(api::kBindCompleted, "yes");
  if (next == claim) return claim;
  return client.update(kVolumeClaims, namespace_of(claim), next, volume_writing());
}

}  // namespace

client::WriteOptions volume_writing(std::string_view subresource) {
  client::WriteOptions options;
  options.field_manager = "kube-controller-manager";
  options.subresource = subresource;
  return options;
}

Result<Value> set_volume_phase(client::Client& client, const Value& volume, std::string_view phase,
                               std::string_view message) {
  if (volume["status"]["phase"].as_string() == phase) return volume;
  Value next = volume;
  next.mut("status").set("phase", phase);
  if (message.empty())
    next.mut("status").erase("message");
  else
    next.mut("status").set("message", message);
  return client.update(kVolumes, "", next, volume_writing("status"));
}

Result<Value> set_claim_phase(client::Client& client, const Value& claim, std::string_view phase,
                              const Value& volume) {
  const std::string_view before = claim["status"]["phase"].as_string();
  Value next = claim;
  Value& status = next.mut("status");
  status.set("phase", phase);
  set_or_erase(status, "accessModes", volume["spec"]["accessModes"]);
  if (volume.is_null()) {
    status.erase("capacity");
    status.erase(kCurrentAttributes);
  } else if (before != phase) {
    // Later the two may differ on purpose: whoever enlarges a volume tells the claim when that is
    // done, and the same holds for its attributes.
    status.set("capacity", capacity_of(volume));
    if (before == "Pending")
      set_or_erase(status, kCurrentAttributes, volume["spec"]["volumeAttributesClassName"]);
  }
  if (next == claim) return claim;
  return client.update(kVolumeClaims, namespace_of(claim), next, volume_writing("status"));
}

Result<> bind_volume(client::Client& client, const Value& volume, const Value& claim) {
  Value bound = api::bound_volume(volume, claim);
  if (bound != volume) {
    DIBS_TRY(bound, client.update(kVolumes, "", bound, volume_writing()));
  }
  DIBS_TRY(bound, set_volume_phase(client, bound, "Bound"));
  DIBS_TRY(const Value told, bind_claim(client, claim, bound));
  DIBS_CHECK(set_claim_phase(client, told, "Bound", bound));
  return success();
}

Result<> unbind_volume(client::Client& client, const Value& volume) {
  Value next = volume;
  if (api::has_annotation(volume, api::kBoundByController)) {
    next.mut("spec").erase("claimRef");
    next.mut("metadata").mut("annotations").erase(api::kBoundByController);
  } else {
    next.mut("spec").mut("claimRef").erase("uid");
  }
  DIBS_TRY(const Value written, client.update(kVolumes, "", next, volume_writing()));
  DIBS_CHECK(set_volume_phase(client, written, "Available"));
  return success();
}

}  // namespace dibs::controllers
