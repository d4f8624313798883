#include "node/pods/volume_persistent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "api/volumes/volumes.h"
#include "base/log.h"
#include "base/strings.h"
#include "node/pods/node_paths.h"
#include "node/pods/pod_admission.h"
#include "node/pods/volume_csi.h"
#include "node/pods/volume_files.h"
#include "node/pods/volume_growth.h"
#include "node/pods/volume_host.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr const char* kHostPath = "volumes/kubernetes.io~host-path";
constexpr const char* kLocal = "volumes/kubernetes.io~local-volume";
constexpr const char* kLocalDevice = "volumeDevices/kubernetes.io~local-volume";
/// How often a driver that wants it is asked to publish again.
constexpr Duration kRepublish = std::chrono::seconds(60);
/// A pod that is looked at all the time does not ask more often than this whether a volume grew.
constexpr Duration kGrowthPause = std::chrono::seconds(10);
const client::Gvr kClaims{"", "v1", "persistentvolumeclaims"};

std::string uid_text(const Value& pod) { return std::string(client::uid_of(pod)); }

/// The only mode is ReadWriteOncePod: with several nobody knows which one a pod means.
bool is_for_one_pod(const Value& volume) {
  const Value& modes = volume["spec"]["accessModes"];
  return modes.size() == 1 && modes[0].as_string() == "ReadWriteOncePod";
}

VolumeFailure failure_of(const std::string& step, std::string_view volume, const Error& error) {
  return {std::string(volume), cat(step, " for volume ", quoted(volume), " : ", error.message())};
}

std::vector<std::string> options_of(const Value& volume, bool read_only) {
  std::vector<std::string> out;
  for (const Value& option : volume["spec"]["mountOptions"].items()) out.push_back(option.str());
  if (read_only) out.emplace_back("ro");
  return out;
}

/// A folder of the provisioner that comes with the program is made when it is first mounted; who
/// may write there is a matter of who gets the claim.
Result<> make_provisioned(const Value& volume, const std::string& path) {
  // As the volume names it: `path` is where that lies on this machine.
  const std::string own = cat(api::kLocalPathFolder, '/', client::name_of(volume));
  if (api::annotation_of(volume, api::kProvisionedBy).as_string() != api::kLocalPathProvisioner ||
      volume["spec"]["local"]["path"].as_string() != own) {
    return success();
  }
  return make_folder(path, 0777);
}

/// Files and folders in it; none where it is not there.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    out.push_back(entry.path().filename().string());
  }
  return out;
}

/// Every mount in the folder, and the empty folders that are left.
Result<> remove_places(const std::string& folder) {
  for (const auto& name : names_in(folder)) {
    const std::string place = cat(folder, '/', name);
    DIBS_CHECK(unmount_below(place));
    DIBS_CHECK(remove_folder(place));
  }
  return remove_folder(folder);
}

}  // namespace

VolumeTurns::Turn::Turn(VolumeTurns& turns, std::string key) : turns_(turns), key_(std::move(key)) {
  const MutexLock lock(turns_.mutex_);
  held_ = turns_.busy_.insert(key_).second;
}

VolumeTurns::Turn::~Turn() {
  if (!held_) return;
  const MutexLock lock(turns_.mutex_);
  turns_.busy_.erase(key_);
}

Result<> apply_group(const Value& pod, const std::string& path) {
  const Value& security = pod["spec"]["securityContext"];
  if (!security["fsGroup"].is_integer()) return success();
  const std::int64_t group = security["fsGroup"].as_int();
  const bool if_wrong = security["fsGroupChangePolicy"].as_string() == "OnRootMismatch";
  if (if_wrong && is_given_to_group(path, group)) return success();
  return give_to_group(path, group, false);
}

Result<> remove_folder(const std::string& path) {
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return success();
  return file_error("rmdir", path, errno);
}

PersistentVolumes::PersistentVolumes(client::Client& client, runtime::Runtime& runtime,
                                     const NodeFacts& facts, VolumeTokens& tokens,
                                     VolumeSurroundings surroundings)
    : client_(client),
      runtime_(runtime),
      facts_(facts),
      surroundings_(std::move(surroundings)),
      csi_(std::make_unique<CsiVolumes>(client, runtime, facts, tokens, surroundings_, turns_)) {}

PersistentVolumes::~PersistentVolumes() { gate_->close(); }

bool PersistentVolumes::owns(const Value& volume) {
  return names_claim(volume) || volume["csi"].is_object();
}

bool PersistentVolumes::is_folder_of_others(std::string_view name) {
  return name == "kubernetes.io~csi" || name == "kubernetes.io~local-volume" ||
         name == "kubernetes.io~host-path";
}

std::optional<VolumeFailure> PersistentVolumes::set_up(const Value& pod, const Value& volume) {
  const std::string uid = uid_text(pod);
  const std::string name = volume["name"].str();
  const Time now = runtime_.clock.now();
  std::optional<Known> there;
  bool grows = false;
  {
    const MutexLock lock(mutex_);
    if (const auto of_pod = known_.find(uid); of_pod != known_.end()) {
      const auto found = of_pod->second.find(name);
      if (found != of_pod->second.end() && (!found->second.again || now < *found->second.again)) {
        Known& known = found->second;
        there = known;
        grows = known.size && !known.growing && now >= known.looked + kGrowthPause;
        if (grows) known.growing = true;
      }
    }
  }
  if (grows) follow_growth_later(pod, volume, *there);
  if (there) return std::nullopt;
  Outcome outcome = find_and_mount(pod, volume);
  if (outcome.failure) return std::move(outcome.failure);
  const MutexLock lock(mutex_);
  Known& known = known_[uid][name];
  known.place = std::move(outcome.place);
  known.size = std::move(outcome.size);
  known.looked = now;
  if (outcome.again) known.again = now + kRepublish;
  return std::nullopt;
}

void PersistentVolumes::follow_growth_later(const Value& pod, const Value& volume,
                                            const Known& known) {
  runtime_.executor.post([this, gate = gate_, pod, volume, known] {
    const client::GateEntry inside(*gate);
    if (inside) follow_growth(pod, volume, known);
  });
}

void PersistentVolumes::follow_growth(const Value& pod, const Value& volume, Known known) {
  // One that cannot be read now is looked at another time: the pod has what it has.
  const auto claimed = read_claimed_volume(client_, pod, volume);
  if (claimed) {
    const auto grown = grow(pod, *claimed, *known.size);
    if (grown) {
      known.size = *grown;
    } else if (surroundings_.event && grown.error().code() != Code::timeout) {
      surroundings_.event(
          pod, true, "VolumeResizeFailed",
          cat("NodeExpandVolume.NodeExpandVolume failed for volume ",
              quoted(client::name_of(claimed->volume)), " : ", grown.error().message()));
    }
  }
  const MutexLock lock(mutex_);
  Known& kept = known_[uid_text(pod)][volume["name"].str()];
  kept.size = std::move(known.size);
  kept.looked = runtime_.clock.now();
  kept.growing = false;
}

Result<Value> PersistentVolumes::patch_claim(const Value& claim, const Value& patch) {
  client::WriteOptions options;
  options.subresource = "status";
  auto written = client_.patch(kClaims, client::namespace_of(claim), client::name_of(claim),
                               client::PatchType::merge, patch, options);
  // Somebody else wrote it in between, or nobody can: another look will tell.
  if (!written) {
    return Error::unavailable(
        cat("MountVolume.NodeExpandVolume update PVC status failed: ", written.error().message()));
  }
  return written;
}

Result<Quantity> PersistentVolumes::grow(const Value& pod, const ClaimedVolume& claimed,
                                         const Quantity& here) {
  const auto growth = growth_of(claimed.claim, claimed.volume, here);
  if (!growth) return here;
  Value claim = claimed.claim;
  const bool tells = growth->followed && !growth->told;
  if (tells) {
    DIBS_TRY(claim, patch_claim(claim, growth_begun(claim)));
  }
  const std::string name(client::name_of(claimed.volume));
  const auto expanded = csi_->expand({pod, name, claimed.volume["spec"]["csi"], claimed.volume},
                                     growth->size.value());
  if (!expanded) {
    const Error error = expanded.error().within("Expander.NodeExpand failed to expand the volume ");
    const bool open = error.code() == Code::unavailable || error.code() == Code::timeout;
    const bool hopeless = error.code() == Code::invalid || error.code() == Code::not_found ||
                          is_outdated(claim, *growth);
    if (tells && !open) {
      const Value patch = growth_failed(claim, error.message(), hopeless, runtime_.clock.now());
      if (const auto written = patch_claim(claim, patch); !written) {
        log::warn("a claim is not told why its volume does not grow",
                  {{"volume", name}, {"error", written.error().message()}});
      }
    }
    if (error.code() != Code::conflict) return error;
    // Not while the volume is in use: its next mount will do it.
    log::warn("a volume cannot grow while it is used",
              {{"volume", name}, {"error", error.message()}});
    return growth->size;
  }
  if (surroundings_.event) {
    const std::string text =
        cat("MountVolume.NodeExpandVolume succeeded for volume ", quoted(name), ' ', facts_.name);
    surroundings_.event(pod, false, "FileSystemResizeSuccessful", text);
    surroundings_.event(claim, false, "FileSystemResizeSuccessful", text);
  }
  if (!growth->told) DIBS_CHECK(patch_claim(claim, growth_done(claim, growth->size)));
  return growth->size;
}

PersistentVolumes::Outcome PersistentVolumes::find_and_mount(const Value& pod,
                                                             const Value& volume) {
  const std::string name = volume["name"].str();
  Outcome out;
  if (!names_claim(volume)) {
    if (facts_.simulated) return out;
    const Value& source = volume["csi"];
    const bool read_only = source["readOnly"].as_bool();
    auto made = csi_->set_up({pod, name, source, json::null_value(), read_only});
    return {{made.path, read_only}, std::move(made.failure), made.again};
  }
  auto claimed = read_claimed_volume(client_, pod, volume);
  Result<> fits = success();
  if (claimed) fits = check_volume_mode(pod, name, claimed->volume);
  if (!claimed || !fits) {
    out.failure = {name, cat("Unable to attach or mount volumes: unmounted volumes=[", name,
                             "], unattached volumes=[], failed to process volumes=[", name,
                             "]: ", claimed ? fits.error().message() : claimed.error().message())};
    return out;
  }
  return facts_.simulated ? out : mount(pod, *claimed);
}

PersistentVolumes::Outcome PersistentVolumes::mount(const Value& pod,
                                                    const ClaimedVolume& claimed) {
  const Value& volume = claimed.volume;
  const Value& spec = volume["spec"];
  const std::string name(client::name_of(volume));
  Outcome out;
  const auto fail = [&](const char* step, std::string why) {
    out.failure = failure_of(step, name, Error::invalid(std::move(why)));
    return out;
  };
  if (const Value& required = spec["nodeAffinity"]["required"]; required.is_object()) {
    const Value node = surroundings_.node ? surroundings_.node() : Value();
    if (!node_selector_holds(required, node)) {
      return fail("MountVolume.NodeAffinity check failed", "no matching NodeSelectorTerms");
    }
  }
  if (spec["csi"].is_object()) return mount_csi(pod, claimed);
  const VolumeTurns::Turn turn(turns_, name);
  if (!turn) {
    out.failure = {name, "another pod's volume is being worked on", true};
    return out;
  }
  if (spec["local"].is_object()) {
    return spec["volumeMode"].as_string() == "Block" ? use_device(pod, claimed)
                                                     : mount_local(pod, claimed);
  }
  if (spec["hostPath"].is_object()) {
    if (spec["volumeMode"].as_string() == "Block") {
      return fail("MapVolume.SetUpDevice failed", "a hostPath volume is no block device");
    }
    out = use_host_path(pod, volume);
    out.place.read_only = claimed.read_only;
    return out;
  }
  for (const auto& [key, what] : spec.members()) {
    const std::string_view type = key;
    if (!what.is_object() || type == "capacity" || type == "claimRef" || type == "nodeAffinity") {
      continue;
    }
    return fail("MountVolume.SetUp failed",
                cat("persistent volumes of type ", type, " are not supported by this node"));
  }
  return fail("MountVolume.SetUp failed", "the volume has no source");
}

PersistentVolumes::Outcome PersistentVolumes::mount_csi(const Value& pod,
                                                        const ClaimedVolume& claimed) {
  const Value& source = claimed.volume["spec"]["csi"];
  const std::string name(client::name_of(claimed.volume));
  const bool read_only = claimed.read_only || source["readOnly"].as_bool();
  auto made = csi_->set_up({pod, name, source, claimed.volume, read_only});
  Outcome out{{made.path, read_only}, std::move(made.failure), made.again};
  if (out.failure || !made.grows || read_only) return out;
  auto size = grow(pod, claimed, size_of_claim(claimed.claim));
  if (size) {
    out.size = std::move(*size);
  } else {
    out.failure = failure_of("MountVolume.Setup failed while expanding volume", name, size.error());
    out.failure->waits = size.error().code() == Code::timeout;
  }
  return out;
}

/// The volume may be this pod's: nobody else on the node has it, or others may as well.
bool PersistentVolumes::is_alone(const Value& volume, const std::string& pod_uid,
                                 std::string_view folder) const {
  if (!is_for_one_pod(volume)) return true;
  for (const auto& uid : names_in(cat(facts_.root, "/pods"))) {
    std::error_code error;
    const std::string other =
        cat(pod_folder(facts_, uid), '/', folder, '/', client::name_of(volume));
    if (uid != pod_uid && fs::exists(other, error)) return false;
  }
  return true;
}

PersistentVolumes::Outcome PersistentVolumes::use_host_path(const Value& pod, const Value& volume) {
  const Value& source = volume["spec"]["hostPath"];
  const auto name = client::name_of(volume);
  Outcome out;
  out.place.path = node_path(facts_, source["path"].as_string());
  const auto made = [&]() -> Result<> {
    if (!volume["spec"]["mountOptions"].empty()) {
      return Error::invalid("mount options are not supported for this volume type");
    }
    if (!is_alone(volume, uid_text(pod), kHostPath)) return Error::invalid(kInUse);
    DIBS_CHECK(
        make_folder(cat(pod_folder(facts_, uid_text(pod)), '/', kHostPath, '/', name), 0750));
    DIBS_CHECK(check_host_path(source, facts_));
    return prepare_host_path(source, facts_);
  }();
  if (!made) out.failure = failure_of("MountVolume.SetUp failed", name, made.error());
  return out;
}

PersistentVolumes::Outcome PersistentVolumes::mount_local(const Value& pod,
                                                          const ClaimedVolume& claimed) {
  const Value& volume = claimed.volume;
  const auto name = client::name_of(volume);
  const std::string path = node_path(facts_, volume["spec"]["local"]["path"].as_string());
  const std::string target = cat(pod_folder(facts_, uid_text(pod)), '/', kLocal, '/', name);
  Outcome out{{target, claimed.read_only}};
  if (auto made = make_provisioned(volume, path); !made) {
    out.failure = failure_of("MountVolume.SetUp failed", name, made.error());
    return out;
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    out.failure = failure_of("MountVolume.NewMounter initialization failed", name,
                             Error::invalid(cat("path ", quoted(path), " does not exist")));
    return out;
  }
  const auto made = [&]() -> Result<> {
    DIBS_CHECK(check_node_path(facts_, volume["spec"]["local"]["path"].as_string()));
    if (!S_ISDIR(info.st_mode)) {
      return Error::invalid(cat("path ", quoted(path),
                                " is no folder; this node mounts folders, and hands block devices "
                                "on as they are (volumeMode Block)"));
    }
    if (is_in_mount_table(target)) return success();
    if (!is_alone(volume, uid_text(pod), kLocal)) return Error::invalid(kInUse);
    DIBS_CHECK(make_folder(target, 0750));
    Result<> mounted = mount_bind(path, target, options_of(volume, claimed.read_only));
    if (mounted && !claimed.read_only) mounted = apply_group(pod, target);
    if (mounted) return mounted;
    // Else the next look would take it for done.
    DIBS_CHECK(unmount_below(target));
    DIBS_CHECK(remove_folder(target));
    return mounted;
  }();
  if (!made) out.failure = failure_of("MountVolume.SetUp failed", name, made.error());
  return out;
}

PersistentVolumes::Outcome PersistentVolumes::use_device(const Value& pod,
                                                         const ClaimedVolume& claimed) {
  const Value& volume = claimed.volume;
  const auto name = client::name_of(volume);
  const std::string path = node_path(facts_, volume["spec"]["local"]["path"].as_string());
  Outcome out{{path, claimed.read_only}};
  const auto made = [&]() -> Result<> {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return file_error("stat", path, errno);
    if (!S_ISBLK(info.st_mode)) {
      return Error::invalid(cat("path ", quoted(path), " is not a block device"));
    }
    if (!is_alone(volume, uid_text(pod), kLocalDevice)) return Error::invalid(kInUse);
    return make_folder(cat(pod_folder(facts_, uid_text(pod)), '/', kLocalDevice, '/', name), 0750);
  }();
  if (!made) out.failure = failure_of("MapVolume.SetUpDevice failed", name, made.error());
  return out;
}

VolumePlace PersistentVolumes::place(const std::string& pod_uid, const std::string& volume) const {
  const MutexLock lock(mutex_);
  const auto of_pod = known_.find(pod_uid);
  if (of_pod == known_.end()) return {};
  const auto found = of_pod->second.find(volume);
  return found == of_pod->second.end() ? VolumePlace() : found->second.place;
}

Result<> PersistentVolumes::tear_down(const std::string& pod_uid) {
  {
    const MutexLock lock(mutex_);
    const auto found = known_.find(pod_uid);
    if (found != known_.end()) {
      for (const auto& [name, known] : found->second) {
        if (known.growing) return Error::timeout(cat("volume ", name, " is being enlarged"));
      }
      known_.erase(found);
    }
  }
  const std::string folder = pod_folder(facts_, pod_uid);
  std::error_code error;
  if (facts_.simulated || !fs::exists(folder, error)) return success();
  // Parts of volumes, mounted on their own, keep them busy.
  DIBS_CHECK(unmount_below(cat(folder, "/volume-subpaths")));
  DIBS_CHECK(csi_->tear_down(pod_uid));
  for (const char* kind : {kLocal, kHostPath, kLocalDevice}) {
    DIBS_CHECK(remove_places(cat(folder, '/', kind)));
  }
  return success();
}

}  // namespace dibs::node
