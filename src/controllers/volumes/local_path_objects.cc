#include "controllers/volumes/local_path_objects.h"

#include "api/volumes/volumes.h"
#include "base/strings.h"
#include "client/client.h"
#include "controllers/volumes/volume_objects.h"

namespace dibs::controllers {
namespace {

using client::name_of;
using json::Value;

constexpr const char* kHostname = "kubernetes.io/hostname";
constexpr const char* kMount = "/folders";

std::string path_of(std::string_view volume) { return cat(api::kLocalPathFolder, '/', volume); }

Result<> check_claim(const Value& claim) {
  const Value& spec = claim["spec"];
  for (const Value& mode : spec["accessModes"].items()) {
    if (mode.as_string() != "ReadWriteOnce" && mode.as_string() != "ReadWriteOncePod") {
      return Error::invalid(cat("accessModes: ", mode.as_string(),
                                " is not possible: a folder is on one node; use ReadWriteOnce or "
                                "ReadWriteOncePod"));
    }
  }
  if (spec["volumeMode"].as_string() == "Block")
    return Error::invalid("volumeMode: Block is not possible: a folder is no device");
  for (const char* field : {"selector", "dataSource", "dataSourceRef"})
    if (!spec[field].is_null()) return Error::invalid(cat(field, " is not supported"));
  if (!spec["volumeAttributesClassName"].as_string().empty())
    return Error::invalid("volumeAttributesClassName is not supported: a folder has no attributes");
  return success();
}

Result<> check_class(const Value& storage_class) {
  for (const char* field : {"parameters", "mountOptions"})
    if (!storage_class[field].empty())
      return Error::invalid(cat("the class has ", field, ", which are not supported"));
  return success();
}

Value on_host(const Value& host) {
  const Value expression =
      Value::object({{"key", kHostname}, {"operator", "In"}, {"values", Value::array({host})}});
  const Value term = Value::object({{"matchExpressions", Value::array({expression})}});
  return Value::object(
      {{"required", Value::object({{"nodeSelectorTerms", Value::array({term})}})}});
}

}  // namespace

std::string volume_name_for(const Value& claim) { return cat("pvc-", client::uid_of(claim)); }

Result<Value> folder_volume(const Value& claim, const Value& storage_class, const Value& node) {
  DIBS_CHECK(check_claim(claim));
  DIBS_CHECK(check_class(storage_class));
  const Value& host = node["metadata"]["labels"][kHostname];
  if (!host.is_string())
    return Error::invalid(cat("node ", quoted(name_of(node)), " has no label ", kHostname));
  const std::string name = volume_name_for(claim);
  const Value& policy = storage_class["reclaimPolicy"];
  Value metadata = Value::object(
      {{"name", name},
       {"annotations", Value::object({{api::kProvisionedBy, api::kLocalPathProvisioner}})}});
  if (policy.as_string() != "Retain") metadata.set("finalizers", Value::array({kFolderFinalizer}));
  const Value& own = claim["metadata"];
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "PersistentVolume"},
       {"metadata", std::move(metadata)},
       {"spec",
        Value::object(
            {{"capacity",
              Value::object({{"storage", claim["spec"]["resources"]["requests"]["storage"]}})},
             {"accessModes", claim["spec"]["accessModes"]},
             {"persistentVolumeReclaimPolicy", policy.is_null() ? Value("Delete") : policy},
             {"storageClassName", storage_class["metadata"]["name"]},
             {"volumeMode", "Filesystem"},
             {"local", Value::object({{"path", path_of(name)}})},
             {"nodeAffinity", on_host(host)},
             {"claimRef", Value::object({{"apiVersion", "v1"},
                                         {"kind", "PersistentVolumeClaim"},
                                         {"namespace", own["namespace"]},
                                         {"name", own["name"]},
                                         {"uid", own["uid"]},
                                         {"resourceVersion", own["resourceVersion"]}})}})}});
}

bool is_folder_to_remove(const Value& volume) {
  if (api::annotation_of(volume, api::kProvisionedBy).as_string() != api::kLocalPathProvisioner)
    return false;
  if (volume["spec"]["persistentVolumeReclaimPolicy"].as_string() != "Delete") return false;
  const bool deleting = !volume["metadata"]["deletionTimestamp"].is_null();
  // The folder is gone, or somebody has given it up; others may still hold the volume.
  if (deleting && !has_finalizer(volume, kFolderFinalizer)) return false;
  // An administrator may delete the volume himself; its claim must be gone all the same.
  const std::string_view phase = volume["status"]["phase"].as_string();
  return phase == "Released" || phase == "Failed" || (phase != "Bound" && deleting);
}

Result<std::string> host_of_folder(const Value& volume) {
  if (volume["spec"]["local"]["path"].as_string() != path_of(name_of(volume)) ||
      !name_of(volume).starts_with("pvc-") || name_of(volume).find('/') != std::string_view::npos) {
    return Error::invalid(cat("spec.local.path is not ", path_of(name_of(volume)),
                              ", where the folders of ", api::kLocalPathProvisioner,
                              " are: it is left alone"));
  }
  const Value& expression =
      volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"][0];
  const std::string host = expression["values"][0].str();
  if (expression["key"].as_string() != kHostname || host.empty())
    return Error::invalid(cat("spec.nodeAffinity does not name a node by ", kHostname));
  return host;
}

std::string removal_pod_name(const Value& volume) { return cat("remove-", name_of(volume)); }

Value removal_pod(const Value& volume, std::string_view node) {
  const std::string_view name = name_of(volume);
  const Value security = Value::object(
      {{"allowPrivilegeEscalation", false},
       {"readOnlyRootFilesystem", true},
       // Files of all users go.
       {"runAsUser", 0},
       {"capabilities", Value::object({{"drop", Value::array({"ALL"})},
                                       {"add", Value::array({"DAC_OVERRIDE", "FOWNER"})}})}});
  const Value container =
      Value::object({{"name", "remove"},
                     {"image", "dibs.dev/built-in:latest"},
                     {"imagePullPolicy", "IfNotPresent"},
                     {"command", Value::array({"rm", "-rf", cat(kMount, '/', name)})},
                     {"volumeMounts",
                      Value::array({Value::object({{"name", "folders"}, {"mountPath", kMount}})})},
                     {"securityContext", security}});
  const Value folders = Value::object(
      {{"name", "folders"},
       {"hostPath",
        Value::object({{"path", api::kLocalPathFolder}, {"type", "DirectoryOrCreate"}})}});
  return Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"metadata", Value::object({{"name", removal_pod_name(volume)},
                                   {"namespace", kFolderNamespace},
                                   {"labels", Value::object({{kFolderLabel, name}})}})},
       {"spec",
        Value::object(
            // Not by the scheduler: a cordoned or full node must let go of what it has, too.
            {{"nodeName", node},
             // A full disk takes no others, and this one makes room.
             {"priorityClassName", "system-node-critical"},
             {"restartPolicy", "Never"},
             {"hostNetwork", true},
             {"automountServiceAccountToken", false},
             {"terminationGracePeriodSeconds", 1},
             {"tolerations", Value::array({Value::object({{"operator", "Exists"}})})},
             {"containers", Value::array({container})},
             {"volumes", Value::array({folders})}})}});
}

}  // namespace dibs::controllers
