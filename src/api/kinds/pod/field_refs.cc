// References to fields and resources of a pod, in env and downward API volumes.

#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/pod/volumes.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

std::string_view converted_field(std::string_view field) {
  return field == "spec.host" ? "spec.nodeName" : field;
}

bool is_known_field(std::string_view field) {
  return is_one_of(
      field, {"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace",
              "metadata.uid", "spec.nodeName", "spec.host", "spec.restartPolicy",
              "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP",
              "status.hostIPs", "status.podIP", "status.podIPs"});
}

void validate_divisor(std::string_view resource, const Value& divisor, const Path& path,
                      FieldErrors& errors) {
  if (quantity_of(divisor).is_zero()) return;
  auto dot = resource.find('.');
  std::string_view name = dot == std::string_view::npos ? resource : resource.substr(dot + 1);
  std::string_view text = divisor.as_string();
  if (name == "cpu") {
    if (!is_one_of(text, {"1m", "1"})) {
      errors.invalid(path.child("divisor"), Value(resource),
                     "only divisor's values 1m and 1 are supported with the cpu resource");
    }
    return;
  }
  std::string_view what = name == "memory"              ? "memory"
                          : name == "ephemeral-storage" ? "local ephemeral storage"
                          : is_huge_page_resource(name) ? "hugepages"
                                                        : "";
  if (what.empty()) return;
  if (!is_one_of(text, {"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi",
                        "1Ei"})) {
    errors.invalid(path.child("divisor"), Value(resource),
                   cat("only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, "
                       "1Ei are supported with the ",
                       what, " resource"));
  }
}

}  // namespace

void validate_field_ref(const Value& ref, bool in_volume, const Path& path, FieldErrors& errors) {
  std::string_view version = ref["apiVersion"].as_string();
  std::string_view field = ref["fieldPath"].as_string();
  if (version.empty()) {
    errors.required(path.child("apiVersion"));
    return;
  }
  if (field.empty()) {
    errors.required(path.child("fieldPath"));
    return;
  }
  auto bracket = field.find("['");
  bool subscripted = bracket != std::string_view::npos && field.size() > bracket + 4 &&
                     field.substr(field.size() - 2) == "']";
  std::string_view base = subscripted ? field.substr(0, bracket) : field;
  if (version != "v1") {
    errors.invalid(path.child("fieldPath"), ref["fieldPath"],
                   cat("error converting fieldPath: unsupported pod version: ", version));
    return;
  }
  if (!is_known_field(base)) {
    errors.invalid(path.child("fieldPath"), ref["fieldPath"],
                   cat("error converting fieldPath: field label not supported: ", field));
    return;
  }
  if (subscripted) {
    std::string key(field.substr(bracket + 2, field.size() - bracket - 4));
    if (base == "metadata.annotations") {
      add_invalid(is_qualified_name(to_lower(key)), Value(key), path, errors);
    } else if (base == "metadata.labels") {
      add_invalid(is_qualified_name(key), Value(key), path, errors);
    } else {
      errors.invalid(path, Value(base), "does not support subscript");
    }
    return;
  }
  std::vector<std::string> supported =
      in_volume ? std::vector<std::string>{"metadata.annotations", "metadata.labels",
                                           "metadata.name", "metadata.namespace", "metadata.uid"}
                : std::vector<std::string>{"metadata.name",
                                           "metadata.namespace",
                                           "metadata.uid",
                                           "spec.nodeName",
                                           "spec.serviceAccountName",
                                           "status.hostIP",
                                           "status.hostIPs",
                                           "status.podIP",
                                           "status.podIPs"};
  std::string_view name = converted_field(base);
  bool known = false;
  for (const std::string& entry : supported) known = known || entry == name;
  if (!known) errors.not_supported(path.child("fieldPath"), Value(name), supported);
}

void validate_resource_field_ref(const Value& ref, bool in_volume, const Path& path,
                                 FieldErrors& errors) {
  std::string_view resource = ref["resource"].as_string();
  if (in_volume && ref["containerName"].as_string().empty()) {
    errors.required(path.child("containerName"));
  } else if (resource.empty()) {
    errors.required(path.child("resource"));
  } else if (!is_one_of(resource,
                        {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                         "requests.ephemeral-storage", "requests.memory"}) &&
             resource.substr(0, 17) != "limits.hugepages-" &&
             resource.substr(0, 19) != "requests.hugepages-") {
    errors.not_supported(path.child("resource"), ref["resource"],
                         {"limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu",
                          "requests.ephemeral-storage", "requests.memory"});
  }
  validate_divisor(resource, ref["divisor"], path, errors);
}

}  // namespace dibs::api
