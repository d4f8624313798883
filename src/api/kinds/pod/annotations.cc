#include "api/kinds/pod/annotations.h"

#include <charconv>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kDeletionCost = "controller.kubernetes.io/pod-deletion-cost";

bool is_app_armor(std::string_view key) {
  return key.substr(0, kAppArmorPrefix.size()) == kAppArmorPrefix;
}

bool is_int32(std::string_view text) {
  if (text.empty() || text.front() == '+' || (text.size() > 1 && text.front() == '0')) return false;
  std::int32_t number = 0;
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc() && end == text.data() + text.size();
}

bool is_app_armor_profile(std::string_view profile) {
  return profile.empty() || profile == "runtime/default" || profile == "unconfined" ||
         profile.substr(0, 10) == "localhost/";
}

bool has_container(const Value& spec, std::string_view name) {
  for (const char* list : {"containers", "initContainers", "ephemeralContainers"}) {
    for (const Value& container : spec[list].items()) {
      if (container["name"].as_string() == name) return true;
    }
  }
  return false;
}

Value profile_of(std::string_view annotation) {
  if (annotation == "runtime/default") return Value::object({{"type", "RuntimeDefault"}});
  if (annotation == "unconfined") return Value::object({{"type", "Unconfined"}});
  if (annotation.substr(0, 10) == "localhost/" && annotation.size() > 10) {
    return Value::object(
        {{"type", "Localhost"}, {"localhostProfile", Value(annotation.substr(10))}});
  }
  return Value();
}

}  // namespace

void validate_pod_annotations(const Value& annotations, const Value& spec, const Path& path,
                              FieldErrors& errors) {
  if (annotations.contains(kMirrorAnnotation) && spec["nodeName"].as_string().empty()) {
    errors.invalid(path.key(kMirrorAnnotation), annotations[kMirrorAnnotation],
                   "must set spec.nodeName if mirror pod annotation is set");
  }
  const Value& cost = annotations[kDeletionCost];
  if (!cost.is_null() && !is_int32(cost.as_string())) {
    errors.invalid(path.key(kDeletionCost), cost, "must be a 32bit integer");
  }
  for (const std::string& key : sorted_keys(annotations)) {
    if (!is_app_armor(key)) continue;
    std::string container = key.substr(kAppArmorPrefix.size());
    if (!has_container(spec, container)) {
      errors.invalid(path.key(key), Value(container), "container not found");
    }
    if (!is_app_armor_profile(annotations[key].as_string())) {
      errors.invalid(path.key(key), annotations[key],
                     cat("invalid AppArmor profile name: ", quoted(annotations[key].as_string())));
    }
  }
}

void validate_pod_annotations_update(const Value& annotations, const Value& old, const Path& path,
                                     FieldErrors& errors) {
  for (const std::string& key : sorted_keys(old)) {
    if (annotations[key] == old[key]) continue;
    if (is_app_armor(key)) {
      errors.forbidden(path.key(key), "may not remove or update AppArmor annotations");
    } else if (key == kMirrorAnnotation) {
      errors.forbidden(path.key(key), "may not remove or update mirror pod annotation");
    }
  }
  for (const std::string& key : sorted_keys(annotations)) {
    if (old.contains(key)) continue;
    if (is_app_armor(key)) {
      errors.forbidden(path.key(key), "may not add AppArmor annotations");
    } else if (key == kMirrorAnnotation) {
      errors.forbidden(path.key(key), "may not add mirror pod annotation");
    }
  }
}

void apply_app_armor_annotations(Value& pod) {
  Value annotations = pod["metadata"]["annotations"];
  for (const auto& [key, value] : annotations.members()) {
    if (!is_app_armor(key)) continue;
    std::string_view name = key.substr(kAppArmorPrefix.size());
    Value profile = profile_of(value.as_string());
    if (profile.is_null()) continue;
    for (const char* list : {"containers", "initContainers"}) {
      for (std::size_t i = 0; i < pod["spec"][list].size(); ++i) {
        const Value& container = pod["spec"][list][i];
        if (container["name"].as_string() != name) continue;
        if (is_set(container["securityContext"], "appArmorProfile")) continue;
        pod.mut("spec").mut(list).mut(i).mut("securityContext").set("appArmorProfile", profile);
      }
    }
  }
}

}  // namespace dibs::api
