#include "api/kinds/pod/spec.h"

#include <charconv>
#include <limits>
#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/annotations.h"
#include "api/kinds/pod/containers.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/pod/security.h"
#include "api/kinds/pod/volumes.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

void check_required_choice(const Value& spec, std::string_view key,
                           const std::vector<std::string>& supported, const Path& path,
                           FieldErrors& errors) {
  std::string_view text = spec[key].as_string();
  if (text.empty()) {
    errors.required(path.child(key));
    return;
  }
  for (const std::string& choice : supported) {
    if (choice == text) return;
  }
  errors.not_supported(path.child(key), Value(text), supported);
}

void check_label(const Value& spec, std::string_view key, const Path& path, FieldErrors& errors) {
  if (spec[key].as_string().empty()) return;
  add_invalid(is_dns1123_label(spec[key].as_string()), spec[key], path.child(key), errors);
}

void check_subdomain(const Value& spec, std::string_view key, const Path& path,
                     FieldErrors& errors) {
  if (spec[key].as_string().empty()) return;
  add_invalid(is_dns1123_subdomain(spec[key].as_string()), spec[key], path.child(key), errors);
}

void validate_dns_config(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& config = spec["dnsConfig"];
  const Value& servers = config["nameservers"];
  if (spec["dnsPolicy"].as_string() == "None") {
    if (config.is_null()) {
      errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
      return;
    }
    if (servers.empty()) {
      errors.required(path.child("nameservers"),
                      "must provide at least one DNS nameserver when `dnsPolicy` is None");
      return;
    }
  }
  Path servers_at = path.child("nameservers");
  if (servers.size() > 3) {
    errors.invalid(servers_at, servers, "must not have more than 3 nameservers");
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    validate_ip(servers[i].as_string(), servers_at.index(i), errors);
  }
  const Value& searches = config["searches"];
  Path searches_at = path.child("searches");
  if (searches.size() > 32) {
    errors.invalid(searches_at, searches, "must not have more than 32 search paths");
  }
  std::size_t length = searches.empty() ? 0 : searches.size() - 1;
  for (const Value& search : searches.items()) length += search.as_string().size();
  if (length > 2048) {
    errors.invalid(searches_at, searches,
                   "must not have more than 2048 characters (including spaces) in the search list");
  }
  for (std::size_t i = 0; i < searches.size(); ++i) {
    std::string_view search = searches[i].as_string();
    if (search == ".") continue;
    if (!search.empty() && search.back() == '.') search.remove_suffix(1);
    add_invalid(is_dns1123_subdomain_with_underscore(search), searches[i], searches_at.index(i),
                errors);
  }
  Path options_at = path.child("options");
  for (std::size_t i = 0; i < config["options"].size(); ++i) {
    if (config["options"][i]["name"].as_string().empty()) {
      errors.required(options_at.index(i), "must not be empty");
    }
  }
}

void validate_host_aliases(const Value& aliases, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    Path at = path.index(i);
    validate_ip(aliases[i]["ip"].as_string(), at.child("ip"), errors);
    Path names_at = at.child("hostnames");
    const Value& names = aliases[i]["hostnames"];
    for (std::size_t h = 0; h < names.size(); ++h) {
      add_invalid(is_dns1123_subdomain(names[h].as_string()), names[h], names_at.index(h), errors);
    }
  }
}

void validate_hostname_override(const Value& spec, const Path& path, FieldErrors& errors) {
  const Value& name = spec["hostnameOverride"];
  if (name.is_null()) return;
  Path at = path.child("hostnameOverride");
  if (name.as_string().empty()) {
    errors.invalid(at, name, "must be a valid hostname");
  } else {
    add_invalid(is_dns1123_subdomain(name.as_string()), name, at, errors);
  }
  if (name.as_string().size() > 64) errors.too_long(at, 64);
  if (spec["setHostnameAsFQDN"].as_bool()) {
    errors.forbidden(at, "may not be specified when setHostnameAsFQDN is true");
  }
  if (spec["hostNetwork"].as_bool()) {
    errors.forbidden(at, "may not be specified when hostNetwork is true");
  }
}

}  // namespace

void validate_pod_spec(const Value& spec, const Path& path, const PodOptions& options,
                       FieldErrors& errors) {
  const Value& metadata = options.metadata == nullptr ? json::null_value() : *options.metadata;
  Volumes volumes = validate_volumes(spec["volumes"], metadata, path.child("volumes"), errors);
  std::vector<std::string> claim_names = pod_claim_names(spec);
  validate_pod_claims(spec["resourceClaims"], metadata, path.child("resourceClaims"), errors);
  ContainerScope scope{spec, volumes, claim_names, spec["terminationGracePeriodSeconds"].as_int(),
                       spec["hostUsers"].as_bool(true)};
  validate_containers(scope, path, errors);
  validate_init_containers(scope, path, errors);
  validate_ephemeral_containers(scope, path, errors);
  validate_pod_level_resources(spec, path, errors);
  check_required_choice(spec, "restartPolicy", {"Always", "OnFailure", "Never"}, path, errors);
  check_required_choice(spec, "dnsPolicy",
                        {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"}, path,
                        errors);
  validate_labels(spec["nodeSelector"], path.child("nodeSelector"), errors);
  validate_pod_security_context(spec, path, errors);
  validate_affinity(spec["affinity"], path.child("affinity"), errors);
  validate_dns_config(spec, path.child("dnsConfig"), errors);
  validate_readiness_gates(spec["readinessGates"], path.child("readinessGates"), errors);
  validate_scheduling_group(spec["schedulingGroup"], path.child("schedulingGroup"), errors);
  validate_scheduling_gates(spec["schedulingGates"], path.child("schedulingGates"), errors);
  validate_topology_spread(spec["topologySpreadConstraints"],
                           path.child("topologySpreadConstraints"), errors);
  validate_windows_host_process(spec, path, errors);
  validate_host_users(spec, path, errors);
  check_subdomain(spec, "serviceAccountName", path, errors);
  check_subdomain(spec, "nodeName", path, errors);
  if (is_set(spec, "activeDeadlineSeconds")) {
    add_invalid(is_in_range(spec["activeDeadlineSeconds"].as_int(), 1,
                            std::numeric_limits<std::int32_t>::max()),
                spec["activeDeadlineSeconds"], path.child("activeDeadlineSeconds"), errors);
  }
  check_label(spec, "hostname", path, errors);
  check_label(spec, "subdomain", path, errors);
  validate_hostname_override(spec, path, errors);
  validate_tolerations(spec["tolerations"], path.child("tolerations"), errors);
  validate_host_aliases(spec["hostAliases"], path.child("hostAliases"), errors);
  check_subdomain(spec, "priorityClassName", path, errors);
  if (is_set(spec, "runtimeClassName")) {
    add_invalid(is_dns1123_subdomain(spec["runtimeClassName"].as_string()),
                spec["runtimeClassName"], path.child("runtimeClassName"), errors);
  }
  if (is_set(spec, "preemptionPolicy")) {
    check_required_choice(spec, "preemptionPolicy", {"PreemptLowerPriority", "Never"}, path,
                          errors);
  }
  if (is_set(spec, "overhead")) {
    validate_container_resources(Value::object({{"limits", spec["overhead"]}}), {},
                                 path.child("overhead"), errors);
  }
  validate_os(spec, path, errors);
}

void validate_pod_template(const Value& pod_template, const Path& path, FieldErrors& errors,
                           const Value* old) {
  const Value& metadata = pod_template["metadata"];
  const Value& spec = pod_template["spec"];
  // The API reports both without "metadata".
  Path annotations_at = path.child("annotations");
  validate_labels(metadata["labels"], path.child("labels"), errors);
  validate_annotations(metadata["annotations"], annotations_at, errors);
  validate_pod_annotations(metadata["annotations"], spec, annotations_at, errors);
  PodOptions options;
  options.in_template = true;
  if (old != nullptr) options.old_spec = &(*old)["spec"];
  Path spec_at = path.child("spec");
  validate_pod_spec(spec, spec_at, options, errors);
  if (!spec["ephemeralContainers"].empty()) {
    errors.forbidden(spec_at.child("ephemeralContainers"),
                     "ephemeral containers not allowed in pod template");
  }
}

}  // namespace dibs::api
