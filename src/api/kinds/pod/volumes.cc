#include "api/kinds/pod/volumes.h"

#include <set>

#include "api/kinds/access/pod_certificate.h"
#include "api/kinds/access/signing_request.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/pod/resources.h"
#include "api/kinds/storage/volumes.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::string_view kModeText =
    "must be a number between 0 and 0777 (octal), both inclusive";

bool has_backstep(std::string_view path) {
  for (std::string_view part : split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

bool is_absolute(std::string_view path) { return !path.empty() && path.front() == '/'; }

void require(const Value& object, std::string_view key, const Path& path, FieldErrors& errors) {
  if (object[key].as_string().empty()) errors.required(path.child(key));
}

void validate_mode(const Value& object, std::string_view key, const Path& path,
                   FieldErrors& errors) {
  if (!is_set(object, key)) return;
  std::int64_t mode = object[key].as_int();
  if (mode < 0 || mode > 0777) errors.invalid(path.child(key), object[key], kModeText);
}

// A path in a volume that the node itself fills: names that begin with ".." are its own.
void validate_local_path(const Value& value, const Path& path, FieldErrors& errors) {
  validate_descending_path(value, path, errors);
  std::string_view text = value.as_string();
  if (text.substr(0, 2) == ".." && text != ".." && text.substr(0, 3) != "../") {
    errors.invalid(path, value, "must not start with '..'");
  }
}

void validate_key_to_path(const Value& item, const Path& path, FieldErrors& errors) {
  require(item, "key", path, errors);
  if (item["path"].as_string().empty()) {
    errors.required(path.child("path"));
  } else {
    validate_local_path(item["path"], path.child("path"), errors);
  }
  validate_mode(item, "mode", path, errors);
}

void validate_items(const Value& items, const Path& path, FieldErrors& errors) {
  Path list = path.child("items");
  for (std::size_t i = 0; i < items.size(); ++i) {
    Path at = list.index(i);
    validate_key_to_path(items[i], at, errors);
  }
}

void validate_downward_file(const Value& file, const Path& path, FieldErrors& errors) {
  require(file, "path", path, errors);
  validate_local_path(file["path"], path.child("path"), errors);
  if (is_set(file, "fieldRef")) {
    validate_field_ref(file["fieldRef"], true, path.child("fieldRef"), errors);
    if (is_set(file, "resourceFieldRef")) {
      errors.invalid(path, "resource",
                     "fieldRef and resourceFieldRef can not be specified simultaneously");
    }
  } else if (is_set(file, "resourceFieldRef")) {
    validate_resource_field_ref(file["resourceFieldRef"], true, path.child("resourceFieldRef"),
                                errors);
  } else {
    errors.required(path, "one of fieldRef and resourceFieldRef is required");
  }
  validate_mode(file, "mode", path, errors);
}

struct Source {
  const Value& value;
  const Path& path;
  const Value& volume;
  const Path& volume_path;
  const Value& metadata;
};

void check_empty_dir(const Source& source, FieldErrors& errors) {
  if (is_set(source.value, "sizeLimit") && quantity_of(source.value["sizeLimit"]).sign() < 0) {
    errors.forbidden(source.path.child("sizeLimit"),
                     "SizeLimit field must be a valid resource quantity");
  }
}

void check_host_path(const Source& source, FieldErrors& errors) {
  if (source.value["path"].as_string().empty()) {
    errors.required(source.path.child("path"));
    return;
  }
  validate_no_backsteps(source.value["path"], source.path.child("path"), errors);
  if (is_set(source.value, "type") &&
      !is_one_of(source.value["type"].as_string(),
                 {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                  "FileOrCreate", "Socket"})) {
    errors.not_supported(source.path.child("type"), source.value["type"],
                         {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File",
                          "FileOrCreate", "Socket"});
  }
}

void check_git_repo(const Source& source, FieldErrors& errors) {
  require(source.value, "repository", source.path, errors);
  validate_descending_path(source.value["directory"], source.path.child("directory"), errors);
}

void check_partition(const Source& source, FieldErrors& errors) {
  add_invalid(is_in_range(source.value["partition"].as_int(), 0, 255), source.value["partition"],
              source.path.child("partition"), errors);
}

void check_gce_disk(const Source& source, FieldErrors& errors) {
  require(source.value, "pdName", source.path, errors);
  check_partition(source, errors);
}

void check_aws_disk(const Source& source, FieldErrors& errors) {
  require(source.value, "volumeID", source.path, errors);
  check_partition(source, errors);
}

void check_secret(const Source& source, FieldErrors& errors) {
  require(source.value, "secretName", source.path, errors);
  validate_mode(source.value, "defaultMode", source.path, errors);
  validate_items(source.value["items"], source.path, errors);
}

void check_config_map(const Source& source, FieldErrors& errors) {
  require(source.value, "name", source.path, errors);
  validate_mode(source.value, "defaultMode", source.path, errors);
  validate_items(source.value["items"], source.path, errors);
}

void check_nfs(const Source& source, FieldErrors& errors) {
  require(source.value, "server", source.path, errors);
  require(source.value, "path", source.path, errors);
  std::string_view path = source.value["path"].as_string();
  if (!is_absolute(path)) {
    errors.invalid(source.path.child("path"), Value(path), "must be an absolute path");
  }
}

void check_iscsi(const Source& source, FieldErrors& errors) {
  const Value& iscsi = source.value;
  require(iscsi, "targetPortal", source.path, errors);
  std::string_view iqn = iscsi["iqn"].as_string();
  if (iqn.empty()) {
    errors.required(source.path.child("iqn"));
  } else if (!is_one_of(iqn.substr(0, 3), {"iqn", "eui", "naa"})) {
    errors.invalid(source.path.child("iqn"), iscsi["iqn"],
                   "must be valid format starting with iqn, eui, or naa");
  }
  add_invalid(is_in_range(iscsi["lun"].as_int(), 0, 255), iscsi["lun"], source.path.child("lun"),
              errors);
  if ((iscsi["chapAuthDiscovery"].as_bool() || iscsi["chapAuthSession"].as_bool()) &&
      !is_set(iscsi, "secretRef")) {
    errors.required(source.path.child("secretRef"));
  }
  if (is_set(iscsi, "secretRef")) {
    Path ref = source.path.child("secretRef");
    require(iscsi["secretRef"], "name", ref, errors);
  }
}

void check_persistent_volume_claim(const Source& source, FieldErrors& errors) {
  require(source.value, "claimName", source.path, errors);
}

void check_glusterfs(const Source& source, FieldErrors& errors) {
  require(source.value, "endpoints", source.path, errors);
  require(source.value, "path", source.path, errors);
}

void check_flocker(const Source& source, FieldErrors& errors) {
  const Value& name = source.value["datasetName"];
  const bool has_name = !name.as_string().empty();
  const bool has_uuid = !source.value["datasetUUID"].as_string().empty();
  if (!has_name && !has_uuid) {
    errors.required(source.path, "one of datasetName and datasetUUID is required");
  }
  if (has_name && has_uuid) {
    errors.invalid(source.path, "resource",
                   "datasetName and datasetUUID can not be specified simultaneously");
  }
  if (name.as_string().find('/') != std::string_view::npos) {
    errors.invalid(source.path.child("datasetName"), name, "must not contain '/'");
  }
}

void check_rbd(const Source& source, FieldErrors& errors) {
  if (source.value["monitors"].empty()) errors.required(source.path.child("monitors"));
  require(source.value, "image", source.path, errors);
}

void check_cinder(const Source& source, FieldErrors& errors) {
  require(source.value, "volumeID", source.path, errors);
  if (is_set(source.value, "secretRef")) {
    Path ref = source.path.child("secretRef");
    require(source.value["secretRef"], "name", ref, errors);
  }
}

void check_ceph_fs(const Source& source, FieldErrors& errors) {
  if (source.value["monitors"].empty()) errors.required(source.path.child("monitors"));
}

void check_downward(const Source& source, FieldErrors& errors) {
  validate_mode(source.value, "defaultMode", source.path, errors);
  for (const Value& file : source.value["items"].items()) {
    validate_downward_file(file, source.path, errors);
  }
}

void check_fc(const Source& source, FieldErrors& errors) {
  const Value& fc = source.value;
  bool names = !fc["targetWWNs"].empty();
  bool ids = !fc["wwids"].empty();
  if (!names && !ids) {
    errors.required(source.path.child("targetWWNs"),
                    "must specify either targetWWNs or wwids, but not both");
  }
  if (names && ids) {
    errors.invalid(source.path.child("targetWWNs"), fc["targetWWNs"],
                   "targetWWNs and wwids can not be specified simultaneously");
  }
  if (names) {
    if (!is_set(fc, "lun")) {
      errors.required(source.path.child("lun"), "lun is required if targetWWNs is specified");
    } else {
      add_invalid(is_in_range(fc["lun"].as_int(), 0, 255), fc["lun"], source.path.child("lun"),
                  errors);
    }
  }
}

void check_flex_volume(const Source& source, FieldErrors& errors) {
  require(source.value, "driver", source.path, errors);
}

void check_azure_file(const Source& source, FieldErrors& errors) {
  require(source.value, "secretName", source.path, errors);
  require(source.value, "shareName", source.path, errors);
}

void check_vsphere(const Source& source, FieldErrors& errors) {
  require(source.value, "volumePath", source.path, errors);
}

void check_photon(const Source& source, FieldErrors& errors) {
  require(source.value, "pdID", source.path, errors);
}

void check_portworx(const Source& source, FieldErrors& errors) {
  require(source.value, "volumeID", source.path, errors);
}

void check_azure_disk(const Source& source, FieldErrors& errors) {
  require(source.value, "diskName", source.path, errors);
  require(source.value, "diskURI", source.path, errors);
  std::string_view caching = source.value["cachingMode"].as_string();
  if (!caching.empty() && !is_one_of(caching, {"None", "ReadOnly", "ReadWrite"})) {
    errors.not_supported(source.path.child("cachingMode"), Value(caching),
                         {"None", "ReadOnly", "ReadWrite"});
  }
  std::string_view kind = source.value["kind"].as_string();
  if (!kind.empty() && !is_one_of(kind, {"Dedicated", "Managed", "Shared"})) {
    errors.not_supported(source.path.child("kind"), Value(kind),
                         {"Dedicated", "Managed", "Shared"});
  }
}

void check_scale_io(const Source& source, FieldErrors& errors) {
  for (const char* key : {"gateway", "system", "volumeName"}) {
    require(source.value, key, source.path, errors);
  }
}

void check_storage_os(const Source& source, FieldErrors& errors) {
  require(source.value, "volumeName", source.path, errors);
}

void check_quobyte(const Source& source, FieldErrors& errors) {
  require(source.value, "registry", source.path, errors);
  require(source.value, "volume", source.path, errors);
}

// Two files of a projected volume may not have one path.
void note_path(const Value& path, const Value& shown, std::set<std::string>& seen,
               const Path& projected, FieldErrors& errors) {
  if (path.as_string().empty()) return;
  if (!seen.insert(path.str()).second) {
    errors.invalid(projected, shown, "conflicting duplicate paths");
  }
}

void check_token_projection(const Value& token, const Path& at, const Path& projected,
                            std::set<std::string>& seen, FieldErrors& errors) {
  if (is_set(token, "expirationSeconds")) {
    std::int64_t seconds = token["expirationSeconds"].as_int();
    if (seconds < 600) {
      errors.invalid(at.child("expirationSeconds"), token["expirationSeconds"],
                     "may not specify a duration less than 10 minutes");
    } else if (seconds > (std::int64_t{1} << 32)) {
      errors.invalid(at.child("expirationSeconds"), token["expirationSeconds"],
                     "may not specify a duration larger than 2^32 seconds");
    }
  }
  // The API reports this one at the volume, not at its source.
  if (token["path"].as_string().empty()) {
    errors.required(projected.child("path"));
  } else {
    validate_local_path(token["path"], projected.child("path"), errors);
    note_path(token["path"], token["path"], seen, projected, errors);
  }
}

void check_trust_bundle(const Value& bundle, const Path& at, std::set<std::string>& seen,
                        const Path& projected, FieldErrors& errors) {
  bool by_name = is_set(bundle, "name");
  bool by_signer = is_set(bundle, "signerName");
  if (by_name && by_signer) {
    errors.invalid(at, bundle, "only one of name and signerName may be used");
  } else if (!by_name && !by_signer) {
    errors.required(at, "either name or signerName must be specified");
  }
  if (by_signer)
    validate_label_selector(bundle["labelSelector"], at.child("labelSelector"), errors);
  if (bundle["path"].as_string().empty()) {
    errors.required(at.child("path"));
  } else {
    validate_local_path(bundle["path"], at.child("path"), errors);
    note_path(bundle["path"], bundle["path"], seen, projected, errors);
  }
}

void check_certificate_projection(const Value& wanted, const Path& at, std::set<std::string>& seen,
                                  const Path& projected, FieldErrors& errors) {
  const Value& signer = wanted["signerName"];
  validate_signer_name(signer, at.child("signerName"), errors);
  validate_user_annotations(wanted["userAnnotations"], at.child("userAnnotations"), errors);
  if (!is_one_of(wanted["keyType"].as_string(),
                 {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"})) {
    errors.not_supported(at.child("keyType"), wanted["keyType"].str(),
                         {"RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"});
  }
  if (is_set(wanted, "maxExpirationSeconds")) {
    const Value& seconds = wanted["maxExpirationSeconds"];
    const std::int64_t longest = longest_certificate(signer.as_string());
    if (seconds.as_int() < kShortestCertificate) {
      errors.invalid(at.child("maxExpirationSeconds"), seconds,
                     cat("if provided, maxExpirationSeconds must be >= ", kShortestCertificate));
    }
    if (seconds.as_int() > longest) {
      errors.invalid(at.child("maxExpirationSeconds"), seconds,
                     cat("if provided, maxExpirationSeconds must be <= ", longest));
    }
  }
  bool any = false;
  for (const char* key : {"credentialBundlePath", "keyPath", "certificateChainPath"}) {
    if (wanted[key].as_string().empty()) continue;
    any = true;
    validate_local_path(wanted[key], at.child(key), errors);
    note_path(wanted[key], wanted[key], seen, projected, errors);
  }
  if (!any) {
    errors.required(
        at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
  }
}

void check_projected(const Source& source, FieldErrors& errors) {
  validate_mode(source.value, "defaultMode", source.path, errors);
  std::set<std::string> seen;
  Path list = source.path.child("sources");
  const Value& sources = source.value["sources"];
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const Value& entry = sources[i];
    Path at = list.index(i);
    bool one = false;
    auto first = [&] {
      if (one) errors.forbidden(at, "may not specify more than 1 volume type per source");
      bool fresh = !one;
      one = true;
      return fresh;
    };
    for (const char* key : {"secret", "configMap"}) {
      if (!is_set(entry, key) || !first()) continue;
      Path projection = at.child(key);
      require(entry[key], "name", projection, errors);
      Path items_at = projection.child("items");
      const Value& items = entry[key]["items"];
      for (std::size_t k = 0; k < items.size(); ++k) {
        validate_key_to_path(items[k], items_at.index(k), errors);
        note_path(items[k]["path"], entry[key]["name"], seen, source.path, errors);
      }
    }
    if (is_set(entry, "downwardAPI") && first()) {
      Path projection = at.child("downwardAPI");
      for (const Value& file : entry["downwardAPI"]["items"].items()) {
        validate_downward_file(file, projection, errors);
        note_path(file["path"], file["path"], seen, source.path, errors);
      }
    }
    if (is_set(entry, "serviceAccountToken") && first()) {
      Path projection = at.child("serviceAccountToken");
      check_token_projection(entry["serviceAccountToken"], projection, source.path, seen, errors);
    }
    if (is_set(entry, "clusterTrustBundle") && first()) {
      Path projection = at.child("clusterTrustBundle");
      check_trust_bundle(entry["clusterTrustBundle"], projection, seen, source.path, errors);
    }
    if (is_set(entry, "podCertificate") && first()) {
      Path projection = at.child("podCertificate");
      check_certificate_projection(entry["podCertificate"], projection, seen, source.path, errors);
    }
  }
}

void check_csi(const Source& source, FieldErrors& errors) {
  std::string_view driver = source.value["driver"].as_string();
  Path at = source.path.child("driver");
  if (driver.empty()) errors.required(at);
  if (driver.size() > 63) errors.too_long(at, 63);
  if (!driver.empty()) {
    add_invalid(is_dns1123_subdomain(to_lower(driver)), Value(driver), at, errors);
  }
  if (is_set(source.value, "nodePublishSecretRef")) {
    Path ref = source.path.child("nodePublishSecretRef");
    require(source.value["nodePublishSecretRef"], "name", ref, errors);
  }
}

void check_ephemeral(const Source& source, FieldErrors& errors) {
  const Value& claim = source.value["volumeClaimTemplate"];
  if (claim.is_null()) {
    errors.required(source.path.child("volumeClaimTemplate"));
  } else {
    Path at = source.path.child("volumeClaimTemplate");
    Path metadata_at = at.child("metadata");
    validate_annotations(claim["metadata"]["annotations"], metadata_at.child("annotations"),
                         errors);
    validate_labels(claim["metadata"]["labels"], metadata_at.child("labels"), errors);
    validate_claim_spec(claim["spec"], at.child("spec"), errors);
  }
  std::string_view pod = source.metadata["name"].as_string();
  std::string_view name = source.volume["name"].as_string();
  if (pod.empty() || name.empty()) return;
  std::string made = cat(pod, "-", name);
  for (const std::string& fault : is_dns1123_subdomain(made)) {
    errors.invalid(source.volume_path.child("name"), Value(name),
                   cat("PVC name ", quoted(made), ": ", fault));
  }
}

void check_image(const Source& source, FieldErrors& errors) {
  require(source.value, "reference", source.path, errors);
  std::string_view policy = source.value["pullPolicy"].as_string();
  if (!policy.empty() && !is_one_of(policy, {"Always", "IfNotPresent", "Never"})) {
    errors.not_supported(source.path.child("pullPolicy"), Value(policy),
                         {"Always", "IfNotPresent", "Never"});
  }
}

struct SourceKind {
  const char* key;
  void (*check)(const Source&, FieldErrors&);
};

// In the order in which the API looks for them: the first one found is taken, the others are too
// many.
constexpr SourceKind kSources[] = {
    {"emptyDir", check_empty_dir},
    {"hostPath", check_host_path},
    {"gitRepo", check_git_repo},
    {"gcePersistentDisk", check_gce_disk},
    {"awsElasticBlockStore", check_aws_disk},
    {"secret", check_secret},
    {"nfs", check_nfs},
    {"iscsi", check_iscsi},
    {"glusterfs", check_glusterfs},
    {"flocker", check_flocker},
    {"persistentVolumeClaim", check_persistent_volume_claim},
    {"rbd", check_rbd},
    {"cinder", check_cinder},
    {"cephfs", check_ceph_fs},
    {"quobyte", check_quobyte},
    {"downwardAPI", check_downward},
    {"fc", check_fc},
    {"flexVolume", check_flex_volume},
    {"configMap", check_config_map},
    {"azureFile", check_azure_file},
    {"vsphereVolume", check_vsphere},
    {"photonPersistentDisk", check_photon},
    {"portworxVolume", check_portworx},
    {"azureDisk", check_azure_disk},
    {"storageos", check_storage_os},
    {"projected", check_projected},
    {"scaleIO", check_scale_io},
    {"csi", check_csi},
    {"ephemeral", check_ephemeral},
    {"image", check_image},
};

void validate_source(const Value& volume, const Value& metadata, const Path& path,
                     FieldErrors& errors) {
  bool found = false;
  for (const SourceKind& kind : kSources) {
    if (!is_set(volume, kind.key)) continue;
    Path at = path.child(kind.key);
    if (found) {
      errors.forbidden(at, "may not specify more than 1 volume type");
      continue;
    }
    found = true;
    kind.check({volume[kind.key], at, volume, path, metadata}, errors);
  }
  if (!found) errors.required(path, "must specify a volume type");
}

}  // namespace

void validate_no_backsteps(const Value& value, const Path& path, FieldErrors& errors) {
  if (has_backstep(value.as_string())) errors.invalid(path, value, "must not contain '..'");
}

void validate_descending_path(const Value& value, const Path& path, FieldErrors& errors) {
  if (is_absolute(value.as_string())) errors.invalid(path, value, "must be a relative path");
  validate_no_backsteps(value, path, errors);
}

Volumes validate_volumes(const Value& volumes, const Value& metadata, const Path& path,
                         FieldErrors& errors) {
  Volumes good;
  std::set<std::string> made;
  for (const Value& volume : volumes.items()) {
    if (is_set(volume, "ephemeral") && !metadata["name"].as_string().empty()) {
      made.insert(cat(metadata["name"].as_string(), "-", volume["name"].as_string()));
    }
  }
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const Value& volume = volumes[i];
    Path at = path.index(i);
    std::size_t before = errors.size();
    std::string name = volume["name"].str();
    validate_source(volume, metadata, at, errors);
    if (name.empty()) {
      errors.required(at.child("name"));
    } else {
      add_invalid(is_dns1123_label(name), volume["name"], at.child("name"), errors);
    }
    if (good.count(name) != 0) errors.duplicate(at.child("name"), volume["name"]);
    if (errors.size() == before) good.emplace(name, volume);
    if (made.count(volume["persistentVolumeClaim"]["claimName"].str()) != 0) {
      Path claim = at.child("persistentVolumeClaim");
      errors.invalid(claim.child("claimName"), volume["persistentVolumeClaim"]["claimName"],
                     "must not reference a PVC that gets created for an ephemeral volume");
    }
  }
  return good;
}

}  // namespace dibs::api
