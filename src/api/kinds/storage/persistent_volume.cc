#include <array>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/scheduling.h"
#include "api/kinds/pod/volumes.h"
#include "api/kinds/storage/parts.h"
#include "api/kinds/storage/volumes.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::api {
namespace {

using namespace volume;

constexpr std::string_view kOldClassAnnotation = "volume.beta.kubernetes.io/storage-class";
constexpr std::string_view kOldMountAnnotation = "volume.beta.kubernetes.io/mount-options";

/// The sources of a PersistentVolume in the order in which the API looks at them.
constexpr std::array<std::string_view, 22> kSources = {"hostPath",
                                                       "gcePersistentDisk",
                                                       "awsElasticBlockStore",
                                                       "glusterfs",
                                                       "flocker",
                                                       "nfs",
                                                       "rbd",
                                                       "quobyte",
                                                       "cephfs",
                                                       "iscsi",
                                                       "cinder",
                                                       "fc",
                                                       "flexVolume",
                                                       "azureFile",
                                                       "vsphereVolume",
                                                       "photonPersistentDisk",
                                                       "portworxVolume",
                                                       "azureDisk",
                                                       "scaleIO",
                                                       "local",
                                                       "storageos",
                                                       "csi"};

void validate_host_path(const Value& source, const Path& path, FieldErrors& errors) {
  if (source["path"].as_string().empty()) {
    errors.required(path.child("path"));
    return;
  }
  validate_no_backsteps(source["path"], path.child("path"), errors);
  const Value& type = source["type"];
  if (!type.is_null() &&
      !is_one_of(type.as_string(), {"", "BlockDevice", "CharDevice", "Directory",
                                    "DirectoryOrCreate", "File", "FileOrCreate", "Socket"})) {
    errors.not_supported(path.child("type"), type,
                         {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                          "FileOrCreate", "Socket"});
  }
}

void validate_nfs(const Value& source, const Path& path, FieldErrors& errors) {
  require(source, "server", path, errors);
  require(source, "path", path, errors);
  std::string_view text = source["path"].as_string();
  if (text.empty() || text.front() != '/') {
    errors.invalid(path.child("path"), source["path"].str(), "must be an absolute path");
  }
}

void validate_iscsi(const Value& source, const Path& path, FieldErrors& errors) {
  require(source, "targetPortal", path, errors);
  std::string_view iqn = source["iqn"].as_string();
  if (iqn.empty()) {
    errors.required(path.child("iqn"));
  } else if (!is_one_of(iqn.substr(0, 3), {"iqn", "eui", "naa"})) {
    errors.invalid(path.child("iqn"), source["iqn"],
                   "must be valid format starting with iqn, eui, or naa");
  }
  std::int64_t lun = source["lun"].as_int();
  if (lun < 0 || lun > 255) {
    errors.invalid(path.child("lun"), source["lun"], inclusive_range_text(0, 255));
  }
}

void validate_csi(const Value& source, const Path& path, FieldErrors& errors) {
  check_csi_driver_name(source["driver"], path.child("driver"), errors);
  require(source, "volumeHandle", path, errors);
  for (std::string_view key : {"controllerPublishSecretRef", "controllerExpandSecretRef",
                               "nodePublishSecretRef", "nodeExpandSecretRef"}) {
    if (!is_set(source, key)) continue;
    Path reference = path.child(key);
    require(source[key], "name", reference, errors);
    require(source[key], "namespace", reference, errors);
  }
}

void validate_source(const Value& spec, std::string_view key, const Path& path,
                     FieldErrors& errors) {
  const Value& source = spec[key];
  if (key == "hostPath") {
    validate_host_path(source, path, errors);
  } else if (key == "nfs") {
    validate_nfs(source, path, errors);
  } else if (key == "iscsi") {
    validate_iscsi(source, path, errors);
  } else if (key == "csi") {
    validate_csi(source, path, errors);
  } else if (key == "local") {
    if (source["path"].as_string().empty()) {
      errors.required(path.child("path"));
    } else {
      validate_no_backsteps(source["path"], path.child("path"), errors);
    }
  } else if (key == "gcePersistentDisk") {
    require(source, "pdName", path, errors);
  } else if (key == "awsElasticBlockStore" || key == "cinder") {
    require(source, "volumeID", path, errors);
  } else if (key == "glusterfs") {
    require(source, "endpoints", path, errors);
    require(source, "path", path, errors);
  } else if (key == "cephfs" && source["monitors"].empty()) {
    errors.required(path.child("monitors"));
  } else if (key == "rbd") {
    if (source["monitors"].empty()) errors.required(path.child("monitors"));
    require(source, "image", path, errors);
  } else if (key == "flexVolume") {
    require(source, "driver", path, errors);
  } else if (key == "azureFile") {
    require(source, "secretName", path, errors);
    require(source, "shareName", path, errors);
  }
}

void check_sources(const Value& spec, const Path& path, FieldErrors& errors) {
  int count = 0;
  for (std::string_view key : kSources) {
    if (!is_set(spec, key)) continue;
    Path at = path.child(key);
    if (count > 0 && key != "flexVolume") {
      errors.forbidden(at, "may not specify more than 1 volume type");
      continue;
    }
    ++count;
    validate_source(spec, key, at, errors);
    if (key == "local" && !is_set(spec, "nodeAffinity")) {
      errors.required(path.child("nodeAffinity"), "Local volume requires node affinity");
    }
  }
  if (count == 0) errors.required(path, "must specify a volume type");
}

void check_capacity(const Value& capacity, const Path& path, FieldErrors& errors) {
  if (capacity.empty()) errors.required(path);
  if (!capacity.contains("storage") || capacity.size() > 1) {
    errors.not_supported(path, capacity, {"storage"});
  }
  for (const std::string& name : sorted_keys(capacity)) {
    Path at = path.key(name);
    Quantity quantity = amount(capacity[name]);
    if (quantity.value() < 0) {
      errors.invalid(at, Value(static_cast<long>(quantity.value())),
                     "must be a valid resource quantity");
    }
    check_positive(capacity[name], at, errors);
  }
}

// --- PersistentVolume ---

/// The part of a spec that names the storage itself.
Value source_of(const Value& spec) {
  Value sources = Value::object();
  for (std::string_view key : kSources) {
    if (is_set(spec, key)) sources.set(key, spec[key]);
  }
  return sources;
}

void validate_volume_update(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& before = old["spec"];
  Path path("spec");
  validate_volume_spec(spec, false, path, errors);
  Value source = source_of(spec);
  if (is_set(before, "csi") && !is_set(before["csi"], "controllerExpandSecretRef") &&
      is_set(spec["csi"], "controllerExpandSecretRef")) {
    source.mut("csi").erase("controllerExpandSecretRef");
  }
  if (!(source == source_of(before))) {
    errors.forbidden(path.child("persistentvolumesource"),
                     "spec.persistentvolumesource is immutable after creation");
  }
  validate_immutable(spec["volumeMode"], before["volumeMode"], Path("volumeMode"), errors);
  if (is_set(before, "nodeAffinity")) {
    validate_immutable(spec["nodeAffinity"], before["nodeAffinity"], Path("nodeAffinity"), errors);
  }
  if (is_set(before, "volumeAttributesClassName") && !is_set(spec, "volumeAttributesClassName")) {
    errors.forbidden(path.child("volumeAttributesClassName"),
                     "update from non-nil value to nil is forbidden");
  }
}

void prepare_volume_status(Value& object, const Value& old, const RuleContext& context) {
  const Value& before = old["status"];
  const Value& time = object["status"]["lastPhaseTransitionTime"];
  bool same_phase = object["status"]["phase"] == before["phase"];
  if (same_phase && time.is_null() && is_set(before, "lastPhaseTransitionTime")) {
    object.mut("status").set("lastPhaseTransitionTime", before["lastPhaseTransitionTime"]);
  } else if (!same_phase && (time.is_null() || time == before["lastPhaseTransitionTime"])) {
    object.mut("status").set("lastPhaseTransitionTime", format_rfc3339(context.now));
  }
}

std::vector<std::string> volume_warnings(const Value& object, const Value*) {
  std::vector<std::string> warnings;
  const Value& annotations = object["metadata"]["annotations"];
  const Value& spec = object["spec"];
  if (annotations.contains(kOldClassAnnotation)) {
    warnings.push_back(cat("metadata.annotations[", kOldClassAnnotation,
                           "]: deprecated since v1.8; use \"storageClassName\" attribute instead"));
  }
  if (annotations.contains(kOldMountAnnotation)) {
    warnings.push_back(cat("metadata.annotations[", kOldMountAnnotation,
                           "]: deprecated since v1.31; use \"mountOptions\" attribute instead"));
  }
  if (spec["persistentVolumeReclaimPolicy"].as_string() == "Recycle") {
    warnings.push_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, "
        "the "
        "recommended approach is to use dynamic provisioning.");
  }
  struct Gone {
    std::string_view key, shown, since, until;
  };
  for (const Gone& gone :
       {Gone{"cephfs", "cephfs", "1.28", "1.31"},
        Gone{"photonPersistentDisk", "photonPersistentDisk", "1.11", "1.16"},
        Gone{"scaleIO", "scaleIO", "1.16", "1.22"}, Gone{"storageos", "storageOS", "1.22", "1.25"},
        Gone{"glusterfs", "glusterfs", "1.25", "1.26"}, Gone{"rbd", "rbd", "1.28", "1.31"}}) {
    if (!is_set(spec, gone.key)) continue;
    warnings.push_back(cat("spec.", gone.shown, ": deprecated in v", gone.since,
                           ", non-functional in v", gone.until, "+"));
  }
  return warnings;
}

}  // namespace

void check_csi_driver_name(const Value& name, const Path& path, FieldErrors& errors) {
  constexpr std::size_t kLongest = 63;
  std::string_view text = name.as_string();
  if (text.empty()) {
    errors.required(path);
    return;
  }
  if (text.size() > kLongest) errors.too_long(path, kLongest);
  add_invalid(is_dns1123_subdomain(to_lower(text)), name, path, errors);
}

void set_volume_spec_defaults(Value& spec) {
  set_default_text(spec, "persistentVolumeReclaimPolicy", "Retain");
  set_default(spec, "volumeMode", "Filesystem");
  if (is_set(spec, "hostPath")) set_default(spec.mut("hostPath"), "type", "");
  if (is_set(spec, "iscsi")) set_default_text(spec.mut("iscsi"), "iscsiInterface", "default");
  if (is_set(spec, "rbd")) {
    Value& rbd = spec.mut("rbd");
    set_default_text(rbd, "pool", "rbd");
    set_default_text(rbd, "user", "admin");
    set_default_text(rbd, "keyring", "/etc/ceph/keyring");
  }
  if (is_set(spec, "scaleIO")) {
    Value& scale_io = spec.mut("scaleIO");
    set_default_text(scale_io, "storageMode", "ThinProvisioned");
    set_default_text(scale_io, "fsType", "xfs");
  }
  if (is_set(spec, "azureDisk")) {
    Value& disk = spec.mut("azureDisk");
    set_default(disk, "cachingMode", "ReadWrite");
    set_default(disk, "kind", "Shared");
    set_default(disk, "fsType", "ext4");
    set_default(disk, "readOnly", false);
  }
}

void validate_volume_spec(const Value& spec, bool is_inline, const Path& path,
                          FieldErrors& errors) {
  auto forbid = [&](std::string_view key) {
    errors.forbidden(path.child(key), "may not be specified in the context of inline volumes");
  };
  if (is_inline) {
    if (is_set(spec, "claimRef")) forbid("claimRef");
    if (!spec["capacity"].empty()) forbid("capacity");
    if (!is_set(spec, "csi")) {
      errors.required(path.child("csi"), "has to be specified in the context of inline volumes");
    }
  }
  if (spec["accessModes"].empty()) errors.required(path.child("accessModes"));
  check_access_modes(spec["accessModes"], path.child("accessModes"), errors);
  if (!is_inline) check_capacity(spec["capacity"], path.child("capacity"), errors);
  const Value& reclaim = spec["persistentVolumeReclaimPolicy"];
  if (!reclaim.as_string().empty()) {
    if (is_inline) {
      if (reclaim.as_string() != "Retain") {
        errors.forbidden(path.child("persistentVolumeReclaimPolicy"),
                         "may only be Retain in the context of inline volumes");
      }
    } else if (!is_one_of(reclaim.as_string(), {"Delete", "Recycle", "Retain"})) {
      errors.not_supported(path.child("persistentVolumeReclaimPolicy"), reclaim,
                           {"Delete", "Recycle", "Retain"});
    }
  }
  if (is_set(spec, "nodeAffinity")) {
    Path affinity = path.child("nodeAffinity");
    if (is_inline) {
      forbid("nodeAffinity");
    } else if (!is_set(spec["nodeAffinity"], "required")) {
      errors.required(affinity.child("required"), "must specify required node constraints");
    } else {
      validate_node_selector(spec["nodeAffinity"]["required"], affinity.child("required"), errors);
    }
  }
  check_sources(spec, path, errors);
  if (spec["hostPath"]["path"].as_string() == "/" && reclaim.as_string() == "Recycle") {
    errors.forbidden(path.child("persistentVolumeReclaimPolicy"),
                     "may not be 'recycle' for a hostPath mount of '/'");
  }
  if (!spec["storageClassName"].as_string().empty()) {
    if (is_inline) {
      forbid("storageClassName");
    } else {
      check_class_name(spec["storageClassName"], path.child("storageClassName"), errors);
    }
  }
  if (is_inline && !spec["volumeMode"].is_null() &&
      spec["volumeMode"].as_string() != "Filesystem") {
    forbid("volumeMode");
  } else {
    check_volume_mode(spec, path, errors);
  }
  const Value& attributes = spec["volumeAttributesClassName"];
  if (attributes.is_null()) return;
  Path attributes_path = path.child("volumeAttributesClassName");
  if (attributes.as_string().empty()) {
    errors.required(attributes_path, "an empty string is disallowed");
  } else {
    check_class_name(attributes, attributes_path, errors);
  }
  if (!is_set(spec, "csi")) {
    errors.required(path.child("csi"), "has to be specified when using volumeAttributesClassName");
  }
}

KindRules persistent_volume_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.has_status = true;
  rules.set_defaults = [](Value& object) {
    set_default_text(object.mut("status"), "phase", "Pending");
    set_volume_spec_defaults(object.mut("spec"));
  };
  rules.prepare_create = [](Value& object, const RuleContext& context) {
    object.set("status", Value::object({{"phase", "Pending"},
                                        {"lastPhaseTransitionTime", format_rfc3339(context.now)}}));
  };
  rules.prepare_status = prepare_volume_status;
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_volume_spec(object["spec"], false, Path("spec"), errors);
  };
  rules.validate_update = validate_volume_update;
  rules.warnings = volume_warnings;
  return rules;
}

}  // namespace dibs::api
