#include "driver/device_metadata.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/strings.h"
#include "cdi/names.h"
#include "json/parse.h"

namespace dibs::driver {
namespace {

using json::Value;

constexpr std::string_view kInContainer = "/var/run/kubernetes.io/dra-device-attributes";
constexpr const char* kVersions[] = {"metadata.resource.k8s.io/v1beta1",
                                     "metadata.resource.k8s.io/v1alpha1"};
constexpr std::string_view kUidMark = "uid";

std::string request_of(const PreparedDevice& device) {
  return device.request.substr(0, device.request.find('/'));
}

std::string pod_claim_name(const Claim& claim) {
  return claim.object["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"].str();
}

/// Requests with their devices, in the order of the claim.
Value describe(const std::string& driver, const std::vector<PreparedDevice>& devices,
               std::string_view request) {
  Value requests = Value::array();
  std::map<std::string, std::size_t> places;
  for (const auto& prepared : devices) {
    if (request_of(prepared) != request) continue;
    const auto [place, is_new] = places.emplace(prepared.request, requests.size());
    if (is_new) {
      requests.push(Value::object({{"name", prepared.request}, {"devices", Value::array()}}));
    }
    Value device =
        Value::object({{"driver", driver}, {"pool", prepared.pool}, {"name", prepared.device}});
    for (const char* field : {"attributes", "networkData"}) {
      if (prepared.metadata.contains(field)) device.set(field, prepared.metadata[field]);
    }
    requests.mut(place->second).mut("devices").push(std::move(device));
  }
  return requests;
}

/// Best effort: what stays behind is a name without content.
void remove_empty(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::remove(folder, ignored);
}

}  // namespace

MetadataFiles::MetadataFiles(runtime::Files& files, std::string driver_name, std::string data_dir,
                             std::string cdi_dir)
    : files_(files),
      driver_(std::move(driver_name)),
      root_(cat(data_dir, "/dra-device-metadata")),
      cdi_dir_(std::move(cdi_dir)) {}

std::string MetadataFiles::claim_folder(const ClaimName& claim) const {
  return cat(root_, "/", claim.name_space, "_", claim.name);
}

std::string MetadataFiles::cdi_prefix(std::string_view uid) const {
  return cat(driver_, "_metadata_", uid, "_");
}

MetadataFiles::Place MetadataFiles::place(const ClaimName& claim, std::string_view request) const {
  const std::string folder = claim_folder(claim);
  return {folder, cat(folder, "/", request, "/metadata.json"),
          cat(cdi_dir_, "/", cdi_prefix(claim.uid), request, ".json")};
}

std::string MetadataFiles::cdi_id(const ClaimName& claim, std::string_view request) const {
  return cdi::qualified_name(driver_, "metadata", cat(claim.uid, "_", request));
}

Result<> MetadataFiles::write(const Claim& claim, const std::vector<PreparedDevice>& devices) {
  std::map<std::string, bool> done;
  const std::string pod_claim = pod_claim_name(claim);
  for (const auto& prepared : devices) {
    const std::string request = request_of(prepared);
    if (!done.emplace(request, true).second) continue;
    const Place at = place(claim.id, request);
    std::int64_t generation = 1;
    if (const auto before = files_.read(at.file)) {
      // The stream's first document is enough.
      const auto first = json::parse(before->substr(0, before->find('\n')));
      if (first) generation = (*first)["metadata"]["generation"].as_int() + 1;
    }
    std::string text;
    for (const char* version : kVersions) {
      Value object = Value::object({{"kind", "DeviceMetadata"}, {"apiVersion", version}});
      object.set("metadata", Value::object({{"name", claim.id.name},
                                            {"namespace", claim.id.name_space},
                                            {"uid", claim.id.uid},
                                            {"generation", generation}}));
      if (!pod_claim.empty()) object.set("podClaimName", pod_claim);
      object.set("requests", describe(driver_, devices, request));
      append(text, json::write(object), "\n");
    }
    DIBS_CHECK(files_.make_dirs(at.file.substr(0, at.file.rfind('/')), 0755));
    // Whose folder it is: names of claims come back, with another uid.
    DIBS_CHECK(files_.write(cat(at.folder, "/", kUidMark), claim.id.uid, 0644));
    DIBS_CHECK(files_.write(at.file, text, 0644));

    cdi::Spec spec;
    spec.kind = cat(driver_, "/metadata");
    cdi::Device device;
    device.name = cat(claim.id.uid, "_", request);
    cdi::Mount mount;
    mount.host_path = at.file;
    mount.container_path = pod_claim.empty()
                               ? cat(kInContainer, "/resourceclaims/", claim.id.name, "/", request,
                                     "/", driver_, "-metadata.json")
                               : cat(kInContainer, "/resourceclaimtemplates/", pod_claim, "/",
                                     request, "/", driver_, "-metadata.json");
    mount.options = {"ro", "bind"};
    device.edits.mounts.push_back(std::move(mount));
    spec.devices.push_back(std::move(device));
    spec.version = cdi::minimum_version(spec);
    DIBS_CHECK(files_.write(at.cdi_file, cdi::write_json(spec), 0644));
  }
  return success();
}

bool MetadataFiles::exists(const ClaimName& claim,
                           const std::vector<PreparedDevice>& devices) const {
  const auto owner = files_.read(cat(claim_folder(claim), "/", kUidMark));
  if (!owner || *owner != claim.uid) return false;
  return std::all_of(devices.begin(), devices.end(), [&](const PreparedDevice& device) {
    const Place at = place(claim, request_of(device));
    return files_.exists(at.file) && files_.exists(at.cdi_file);
  });
}

Result<> MetadataFiles::remove(const ClaimName& claim) {
  return collect_garbage([&](std::string_view uid) { return uid != claim.uid; });
}

Result<> MetadataFiles::collect_garbage(const std::function<bool(std::string_view uid)>& is_kept) {
  const auto names = files_.list(cdi_dir_);
  const std::string begin = cat(driver_, "_metadata_");
  for (const auto& name : names ? *names : std::vector<std::string>()) {
    if (!name.starts_with(begin)) continue;
    const std::string rest = name.substr(begin.size());
    if (!name.ends_with(".tmp") && is_kept(rest.substr(0, rest.find('_')))) continue;
    DIBS_CHECK(files_.remove(cat(cdi_dir_, "/", name)));
  }
  const auto claims = files_.list(root_);
  if (!claims) return success();
  for (const auto& name : *claims) {
    const std::string folder = cat(root_, "/", name);
    const auto owner = files_.read(cat(folder, "/", kUidMark));
    if (owner && is_kept(*owner)) continue;
    const auto requests = files_.list(folder);
    for (const auto& request : requests ? *requests : std::vector<std::string>()) {
      const auto inside = files_.list(cat(folder, "/", request));
      for (const auto& file : inside ? *inside : std::vector<std::string>()) {
        DIBS_CHECK(files_.remove(cat(folder, "/", request, "/", file)));
      }
      remove_empty(cat(folder, "/", request));
    }
    DIBS_CHECK(files_.remove(cat(folder, "/", kUidMark)));
    remove_empty(folder);
  }
  return success();
}

}  // namespace dibs::driver
