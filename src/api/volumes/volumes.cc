#include "api/volumes/volumes.h"

#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kBetaClass = "volume.beta.kubernetes.io/storage-class";

std::string_view class_of(const Value& object) {
  const Value& early = annotation_of(object, kBetaClass);
  return early.is_string() ? early.as_string() : object["spec"]["storageClassName"].as_string();
}

}  // namespace

const Value& annotation_of(const Value& object, std::string_view name) {
  return object["metadata"]["annotations"][name];
}

bool has_annotation(const Value& object, std::string_view name) {
  return !annotation_of(object, name).is_null();
}

std::string_view class_of_claim(const Value& claim) { return class_of(claim); }
std::string_view class_of_volume(const Value& volume) { return class_of(volume); }

bool claim_names_class(const Value& claim) {
  return has_annotation(claim, kBetaClass) || claim["spec"]["storageClassName"].is_string();
}

bool is_default_class(const Value& storage_class) {
  for (const std::string_view name : {"storageclass.kubernetes.io/is-default-class",
                                      "storageclass.beta.kubernetes.io/is-default-class"}) {
    if (annotation_of(storage_class, name).as_string() == "true") return true;
  }
  return false;
}

Value default_class(const std::vector<Value>& classes) {
  Value chosen;
  for (const Value& candidate : classes) {
    if (!is_default_class(candidate)) continue;
    const Value& mine = candidate["metadata"];
    const Value& best = chosen["metadata"];
    const std::string_view age = mine["creationTimestamp"].as_string();
    const std::string_view best_age = best["creationTimestamp"].as_string();
    if (chosen.is_null() || age > best_age ||
        (age == best_age && mine["name"].as_string() < best["name"].as_string())) {
      chosen = candidate;
    }
  }
  return chosen;
}

bool waits_for_consumer(const Value& storage_class) {
  return storage_class["volumeBindingMode"].as_string() == "WaitForFirstConsumer";
}

bool is_bound_to(const Value& volume, const Value& claim) {
  const Value& ref = volume["spec"]["claimRef"];
  const Value& own = claim["metadata"];
  if (ref.is_null() || ref["name"] != own["name"] || ref["namespace"] != own["namespace"])
    return false;
  return ref["uid"].as_string().empty() || ref["uid"] == own["uid"];
}

bool is_binding_complete(const Value& claim) {
  return !claim["spec"]["volumeName"].as_string().empty() && has_annotation(claim, kBindCompleted);
}

std::string claim_key_of(const Value& volume) {
  const Value& ref = volume["spec"]["claimRef"];
  if (ref.is_null()) return {};
  return cat(ref["namespace"].as_string(), '/', ref["name"].as_string());
}

std::vector<PodVolume> pod_volumes(const Value& pod) {
  std::vector<PodVolume> out;
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    const std::string_view name = volume["name"].as_string();
    if (const Value& claim = volume["persistentVolumeClaim"]; !claim.is_null()) {
      out.push_back(
          {std::string(name), claim["claimName"].str(), false, claim["readOnly"].as_bool()});
    } else if (!volume["ephemeral"].is_null()) {
      out.push_back(
          {std::string(name), cat(pod["metadata"]["name"].as_string(), '-', name), true, false});
    }
  }
  return out;
}

bool is_claim_of_pod(const Value& claim, const Value& pod) {
  for (const Value& owner : claim["metadata"]["ownerReferences"].items()) {
    if (owner["controller"].as_bool() && owner["uid"] == pod["metadata"]["uid"]) return true;
  }
  return false;
}

}  // namespace dibs::api
