// The status of a pod: what its writers may say.

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

void validate_condition_types(const Value& conditions, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < conditions.size(); ++i) {
    Path at = path.index(i);
    std::string_view type = conditions[i]["type"].as_string();
    // Spelled so by the API.
    add_invalid(is_qualified_name(type), Value(type), at.child("Type"), errors);
  }
}

const Value* container_of(const Value& spec, std::string_view name) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Value& container : spec[list].items()) {
      if (container["name"].as_string() == name) return &container;
    }
  }
  return nullptr;
}

// A container that has ended for good does not come back.
void validate_transitions(const Value& statuses, const Value& old, const Value& spec,
                          const char* list, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < old.size(); ++i) {
    const Value& terminated = old[i]["state"]["terminated"];
    if (terminated.is_null()) continue;
    std::string_view name = old[i]["name"].as_string();
    std::string_view policy = spec["restartPolicy"].as_string();
    for (const Value& container : spec[list].items()) {
      if (container["name"].as_string() != name) continue;
      if (is_set(container, "restartPolicy")) policy = container["restartPolicy"].as_string();
      if (!container["restartPolicyRules"].empty()) policy = "Always";
    }
    if (policy == "Always") continue;
    if (policy == "OnFailure" && terminated["exitCode"].as_int() != 0) continue;
    for (const Value& status : statuses.items()) {
      if (status["name"].as_string() == name && status["state"]["terminated"].is_null()) {
        Path at = path.index(i);
        errors.forbidden(at.child("state"), "may not be transitioned to non-terminated state");
      }
    }
  }
}

void validate_claim_statuses(const Value& statuses, const Value& claims, const Path& path,
                             FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    Path at = path.index(i);
    const Value& name = statuses[i]["name"];
    bool known = false;
    for (const Value& claim : claims.items()) {
      known = known || claim["name"].as_string() == name.as_string();
    }
    if (!known) {
      errors.invalid(at.child("name"), Value(name.as_string()),
                     "must match the name of an entry in `spec.resourceClaims`");
    }
    if (!seen.insert(name.str()).second) errors.duplicate(at.child("name"), name);
    const Value& claim = statuses[i]["resourceClaimName"];
    if (!claim.is_null()) {
      add_invalid(is_dns1123_subdomain(claim.as_string()), claim, at.child("resourceClaimName"),
                  errors);
    }
  }
}

void validate_extended_claim_status(const Value& status, const Value& spec, const Path& path,
                                    FieldErrors& errors) {
  if (status.is_null()) return;
  std::string_view claim = status["resourceClaimName"].as_string();
  if (claim.empty()) {
    errors.required(path.child("resourceClaimName"));
  } else {
    add_invalid(is_dns1123_subdomain(claim), Value(claim), path.child("resourceClaimName"), errors);
  }
  const Value& mappings = status["requestMappings"];
  Path list = path.child("requestMappings");
  if (mappings.empty()) {
    errors.required(list, "at least one request mapping is required");
    return;
  }
  for (std::size_t i = 0; i < mappings.size(); ++i) {
    Path at = list.index(i);
    const Value& mapping = mappings[i];
    for (std::size_t before = 0; before < i; ++before) {
      if (!(mappings[before] == mapping)) continue;
      for (const char* key : {"containerName", "resourceName", "requestName"}) {
        errors.duplicate(at.child(key), mapping[key]);
      }
      break;
    }
    std::string_view name = mapping["containerName"].as_string();
    std::string_view resource = mapping["resourceName"].as_string();
    const Value* container = container_of(spec, name);
    if (container == nullptr) {
      errors.invalid(at.child("containerName"), Value(name),
                     "must match the name of an entry in spec.initContainers.name or "
                     "spec.containers.name");
    } else if (!(*container)["resources"]["requests"].contains(resource)) {
      errors.invalid(
          at.child("resourceName"), Value(resource),
          "must match the extended resource name of an entry in "
          "spec.initContainers.resources.requests or spec.containers.resources.requests");
    }
    // At the status itself, in the words of the API.
    add_invalid(is_dns1123_label(mapping["requestName"].as_string()),
                Value(mapping["requestName"].as_string()), path.child("requestName"), errors);
  }
}

bool names_claim(const Value& container, std::string_view name) {
  for (const Value& claim : container["resources"]["claims"].items()) {
    std::string_view request = claim["request"].as_string();
    std::string expected = cat("claim:", claim["name"].as_string());
    if (!request.empty()) append(expected, "/", request);
    if (expected == name) return true;
  }
  return false;
}

void validate_health_entries(const Value& resources, const Path& path, FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < resources.size(); ++i) {
    Path at = path.index(i);
    const Value& resource = resources[i];
    if (!seen.insert(resource["resourceID"].str()).second) {
      errors.duplicate(at.child("resourceID"), resource["resourceID"]);
    }
    std::string_view health = resource["health"].as_string();
    if (!health.empty() && !is_one_of(health, {"Healthy", "Unhealthy", "Unknown"})) {
      errors.not_supported(at.child("health"), Value(health), {"Healthy", "Unhealthy", "Unknown"});
    }
    const Value& message = resource["message"];
    if (message.is_null()) continue;
    if (message.as_string().empty()) {
      errors.required(at.child("message"), "must be non-empty if specified");
    }
    if (message.as_string().size() > 1024) errors.too_long(at.child("message"), 1024);
  }
}

void validate_resource_health(const Value& statuses, const Value& spec, const Path& path,
                              FieldErrors& errors) {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Value& entries = statuses[i]["allocatedResourcesStatus"];
    if (entries.empty()) continue;
    const Value* container = container_of(spec, statuses[i]["name"].as_string());
    if (container == nullptr) continue;
    Path status_at = path.index(i);
    Path list = status_at.child("allocatedResourcesStatus");
    for (std::size_t e = 0; e < entries.size(); ++e) {
      Path at = list.index(e);
      std::string name = entries[e]["name"].str();
      if (name.substr(0, 6) == "claim:") {
        if (!names_claim(*container, name)) {
          errors.invalid(
              at.child("name"), Value(name),
              "must match one of the container's resource claims as "
              "'claim:<claimName>/<requestName>' when container.resources.claims[*].request "
              "is set or 'claim:<claimName>' when it is empty");
        }
      } else if (!(*container)["resources"]["requests"].contains(name)) {
        errors.invalid(at.child("name"), Value(name),
                       "must match one of the container's resource requests");
      }
      validate_health_entries(entries[e]["resources"], at.child("resources"), errors);
    }
  }
}

void validate_ips(const Value& ips, const Path& path, FieldErrors& errors) {
  if (ips.empty()) return;
  for (std::size_t i = 0; i < ips.size(); ++i) {
    validate_ip(ips[i]["ip"].as_string(), path.index(i), errors);
  }
  bool both =
      ips.size() == 2 && is_ipv6(ips[0]["ip"].as_string()) != is_ipv6(ips[1]["ip"].as_string());
  if (ips.size() > 1 && !both) {
    errors.invalid(path, ips, "may specify no more than one IP for each IP family");
  }
}

}  // namespace

void validate_pod_status_update(const Value& pod, const Value& old, FieldErrors& errors) {
  const Value& spec = old["spec"];
  const Value& status = pod["status"];
  const Value& before = old["status"];
  Path metadata_at("metadata");
  validate_pod_annotations_update(pod["metadata"]["annotations"], old["metadata"]["annotations"],
                                  metadata_at.child("annotations"), errors);
  Path path("status");
  validate_condition_types(status["conditions"], path.child("conditions"), errors);
  const Value& nominated = status["nominatedNodeName"];
  if (!nominated.as_string().empty() && !(nominated == before["nominatedNodeName"])) {
    add_invalid(is_dns1123_subdomain(nominated.as_string()), nominated,
                path.child("nominatedNodeName"), errors);
  }
  validate_immutable(status["qosClass"], before["qosClass"], path.child("qosClass"), errors);
  validate_transitions(status["containerStatuses"], before["containerStatuses"], spec, "containers",
                       path.child("containerStatuses"), errors);
  validate_transitions(status["initContainerStatuses"], before["initContainerStatuses"], spec,
                       "initContainers", path.child("initContainerStatuses"), errors);
  validate_claim_statuses(status["resourceClaimStatuses"], spec["resourceClaims"],
                          path.child("resourceClaimStatuses"), errors);
  validate_extended_claim_status(status["extendedResourceClaimStatus"], spec,
                                 path.child("extendedResourceClaimStatus"), errors);
  for (const char* list : {"containerStatuses", "initContainerStatuses"}) {
    validate_resource_health(status[list], spec, path.child(list), errors);
  }
  Path ephemeral_at = path.child("ephemeralContainerStatuses");
  for (std::size_t i = 0; i < status["ephemeralContainerStatuses"].size(); ++i) {
    if (status["ephemeralContainerStatuses"][i]["allocatedResourcesStatus"].empty()) continue;
    Path at = ephemeral_at.index(i);
    errors.forbidden(at.child("allocatedResourcesStatus"),
                     "must not be specified in container status");
  }
  if (!(status["podIPs"] == before["podIPs"])) {
    validate_ips(status["podIPs"], path.child("podIPs"), errors);
  }
  if (!(status["hostIPs"] == before["hostIPs"])) {
    validate_ips(status["hostIPs"], path.child("hostIPs"), errors);
  }
}

}  // namespace dibs::api
