#include "controllers/stateful_claims.h"

#include <algorithm>

#include "controllers/stateful_plan.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

bool deletes(const Value& set, const char* when) {
  return set["spec"]["persistentVolumeClaimRetentionPolicy"][when].as_string() == "Delete";
}

bool is_wanted(const Value& set, const Value& pod) {
  const std::int64_t first = set["spec"]["ordinals"]["start"].as_int();
  const std::int64_t ordinal = ordinal_of(set, pod);
  return ordinal >= first && ordinal < first + set["spec"]["replicas"].as_int(1);
}

Value pod_reference(const Value& pod) {
  Value named = pod;  // a pod that was only planned has no kind yet
  named.set("apiVersion", "v1");
  named.set("kind", "Pod");
  return owner_reference(named);
}

/// Of that kind and name, whatever its uid.
bool names(const Value& reference, const Value& owner) {
  return reference["apiVersion"] == owner["apiVersion"] && reference["kind"] == owner["kind"] &&
         reference["name"] == owner["name"];
}

bool is_stale(const Value& claim, const Value& owner) {
  const auto all = claim["metadata"]["ownerReferences"].items();
  return std::any_of(all.begin(), all.end(), [&owner](const Value& one) {
    return names(one, owner) && one["uid"] != owner["uid"];
  });
}

}  // namespace

bool has_other_controller(const Value& set, const Value& pod, const Value& claim) {
  if (!deletes(set, "whenDeleted") && !deletes(set, "whenScaled")) return false;
  const Value by_set = owner_reference(set);
  const Value by_pod = pod_reference(pod);
  const auto all = claim["metadata"]["ownerReferences"].items();
  return std::any_of(all.begin(), all.end(), [&](const Value& one) {
    return one["controller"].as_bool() && !names(one, by_set) && !names(one, by_pod);
  });
}

bool goes_with_former_pod(const Value& set, const Value& pod, const Value& claim) {
  return deletes(set, "whenScaled") && is_stale(claim, pod_reference(pod));
}

Value retained_claim(const Value& set, const Value& pod, const Value& claim) {
  const Value by_set = owner_reference(set);
  const Value by_pod = pod_reference(pod);
  if (is_stale(claim, by_set) || is_stale(claim, by_pod)) return claim;
  Value owners = Value::array();
  for (const Value& one : claim["metadata"]["ownerReferences"].items())
    if (!names(one, by_set) && !names(one, by_pod)) owners.push(one);
  if (!has_other_controller(set, pod, claim)) {
    const bool scaled_away = deletes(set, "whenScaled") && !is_wanted(set, pod);
    if (scaled_away)
      owners.push(by_pod);
    else if (deletes(set, "whenDeleted"))
      owners.push(by_set);
  }
  const Value& before = claim["metadata"]["ownerReferences"];
  if (owners == before || (owners.empty() && before.empty())) return claim;
  Value next = claim;
  if (owners.empty())
    next.mut("metadata").erase("ownerReferences");
  else
    next.mut("metadata").set("ownerReferences", std::move(owners));
  return next;
}

}  // namespace dibs::controllers
