#include <set>
#include <vector>

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "api/kinds/storage/parts.h"
#include "api/kinds/storage/volumes.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMaxParameters = 512;
constexpr std::size_t kMaxParameterBytes = 256 * 1024;
constexpr std::size_t kMaxAttachmentBytes = 256 * 1024;
constexpr std::size_t kMaxErrorMessage = 1024;
constexpr std::size_t kMaxNodeId = 256;

std::size_t bytes_of(const Value& map) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : map.members()) bytes += key.size() + value.as_string().size();
  return bytes;
}

void check_parameters(const Value& parameters, bool may_be_empty, FieldErrors& errors) {
  Path path("parameters");
  if (parameters.size() > kMaxParameters) {
    errors.too_long(path, kMaxParameters);
    return;
  }
  if (parameters.contains("")) errors.invalid(path, "", "field can not be empty.");
  if (bytes_of(parameters) > kMaxParameterBytes) errors.too_long(path, kMaxParameterBytes);
  if (!may_be_empty && parameters.empty()) {
    errors.required(path, "must contain at least one key/value pair");
  }
}

void check_provisioner(const Value& name, const Path& path, FieldErrors& errors) {
  if (name.as_string().empty()) return;
  std::string lower = to_lower(name.as_string());
  add_invalid(is_qualified_name(lower), lower, path, errors);
}

// --- StorageClass ---

void check_topology_term(const Value& term, const Path& path, FieldErrors& errors) {
  Path expressions = path.child("matchLabelExpressions");
  std::set<std::string_view> keys;
  std::size_t i = 0;
  for (const Value& requirement : term["matchLabelExpressions"].items()) {
    Path at = expressions.index(i++);
    Path values_path = at.child("values");
    if (requirement["values"].empty()) errors.required(values_path);
    std::set<std::string_view> values;
    std::size_t j = 0;
    for (const Value& value : requirement["values"].items()) {
      if (!values.insert(value.as_string()).second) errors.duplicate(values_path.index(j), value);
      ++j;
    }
    validate_label_key(requirement["key"].as_string(), at.child("key"), errors);
    if (!keys.insert(requirement["key"].as_string()).second) {
      errors.duplicate(at.child("key"), requirement["key"]);
    }
  }
}

void validate_storage_class(const Value& object, FieldErrors& errors) {
  check_provisioner(object["provisioner"], Path("provisioner"), errors);
  check_parameters(object["parameters"], true, errors);
  const Value& reclaim = object["reclaimPolicy"];
  if (!reclaim.as_string().empty() && !is_one_of(reclaim.as_string(), {"Delete", "Retain"})) {
    errors.not_supported(Path("reclaimPolicy"), reclaim, {"Delete", "Retain"});
  }
  const Value& mode = object["volumeBindingMode"];
  if (mode.is_null()) {
    errors.required(Path("volumeBindingMode"));
  } else if (!is_one_of(mode.as_string(), {"Immediate", "WaitForFirstConsumer"})) {
    errors.not_supported(Path("volumeBindingMode"), mode, {"Immediate", "WaitForFirstConsumer"});
  }
  Path topologies("allowedTopologies");
  std::vector<Value> seen;
  for (const Value& term : object["allowedTopologies"].items()) {
    Path at = topologies.index(seen.size());
    check_topology_term(term, at, errors);
    for (const Value& other : seen) {
      if (other == term) errors.duplicate(at.child("matchLabelExpressions"), "");
    }
    seen.push_back(term);
  }
  if (object["provisioner"].as_string().empty()) errors.required(Path("provisioner"));
}

KindRules storage_class_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.set_defaults = [](Value& object) {
    set_default(object, "reclaimPolicy", "Delete");
    set_default(object, "volumeBindingMode", "Immediate");
  };
  rules.validate = validate_storage_class;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    for (std::string_view key :
         {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"}) {
      check_immutable_hidden(object[key], old[key], Path(key), errors);
    }
  };
  return rules;
}

KindRules attributes_class_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  auto validate = [](const Value& object, FieldErrors& errors) {
    check_provisioner(object["driverName"], Path("driverName"), errors);
    check_parameters(object["parameters"], false, errors);
    if (object["driverName"].as_string().empty()) errors.required(Path("driverName"));
  };
  rules.validate = validate;
  rules.validate_update = [validate](const Value& object, const Value& old, FieldErrors& errors) {
    for (std::string_view key : {"driverName", "parameters"}) {
      if (!(object[key] == old[key])) {
        errors.forbidden(Path(key), cat("updates to ", key, " are forbidden."));
      }
    }
    validate(object, errors);
  };
  return rules;
}

// --- CSINode ---

void validate_csi_node(const Value& object, FieldErrors& errors) {
  Path spec("spec");
  Path drivers = spec.child("drivers");
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& driver : object["spec"]["drivers"].items()) {
    Path at = drivers.index(i++);
    check_csi_driver_name(driver["name"], at.child("name"), errors);
    const Value& id = driver["nodeID"];
    if (id.as_string().empty()) errors.required(at.child("nodeID"));
    if (id.as_string().size() > kMaxNodeId) {
      errors.invalid(at.child("nodeID"), id, cat("must be ", kMaxNodeId, " characters or less"));
    }
    if (is_set(driver["allocatable"], "count")) {
      check_nonnegative(driver["allocatable"], "count", at.child("allocatable"), errors);
    }
    if (!names.insert(driver["name"].as_string()).second) {
      errors.duplicate(at.child("name"), driver["name"]);
    }
    std::set<std::string_view> keys;
    for (const Value& key : driver["topologyKeys"].items()) {
      if (key.as_string().empty()) errors.required(at);
      if (!keys.insert(key.as_string()).second) errors.duplicate(at, key);
      add_invalid(is_qualified_name(key.as_string()), key, at, errors);
    }
  }
}

void validate_csi_node_update(const Value& object, const Value& old, FieldErrors& errors) {
  validate_csi_node(object, errors);
  Path spec("spec");
  for (const Value& before : old["spec"]["drivers"].items()) {
    for (const Value& driver : object["spec"]["drivers"].items()) {
      if (!(driver["name"] == before["name"])) continue;
      if (driver["nodeID"] == before["nodeID"] &&
          driver["topologyKeys"] == before["topologyKeys"]) {
        continue;
      }
      errors.invalid(spec.child("drivers"),
                     Value::object({{"Name", driver["name"]},
                                    {"NodeID", driver["nodeID"]},
                                    {"TopologyKeys", driver["topologyKeys"]},
                                    {"Allocatable", nullptr}}),
                     "field is immutable");
    }
  }
}

KindRules csi_node_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.allow_unconditional_update = false;
  rules.has_status = true;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate = validate_csi_node;
  rules.validate_update = validate_csi_node_update;
  return rules;
}

// --- CSIDriver ---

void set_csi_driver_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_default(spec, "attachRequired", true);
  set_default(spec, "podInfoOnMount", false);
  set_default(spec, "storageCapacity", false);
  set_default(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
  if (spec["volumeLifecycleModes"].empty()) {
    spec.set("volumeLifecycleModes", Value::array({"Persistent"}));
  }
  set_default(spec, "requiresRepublish", false);
  set_default(spec, "seLinuxMount", false);
  set_default(spec, "preventPodSchedulingIfMissing", false);
}

void check_token_requests(const Value& requests, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> audiences;
  std::size_t i = 0;
  for (const Value& request : requests.items()) {
    Path at = path.index(i++);
    if (!audiences.insert(request["audience"].as_string()).second) {
      errors.duplicate(at.child("audience"), request["audience"].str());
      continue;
    }
    const Value& seconds = request["expirationSeconds"];
    if (seconds.is_null()) continue;
    if (seconds.as_int() < 600) {
      errors.invalid(at.child("expirationSeconds"), seconds,
                     "may not specify a duration less than 10 minutes");
    }
    if (seconds.as_int() > (std::int64_t{1} << 32)) {
      errors.invalid(at.child("expirationSeconds"), seconds,
                     "may not specify a duration larger than 2^32 seconds");
    }
  }
}

void validate_csi_driver(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  if (!is_set(spec, "attachRequired")) errors.required(path.child("attachedRequired"));
  for (std::string_view key : {"podInfoOnMount", "storageCapacity"}) {
    if (!is_set(spec, key)) errors.required(path.child(key));
  }
  const Value& policy = spec["fsGroupPolicy"];
  if (!policy.is_null() &&
      !is_one_of(policy.as_string(), {"File", "None", "ReadWriteOnceWithFSType"})) {
    errors.not_supported(path.child("fsGroupPolicy"), policy,
                         {"File", "None", "ReadWriteOnceWithFSType"});
  }
  check_token_requests(spec["tokenRequests"], path.child("tokenRequests"), errors);
  for (const Value& mode : spec["volumeLifecycleModes"].items()) {
    if (!is_one_of(mode.as_string(), {"Persistent", "Ephemeral"})) {
      errors.not_supported(path.child("volumeLifecycleModes"), mode, {"Persistent", "Ephemeral"});
    }
  }
  const Value& period = spec["nodeAllocatableUpdatePeriodSeconds"];
  if (!period.is_null() && period.as_int() < 10) {
    errors.invalid(path.child("nodeAllocatableUpdatePeriodSeconds"), period,
                   "must be greater than or equal to 10 seconds");
  }
  if (is_set(spec, "serviceAccountTokenInSecrets") && spec["tokenRequests"].empty()) {
    errors.invalid(path.child("serviceAccountTokenInSecrets"), spec["serviceAccountTokenInSecrets"],
                   "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
  }
}

std::vector<std::string> csi_driver_warnings(const Value& object, const Value* old) {
  const Value& spec = object["spec"];
  const Value& requests = spec["tokenRequests"];
  if (requests.empty() || is_set(spec, "serviceAccountTokenInSecrets")) return {};
  if (old != nullptr && (*old)["spec"]["tokenRequests"] == requests) return {};
  return {
      "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to "
      "prevent possible logging of tokens in volume attributes"};
}

KindRules csi_driver_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.allow_unconditional_update = false;
  rules.set_defaults = set_csi_driver_defaults;
  rules.prepare_update = [](Value& object, const Value& old, const RuleContext&) {
    // The generation counts from nothing: a driver never changed has none.
    if (!(object["spec"] == old["spec"])) {
      object.mut("metadata")
          .set("generation", static_cast<long>(old["metadata"]["generation"].as_int() + 1));
    }
  };
  rules.warnings = csi_driver_warnings;
  rules.validate = validate_csi_driver;
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_csi_driver(object, errors);
    Path spec("spec");
    validate_immutable(object["spec"]["attachRequired"], old["spec"]["attachRequired"],
                       spec.child("attachedRequired"), errors);
    check_immutable_hidden(object["spec"]["volumeLifecycleModes"],
                           old["spec"]["volumeLifecycleModes"], spec.child("volumeLifecycleModes"),
                           errors);
  };
  return rules;
}

// --- CSIStorageCapacity ---

KindRules storage_capacity_rules() {
  KindRules rules;
  rules.allow_unconditional_update = false;
  rules.validate = [](const Value& object, FieldErrors& errors) {
    validate_label_selector(object["nodeTopology"], Path("nodeTopology"), errors);
    const Value& name = object["storageClassName"];
    add_invalid(is_dns1123_subdomain(name.as_string()), name.str(), Path("storageClassName"),
                errors);
    const Value& capacity = object["capacity"];
    if (!capacity.is_null() && volume::amount(capacity).sign() < 0) {
      errors.invalid(Path("capacity"), capacity, "must be greater than or equal to 0");
    }
  };
  rules.validate_update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_immutable(object["nodeTopology"], old["nodeTopology"], Path("nodeTopology"), errors);
    validate_immutable(object["storageClassName"], old["storageClassName"],
                       Path("storageClassName"), errors);
  };
  return rules;
}

// --- VolumeAttachment ---

void check_volume_error(const Value& error, const Path& path, FieldErrors& errors) {
  if (error["message"].as_string().size() > kMaxErrorMessage) {
    errors.too_long(path.child("message"), kMaxErrorMessage);
  }
  if (error["errorCode"].as_int() < 0) {
    errors.invalid(path.child("errorCode"), error["errorCode"],
                   inclusive_range_text(0, 2147483647));
  }
}

void validate_attachment(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Value& status = object["status"];
  Path path("spec");
  Path source_path = path.child("source");
  const Value& source = spec["source"];
  bool by_name = is_set(source, "persistentVolumeName");
  bool by_spec = is_set(source, "inlineVolumeSpec");
  constexpr std::string_view kOne =
      "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
  if (!by_name && !by_spec) {
    errors.required(source_path, kOne);
  } else if (by_name && by_spec) {
    errors.forbidden(source_path, kOne);
  } else if (by_name) {
    if (source["persistentVolumeName"].as_string().empty()) {
      errors.required(source_path.child("persistentVolumeName"),
                      "must specify non empty persistentVolumeName");
    }
  } else {
    validate_volume_spec(source["inlineVolumeSpec"], true, source_path.child("inlineVolumeSpec"),
                         errors);
  }
  const Value& node = spec["nodeName"];
  add_invalid(is_dns1123_subdomain(node.as_string()), node.str(), path.child("nodeName"), errors);
  Path status_path("status");
  if (bytes_of(status["attachmentMetadata"]) > kMaxAttachmentBytes) {
    errors.too_long(status_path.child("attachmentMetadata"), kMaxAttachmentBytes);
  }
  check_volume_error(status["attachError"], status_path.child("attachError"), errors);
  check_volume_error(status["detachError"], status_path.child("detachError"), errors);
  if (by_name) {
    const Value& name = source["persistentVolumeName"];
    add_invalid(is_dns1123_subdomain(name.as_string()), name,
                source_path.child("persistentVolumeName"), errors);
  }
  check_csi_driver_name(spec["attacher"], path.child("attacher"), errors);
}

KindRules attachment_rules() {
  KindRules rules;
  rules.returns_deleted = true;
  rules.allow_unconditional_update = false;
  rules.has_status = true;
  rules.set_defaults = [](Value& object) {
    if (!is_set(object["spec"]["source"], "inlineVolumeSpec")) return;
    set_volume_spec_defaults(object.mut("spec").mut("source").mut("inlineVolumeSpec"));
  };
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object({{"attached", false}}));
  };
  rules.validate = validate_attachment;
  auto update = [](const Value& object, const Value& old, FieldErrors& errors) {
    validate_attachment(object, errors);
    check_immutable_hidden(object["spec"], old["spec"], Path("spec"), errors);
  };
  rules.validate_update = update;
  rules.validate_status = update;
  return rules;
}

}  // namespace

void add_storage_rules(RuleTable& table) {
  table[{"", "PersistentVolume"}] = persistent_volume_rules();
  table[{"", "PersistentVolumeClaim"}] = persistent_volume_claim_rules();
  table[{"storage.k8s.io", "StorageClass"}] = storage_class_rules();
  table[{"storage.k8s.io", "VolumeAttributesClass"}] = attributes_class_rules();
  table[{"storage.k8s.io", "CSINode"}] = csi_node_rules();
  table[{"storage.k8s.io", "CSIDriver"}] = csi_driver_rules();
  table[{"storage.k8s.io", "CSIStorageCapacity"}] = storage_capacity_rules();
  table[{"storage.k8s.io", "VolumeAttachment"}] = attachment_rules();
}

}  // namespace dibs::api
