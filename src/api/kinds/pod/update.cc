// What may change in a pod: through the pod itself, its ephemeral containers, its resize.

#include <limits>
#include <map>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/annotations.h"
#include "api/kinds/pod/pod.h"
#include "api/kinds/pod/resources.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr const char* kRequired = "requiredDuringSchedulingIgnoredDuringExecution";

// Absent, null and empty are one for the comparison of specs.
bool is_nothing(const Value& value) {
  return value.is_null() || ((value.is_array() || value.is_object()) && value.empty());
}

bool same(const Value& a, const Value& b) { return a == b || (is_nothing(a) && is_nothing(b)); }

void put_back(Value& spec, const Value& old, std::string_view key) {
  if (old.contains(key))
    spec.set(key, Value(old[key]));
  else
    spec.erase(key);
}

void put_back_images(Value& spec, const Value& old, std::string_view list) {
  for (std::size_t i = 0; i < spec[list].size(); ++i) {
    if (spec[list][i]["image"] == old[list][i]["image"]) continue;
    put_back(spec.mut(list).mut(i), old[list][i], "image");
  }
}

// False when there is no use in looking further. The images themselves are judged with the spec.
bool validate_container_updates(const Value& containers, const Value& old, const Path& path,
                                FieldErrors& errors) {
  if (containers.size() == old.size()) return true;
  errors.forbidden(path, "pod updates may not add or remove containers");
  return false;
}

bool validate_deadline(const Value& spec, const Value& old, const Path& path, FieldErrors& errors) {
  const Value& deadline = spec["activeDeadlineSeconds"];
  const Value& before = old["activeDeadlineSeconds"];
  Path at = path.child("activeDeadlineSeconds");
  if (!deadline.is_null()) {
    Faults faults = is_in_range(deadline.as_int(), 0, std::numeric_limits<std::int32_t>::max());
    add_invalid(faults, deadline, at, errors);
    if (!faults.empty()) return false;
    if (!before.is_null() && before.as_int() < deadline.as_int()) {
      errors.invalid(at, deadline, "must be less than or equal to previous value");
      return false;
    }
  } else if (!before.is_null()) {
    errors.invalid(at, Value(), "must not update from a positive integer to nil value");
  }
  return true;
}

void validate_added_tolerations(const Value& tolerations, const Value& old, const Path& path,
                                FieldErrors& errors) {
  for (const Value& before : old.items()) {
    Value plain = before;
    plain.erase("tolerationSeconds");
    bool found = false;
    for (const Value& toleration : tolerations.items()) {
      Value other = toleration;
      other.erase("tolerationSeconds");
      found = found || other == plain;
    }
    if (!found) {
      errors.forbidden(path,
                       "existing toleration can not be modified except its tolerationSeconds");
      return;
    }
  }
}

void validate_deleted_gates(const Value& gates, const Value& old, const Path& path,
                            FieldErrors& errors) {
  for (std::size_t i = 0; i < gates.size(); ++i) {
    bool known = false;
    for (const Value& gate : old.items()) known = known || gate["name"] == gates[i]["name"];
    if (known) continue;
    Path at = path.index(i);
    errors.forbidden(at.child("name"),
                     cat("only deletion is allowed, but found new scheduling gate '",
                         gates[i]["name"].as_string(), "'"));
  }
}

bool only_adds(const Value& list, const Value& old) {
  if (old.size() > list.size()) return false;
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (!(list[i] == old[i])) return false;
  }
  return true;
}

void validate_affinity_narrowing(const Value& affinity, const Value& old, const Path& path,
                                 FieldErrors& errors) {
  const Value& before = old[kRequired]["nodeSelectorTerms"];
  const Value& terms = affinity[kRequired]["nodeSelectorTerms"];
  if (before.empty()) return;
  Path required = path.child(kRequired);
  Path terms_at = required.child("nodeSelectorTerms");
  if (terms.size() != before.size()) {
    errors.invalid(terms_at, terms,
                   "no additions/deletions to non-empty NodeSelectorTerms list are allowed");
    return;
  }
  for (std::size_t i = 0; i < terms.size(); ++i) {
    bool empty = before[i]["matchExpressions"].empty() && before[i]["matchFields"].empty();
    if (!only_adds(terms[i]["matchExpressions"], before[i]["matchExpressions"]) ||
        !only_adds(terms[i]["matchFields"], before[i]["matchFields"]) ||
        (empty && !(terms[i] == before[i]))) {
      errors.invalid(terms_at.index(i), terms[i],
                     "only additions are allowed (no mutations or deletions)");
    }
  }
}

// A gated pod has not been looked at by a scheduler: its choice of nodes may still become narrower.
void allow_narrowing(Value& munged, const Value& old, const Path& path, FieldErrors& errors) {
  if (!same(munged["nodeSelector"], old["nodeSelector"])) {
    if (!map_contains(munged["nodeSelector"], old["nodeSelector"])) {
      errors.invalid(path.child("nodeSelector"), munged["nodeSelector"],
                     "only additions to spec.nodeSelector are allowed (no mutations or deletions)");
    }
    put_back(munged, old, "nodeSelector");
  }
  const Value& before = old["affinity"]["nodeAffinity"];
  if (same(munged["affinity"]["nodeAffinity"], before)) return;
  Path affinity_at = path.child("affinity");
  validate_affinity_narrowing(munged["affinity"]["nodeAffinity"], before,
                              affinity_at.child("nodeAffinity"), errors);
  if (old["affinity"].is_null() && munged["affinity"].size() == 1) {
    munged.erase("affinity");
  } else {
    put_back(munged.mut("affinity"), old["affinity"], "nodeAffinity");
  }
}

void put_back_cpu_and_memory(Value& resources, const Value& old) {
  for (const char* kind : {"limits", "requests"}) {
    for (const char* name : {"cpu", "memory"}) {
      const Value* before = old[kind].find(name);
      if (before != nullptr) {
        resources.mut(kind).set(name, *before);
      } else if (resources[kind].contains(name)) {
        resources.mut(kind).erase(name);
      }
    }
    if (resources.contains(kind) && resources[kind].empty()) resources.erase(kind);
  }
}

void check_not_removed(const Value& resources, const Value& old, const Path& path,
                       FieldErrors& errors) {
  for (const char* kind : {"limits", "requests"}) {
    for (const char* name : {"cpu", "memory"}) {
      if (!old[kind].contains(name) || resources[kind].contains(name)) continue;
      errors.forbidden(path.child(kind), cat("resource ", kind, " cannot be removed"));
      break;
    }
  }
}

void take_resizes(Value& pod, const Value& sent, const char* list) {
  for (std::size_t i = 0; i < pod["spec"][list].size(); ++i) {
    for (const Value& container : sent["spec"][list].items()) {
      if (!(container["name"] == pod["spec"][list][i]["name"])) continue;
      Value& target = pod.mut("spec").mut(list).mut(i);
      put_back(target, container, "resources");
      put_back(target, container, "resizePolicy");
    }
  }
}

void keep_identity(Value& pod, const Value& sent) {
  // The version the client has seen stays its precondition.
  put_back(pod.mut("metadata"), sent["metadata"], "resourceVersion");
  if (sent["metadata"].contains("managedFields")) {
    pod.mut("metadata").set("managedFields", Value(sent["metadata"]["managedFields"]));
  }
}

}  // namespace

std::string changed_fields(const Value& spec, const Value& old) {
  std::set<std::string> names;
  for (const std::string& key : sorted_keys(spec)) {
    if (!same(spec[key], old[key])) names.insert(key);
  }
  for (const std::string& key : sorted_keys(old)) {
    if (!same(spec[key], old[key])) names.insert(key);
  }
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += ", ";
    append(text, "spec.", name);
  }
  return text;
}

void validate_pod_update(const Value& pod, const Value& old, FieldErrors& errors) {
  validate_pod_at_any_time(pod, errors);
  Path metadata_at("metadata");
  validate_pod_annotations_update(pod["metadata"]["annotations"], old["metadata"]["annotations"],
                                  metadata_at.child("annotations"), errors);
  const Value& spec = pod["spec"];
  const Value& before = old["spec"];
  Path path("spec");
  for (const char* list : {"containers", "initContainers"}) {
    if (!validate_container_updates(spec[list], before[list], path.child(list), errors)) return;
  }
  if (!validate_deadline(spec, before, path, errors)) return;
  validate_added_tolerations(spec["tolerations"], before["tolerations"], path.child("tolerations"),
                             errors);
  validate_deleted_gates(spec["schedulingGates"], before["schedulingGates"],
                         path.child("schedulingGates"), errors);
  if (spec == before) return;

  Value munged = spec;
  put_back_images(munged, before, "containers");
  put_back_images(munged, before, "initContainers");
  for (const char* key : {"activeDeadlineSeconds", "schedulingGates", "tolerations"}) {
    put_back(munged, before, key);
  }
  if (before["terminationGracePeriodSeconds"].as_int() < 0 &&
      spec["terminationGracePeriodSeconds"].as_int() == 1) {
    put_back(munged, before, "terminationGracePeriodSeconds");
  }
  if (!before["schedulingGates"].empty()) allow_narrowing(munged, before, path, errors);
  std::string changed = changed_fields(munged, before);
  if (changed.empty()) return;
  errors.forbidden(
      path,
      cat("pod updates may not change fields other than "
          "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
          "`spec.tolerations` (only additions to existing tolerations),"
          "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
          "negative)\n",
          "changed: ", changed, "\n"));
}

void prepare_ephemeral_containers(Value& pod, const Value& old) {
  Value merged = old;
  keep_identity(merged, pod);
  put_back(merged.mut("spec"), pod["spec"], "ephemeralContainers");
  pod = std::move(merged);
}

void validate_ephemeral_containers_update(const Value& pod, const Value& old, FieldErrors& errors) {
  validate_pod_at_any_time(pod, errors);
  if (old["metadata"]["annotations"].contains(kMirrorAnnotation)) {
    errors.forbidden(Path(""), "static pods do not support ephemeral containers");
    return;
  }
  Path spec_at("spec");
  Path path = spec_at.child("ephemeralContainers");
  for (const Value& before : old["spec"]["ephemeralContainers"].items()) {
    const Value* now = nullptr;
    for (const Value& container : pod["spec"]["ephemeralContainers"].items()) {
      if (container["name"] == before["name"]) now = &container;
    }
    std::string name = quoted(before["name"].as_string());
    if (now == nullptr) {
      errors.forbidden(path, cat("existing ephemeral containers ", name, " may not be removed\n"));
    } else if (!(*now == before)) {
      errors.forbidden(path, cat("existing ephemeral containers ", name, " may not be changed\n"));
    }
  }
}

void prepare_resize(Value& pod, const Value& old) {
  Value merged = old;
  keep_identity(merged, pod);
  take_resizes(merged, pod, "containers");
  take_resizes(merged, pod, "initContainers");
  if (is_set(pod["spec"], "resources")) {
    merged.mut("spec").set("resources", Value(pod["spec"]["resources"]));
  }
  pod = std::move(merged);
}

void validate_resize(const Value& pod, const Value& old, FieldErrors& errors) {
  validate_pod_at_any_time(pod, errors);
  const Value& spec = pod["spec"];
  const Value& before = old["spec"];
  if (old["metadata"]["annotations"].contains(kMirrorAnnotation)) {
    errors.forbidden(Path(""), "static pods cannot be resized");
  }
  if (before["os"]["name"].as_string() == "windows") {
    errors.forbidden(Path(""), "windows pods cannot be resized");
  }
  Path path("spec");
  if (old["status"]["qosClass"].as_string() != qos_class(spec)) {
    errors.invalid(path, old["status"]["qosClass"],
                   "Pod QOS Class may not change as a result of resizing");
  }
  Value munged = spec;
  for (const char* list : {"containers", "initContainers"}) {
    Path list_at = path.child(list);
    for (std::size_t i = 0; i < spec[list].size(); ++i) {
      Path at = list_at.index(i);
      const Value& earlier = before[list][i]["resources"];
      check_not_removed(spec[list][i]["resources"], earlier, at.child("resources"), errors);
      if (spec[list][i]["resources"] == earlier) continue;
      put_back_cpu_and_memory(munged.mut(list).mut(i).mut("resources"), earlier);
      put_back(munged.mut(list).mut(i), before[list][i], "resizePolicy");
    }
  }
  if (!(spec["resources"] == before["resources"])) {
    put_back_cpu_and_memory(munged.mut("resources"), before["resources"]);
  }
  if (!changed_fields(munged, before).empty()) {
    errors.forbidden(path, "only cpu and memory resources are mutable");
  }
}

}  // namespace dibs::api
