#include <string>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/storage/parts.h"
#include "api/kinds/storage/volumes.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using namespace volume;

constexpr std::string_view kOldClassAnnotation = "volume.beta.kubernetes.io/storage-class";

bool is_claim_or_snapshot(const Value& source) {
  std::string_view kind = source["kind"].as_string();
  std::string_view group = source["apiGroup"].as_string();
  return (kind == "PersistentVolumeClaim" && group.empty()) ||
         (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
}

/// dataSource and dataSourceRef say the same where both can; other kinds than claims and snapshots
/// are heard only in dataSourceRef.
void normalize_data_sources(Value& spec, const Value* old_spec) {
  const Value& reference = spec["dataSourceRef"];
  if (!reference["namespace"].as_string().empty() &&
      !(old_spec && is_set(*old_spec, "dataSourceRef"))) {
    spec.erase("dataSourceRef");
  }
  bool old_uses = old_spec && is_set(*old_spec, "dataSource");
  if (!old_uses && !is_set(spec, "dataSourceRef") && is_set(spec, "dataSource") &&
      !is_claim_or_snapshot(spec["dataSource"])) {
    spec.erase("dataSource");
  }
  auto same_without_namespace = [](const Value& from) {
    Value to = from;
    to.erase("namespace");
    return to;
  };
  if (is_set(spec, "dataSource") && !is_set(spec, "dataSourceRef")) {
    spec.set("dataSourceRef", same_without_namespace(spec["dataSource"]));
  } else if (is_set(spec, "dataSourceRef") && !is_set(spec, "dataSource") &&
             spec["dataSourceRef"]["namespace"].as_string().empty()) {
    spec.set("dataSource", same_without_namespace(spec["dataSourceRef"]));
  }
}

void check_data_source(const Value& source, bool allow_any_group, const Path& path,
                       FieldErrors& errors) {
  require(source, "name", path, errors);
  require(source, "kind", path, errors);
  std::string_view group = source["apiGroup"].as_string();
  if (group.empty() && source["kind"].as_string() != "PersistentVolumeClaim") {
    errors.invalid(path, source["kind"].str(),
                   "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  }
  if (!group.empty() && !allow_any_group) {
    add_invalid(is_dns1123_subdomain(group), source["apiGroup"], path.child("apiGroup"), errors);
  }
}

void check_data_sources(const Value& spec, const Value* old_spec, const Path& path,
                        FieldErrors& errors) {
  bool any_group = old_spec && (is_set((*old_spec)["dataSource"], "apiGroup") ||
                                is_set((*old_spec)["dataSourceRef"], "apiGroup"));
  const Value& source = spec["dataSource"];
  const Value& reference = spec["dataSourceRef"];
  if (!source.is_null()) check_data_source(source, any_group, path.child("dataSource"), errors);
  if (!reference.is_null()) {
    Path at = path.child("dataSourceRef");
    check_data_source(reference, any_group, at, errors);
    const Value& space = reference["namespace"];
    if (!space.as_string().empty()) {
      add_invalid(is_dns1123_label(space.as_string()), space, at.child("namespace"), errors);
    }
  }
  if (source.is_null() || reference.is_null()) return;
  Value shown = cat(path.str(), ".dataSource");
  if (!reference["namespace"].as_string().empty()) {
    errors.invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified");
  } else if (!(source["apiGroup"] == reference["apiGroup"]) ||
             !(source["kind"] == reference["kind"]) || !(source["name"] == reference["name"])) {
    errors.invalid(path, shown, "must match dataSourceRef");
  }
}

void validate_claim_update(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& before = old["spec"];
  Path path("spec");
  validate_claim_spec(spec, path, errors, &before);

  // What may change is taken over from the one to the other before they are compared.
  Value compared = spec;
  Value expected = before;
  if (before["volumeName"].as_string().empty()) {
    if (is_set(spec, "volumeName")) {
      expected.set("volumeName", spec["volumeName"]);
    } else {
      expected.erase("volumeName");
    }
  }
  const Value& old_class = old["metadata"]["annotations"][kOldClassAnnotation];
  const Value& new_class = object["metadata"]["annotations"][kOldClassAnnotation];
  bool has_old_class = !old_class.is_null();
  bool sets_class = is_set(spec, "storageClassName") && !is_set(before, "storageClassName");
  if (has_old_class && sets_class && spec["storageClassName"] == old_class &&
      (new_class.is_null() || new_class == old_class)) {
    compared.erase("storageClassName");
  } else {
    if (!(new_class == old_class)) {
      Path metadata("metadata");
      Path annotations = metadata.child("annotations");
      errors.invalid(annotations.key(kOldClassAnnotation), new_class.str(), "field is immutable");
    }
    if (sets_class && (!has_old_class || spec["storageClassName"] == old_class)) {
      compared.erase("storageClassName");
    }
  }
  if (object["status"]["phase"].as_string() == "Bound") {
    const Value& old_size = before["resources"]["requests"]["storage"];
    if (is_set(compared["resources"], "requests")) {
      compared.mut("resources").mut("requests").set("storage", old_size);
    }
    if (is_set(before, "volumeAttributesClassName")) {
      compared.set("volumeAttributesClassName", before["volumeAttributesClassName"]);
    } else {
      compared.erase("volumeAttributesClassName");
    }
  }
  if (!(compared == expected)) {
    errors.forbidden(path,
                     "spec is immutable after creation except resources.requests and "
                     "volumeAttributesClassName for bound claims");
  }
  Quantity new_size = amount(spec["resources"]["requests"]["storage"]);
  Quantity status_size = amount(old["status"]["capacity"]["storage"]);
  if (new_size < amount(before["resources"]["requests"]["storage"]) && new_size <= status_size) {
    Path resources = path.child("resources");
    Path requests = resources.child("requests");
    errors.forbidden(requests.child("storage"), "field can not be less than status.capacity");
  }
  validate_immutable(spec["volumeMode"], before["volumeMode"], Path("volumeMode"), errors);
  const Value& attributes = spec["volumeAttributesClassName"];
  if (!(attributes == before["volumeAttributesClassName"]) &&
      is_set(old["status"], "currentVolumeAttributesClassName")) {
    std::string_view what = attributes.is_null() ? "nil" : "empty string";
    if (attributes.as_string().empty()) {
      errors.forbidden(
          path.child("volumeAttributesClassName"),
          cat("update to ", what,
              " is forbidden when status.currentVolumeAttributesClassName is not nil"));
    }
  }
}

void validate_claim_status(const Value& object, const Value&, FieldErrors& errors) {
  const Value& status = object["status"];
  Path path("status");
  Path capacity = path.child("capacity");
  for (const std::string& name : sorted_keys(status["capacity"])) {
    Quantity quantity = amount(status["capacity"][name]);
    if (quantity.value() < 0) {
      errors.invalid(capacity.key(name), Value(static_cast<long>(quantity.value())),
                     "must be a valid resource quantity");
    }
  }
  Path statuses = path.child("allocatedResourceStatuses");
  for (const std::string& name : sorted_keys(status["allocatedResourceStatuses"])) {
    add_invalid(is_qualified_name(name), name, statuses, errors);
    if (!is_one_of(status["allocatedResourceStatuses"][name].as_string(),
                   {"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizePending",
                    "NodeResizeInProgress", "NodeResizeInfeasible"})) {
      errors.not_supported(statuses, name,
                           {"ControllerResizeInProgress", "ControllerResizeInfeasible",
                            "NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"});
    }
  }
}

std::vector<std::string> claim_warnings(const Value& object, const Value*) {
  std::vector<std::string> warnings;
  if (object["metadata"]["annotations"].contains(kOldClassAnnotation)) {
    warnings.push_back(cat("metadata.annotations[", kOldClassAnnotation,
                           "]: deprecated since v1.8; use \"storageClassName\" attribute instead"));
  }
  for (std::string_view list : {"requests", "limits"}) {
    const Value& size = object["spec"]["resources"][list]["storage"];
    if (size.is_null() || amount(size).milli_value() % 1000 == 0) continue;
    warnings.push_back(cat("spec.resources.", list, "[storage]: fractional byte value ",
                           quoted(size.as_string()), " is invalid, must be an integer"));
  }
  return warnings;
}

}  // namespace

void set_claim_defaults(Value& claim) {
  set_default(claim.mut("spec"), "volumeMode", "Filesystem");
  set_default_text(claim.mut("status"), "phase", "Pending");
}

void validate_claim_spec(const Value& spec, const Path& path, FieldErrors& errors,
                         const Value* old_spec) {
  if (spec["accessModes"].empty()) {
    errors.required(path.child("accessModes"), "at least 1 access mode is required");
  }
  if (is_set(spec, "selector")) {
    validate_label_selector(spec["selector"], path.child("selector"), errors);
  }
  check_access_modes(spec["accessModes"], path.child("accessModes"), errors);
  Path resources = path.child("resources");
  const Value& size = spec["resources"]["requests"]["storage"];
  if (size.is_null()) {
    errors.required(resources.key("storage"));
  } else {
    check_positive(size, resources.key("storage"), errors);
  }
  check_class_name(spec["storageClassName"], path.child("storageClassName"), errors);
  check_volume_mode(spec, path, errors);
  check_data_sources(spec, old_spec, path, errors);
  check_class_name(spec["volumeAttributesClassName"], path.child("volumeAttributesClassName"),
                   errors);
}

KindRules persistent_volume_claim_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.has_status = true;
  rules.set_defaults = set_claim_defaults;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"phase", "Pending"}}));
    normalize_data_sources(object.mut("spec"), nullptr);
  };
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    normalize_data_sources(object.mut("spec"), &old["spec"]);
  };
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_claim_spec(object["spec"], Path("spec"), errors);
  };
  rules.validate_update = validate_claim_update;
  rules.validate_status = validate_claim_status;
  rules.warnings = claim_warnings;
  return rules;
}

}  // namespace dibs::api
