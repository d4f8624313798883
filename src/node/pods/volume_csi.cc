#include "node/pods/volume_csi.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/sha256.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/volume_files.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

const client::Gvr kDrivers{"storage.k8s.io", "v1", "csidrivers"};
const client::Gvr kAttachments{"storage.k8s.io", "v1", "volumeattachments"};
const client::Gvr kNodes{"", "v1", "nodes"};
const client::Gvr kSecrets{"", "v1", "secrets"};

constexpr const char* kFolder = "volumes/kubernetes.io~csi";
constexpr const char* kRecordFile = "vol_data.json";
constexpr std::size_t kMaxRecord = 1 << 20;
/// How long an attachment may take before an event tells of it.
constexpr Duration kPatience = std::chrono::seconds(123);

/// Not an error: what is waited for has not come yet.
Error wait_for(std::string what) { return Error::timeout(std::move(what)); }
bool waits(const Error& error) { return error.code() == Code::timeout; }

Error csi_error(std::string_view what, const Error& error) {
  return {error.code(), cat("kubernetes.io/csi: ", what, ": ", error.message())};
}

std::map<std::string, std::string> texts_of(const Value& object) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : object.members()) out[std::string(key)] = value.str();
  return out;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    out.push_back(entry.path().filename().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<> remove_file(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return success();
  return file_error("unlink", path, errno);
}

/// The record in a folder, and the folder. What an agent that died while writing left goes first.
Result<> remove_record(const std::string& folder) {
  for (const auto& file : names_in(folder)) {
    if (file != kRecordFile && file.starts_with(kRecordFile)) {
      DIBS_CHECK(remove_file(cat(folder, '/', file)));
    }
  }
  DIBS_CHECK(remove_file(cat(folder, '/', kRecordFile)));
  return remove_folder(folder);
}

/// Where a driver left a mount point, a folder or (of a block volume) a file, none of which is
/// mounted any more.
Result<> remove_target(const std::string& path) {
  if (is_in_mount_table(path)) {
    return Error::unavailable(cat(path, " is still mounted, though its driver says it is not"));
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return success();
  return S_ISDIR(info.st_mode) ? remove_folder(path) : remove_file(path);
}

/// The driver has no such volume any more: it was taken back before, by an agent that died before
/// it could write that down. That nothing is mounted is looked at all the same.
bool is_unknown(const Result<>& done) { return !done && done.error().code() == Code::not_found; }

/// How the driver wants fsGroup: File, None, or for volumes of one node with a file system.
bool wants_group(const Value& settings, const CsiVolume& volume, const Value& persistent) {
  const auto policy = settings["spec"]["fsGroupPolicy"].as_string("ReadWriteOnceWithFSType");
  if (policy == "None" || volume.read_only || volume.block) return false;
  if (policy == "File") return true;
  if (volume.fs_type.empty()) return false;
  if (persistent.is_null()) return true;
  const auto modes = persistent["spec"]["accessModes"].items();
  return std::any_of(modes.begin(), modes.end(), [](const Value& mode) {
    return mode.as_string() == "ReadWriteOnce" || mode.as_string() == "ReadWriteOncePod";
  });
}

std::string modes_text(const Value& modes) {
  std::string out = "[";
  for (const Value& mode : modes.items()) {
    if (out.size() > 1) out += ' ';
    out += quoted(mode.as_string());
  }
  return out + "]";
}

}  // namespace

/// What a pod's vol_data.json says.
struct CsiVolumes::Record {
  std::string uid;
  std::string name;
  std::string driver;
  std::string handle;
  bool persistent = true;
  bool attach = false;
  bool block = false;
  std::string folder;  // where it lies

  std::string file() const { return cat(folder, '/', kRecordFile); }
  /// As status.volumesInUse names it.
  std::string unique_name() const { return cat("kubernetes.io/csi/", driver, '^', handle); }
  bool same_volume(const Record& other) const {
    return driver == other.driver && handle == other.handle && block == other.block;
  }
};

struct CsiVolumes::Work {
  const CsiMount& mount;
  CsiDriver& driver;
  const Value& settings;  // the CSIDriver object, or null
  Record record;
  CsiAbilities able = {};
  CsiVolume volume = {};
  const char* step = "MountVolume.MountDevice failed";
};

CsiVolumes::CsiVolumes(client::Client& client, runtime::Runtime& runtime, const NodeFacts& facts,
                       VolumeTokens& tokens, const VolumeSurroundings& surroundings,
                       VolumeTurns& turns)
    : client_(client),
      runtime_(runtime),
      facts_(facts),
      tokens_(tokens),
      surroundings_(surroundings),
      turns_(turns) {
  if (!facts_.simulated) report();
}

CsiVolumes::Record CsiVolumes::record_of(const CsiMount& mount, bool attach) const {
  Record out;
  out.uid = client::uid_of(mount.pod);
  out.name = mount.name;
  out.driver = mount.source["driver"].str();
  out.persistent = !mount.volume.is_null();
  out.handle = out.persistent ? mount.source["volumeHandle"].str()
                              : cat("csi-", sha256_hex(cat(out.uid, out.name)));
  out.attach = attach;
  out.block = mount.volume["spec"]["volumeMode"].as_string() == "Block";
  out.folder = cat(pod_folder(facts_, out.uid), '/', kFolder, '/', out.name);
  return out;
}

std::string CsiVolumes::target_of(const Record& record) const {
  if (!record.block) return cat(record.folder, "/mount");
  return cat(facts_.root, "/plugins/kubernetes.io/csi/volumeDevices/publish/", record.name, '/',
             record.uid);
}

std::string CsiVolumes::staging_of(const Record& record) const {
  const std::string plugin = cat(facts_.root, "/plugins/kubernetes.io/csi/");
  if (record.block) return cat(plugin, "volumeDevices/staging/", record.name);
  return cat(plugin, record.driver, '/', sha256_hex(record.handle), "/globalmount");
}

Result<Value> CsiVolumes::driver_settings(const std::string& driver) {
  auto found = client_.get(kDrivers, "", driver);
  if (found || found.error().code() != Code::not_found) return found;
  return Value();
}

Result<std::map<std::string, std::string>> CsiVolumes::secret(const Value& reference,
                                                              std::string_view fallback) {
  std::map<std::string, std::string> out;
  if (!reference.is_object()) return out;
  const auto name_space = reference["namespace"].as_string(fallback);
  DIBS_TRY(const Value found, client_.get(kSecrets, name_space, reference["name"].as_string()));
  for (const auto& [key, value] : found["data"].members()) {
    if (!base64_decode(value.as_string(), out[std::string(key)])) {
      return Error::invalid(cat("secret ", name_space, '/', reference["name"].as_string(),
                                ": data[", key, "] is no base64"));
    }
  }
  return out;
}

CsiVolumes::Made CsiVolumes::set_up(const CsiMount& mount) {
  const std::string name = mount.source["driver"].str();
  const bool persistent = !mount.volume.is_null();
  Made out;
  const auto fail = [&](const char* step, const Error& error) {
    out.failure = {mount.name,
                   cat(step, " for volume ", quoted(mount.name), " : ", error.message()),
                   waits(error)};
    return out;
  };
  const Record record = record_of(mount, false);
  Result<std::shared_ptr<CsiDriver>> driver =
      surroundings_.drivers == nullptr
          ? Error::unavailable(
                cat("driver name ", name, " not found in the list of registered CSI drivers"))
          : surroundings_.drivers->find(name);
  if (!driver) {
    fail(persistent ? "MountVolume.MountDevice failed" : "MountVolume.SetUp failed",
         csi_error(persistent ? "attacher.MountDevice failed to create newCsiDriverClient"
                              : "mounter.SetUpAt failed to get CSI client",
                   driver.error()));
    // After a start of the agent it comes back in a moment: the volume is there.
    std::error_code error;
    out.failure->waits = fs::exists(record.file(), error) && may_wait(record.folder);
    return out;
  }
  const auto settings = driver_settings(name);
  if (!settings) return fail("MountVolume.SetUp failed", settings.error());
  const char* lifecycle = persistent ? "Persistent" : "Ephemeral";
  const Value& modes = (*settings)["spec"]["volumeLifecycleModes"];
  const auto listed = modes.items();
  const bool fits = settings->is_null()
                        ? persistent
                        : std::any_of(listed.begin(), listed.end(), [&](const Value& mode) {
                            return mode.as_string() == lifecycle;
                          });
  if (!fits) {
    return fail("MountVolume.SetUp failed",
                Error::invalid(
                    cat("kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: "
                        "volume mode ",
                        quoted(lifecycle), " not supported by driver ", name,
                        settings->is_null() ? std::string(" (no CSIDriver object)")
                                            : cat(" (only supports ", modes_text(modes), ")"))));
  }
  const VolumeTurns::Turn turn(turns_, record.unique_name());
  if (!turn) return fail("MountVolume.SetUp failed", wait_for("another pod's turn"));
  return make(mount, **driver, *settings);
}

CsiVolumes::Made CsiVolumes::make(const CsiMount& mount, CsiDriver& driver, const Value& settings) {
  const bool persistent = !mount.volume.is_null();
  const bool attach = persistent && settings["spec"]["attachRequired"].as_bool(true);
  Work work{mount, driver, settings, record_of(mount, attach)};
  Made out{target_of(work.record), {}, settings["spec"]["requiresRepublish"].as_bool()};
  Result<> done = ready(work);
  if (done) done = publish(work);
  if (done) {
    waited(work.record.folder);
    out.grows = persistent && work.able.expand;
    return out;
  }
  const bool silent = waits(done.error()) && may_wait(work.record.folder);
  out.failure = {mount.name,
                 cat(work.step, " for volume ", quoted(mount.name), " : ", done.error().message()),
                 silent};
  return out;
}

/// Everything that comes before the pod has it: record, attachment, staging.
Result<> CsiVolumes::ready(Work& work) {
  const Record& record = work.record;
  const Value& modes = work.mount.volume["spec"]["accessModes"];
  if (modes.size() == 1 && modes[0].as_string() == "ReadWriteOncePod" &&
      is_used_elsewhere(record)) {
    work.step = "MountVolume.SetUp failed";
    return Error::invalid(kInUse);
  }
  DIBS_TRY(work.able, work.driver.abilities());
  work.volume = volume_of(work.mount, record);

  DIBS_CHECK(make_folder(record.folder, 0750));
  Value said =
      Value::object({{"specVolID", record.name},
                     {"volumeHandle", record.handle},
                     {"driverName", record.driver},
                     {"nodeName", facts_.name},
                     {"attachmentID", attachment_name(record)},
                     {"volumeLifecycleMode", record.persistent ? "Persistent" : "Ephemeral"},
                     {"attached", record.attach ? "true" : "false"},
                     {"volumeMode", record.block ? "Block" : "Filesystem"}});
  DIBS_CHECK(runtime::system_files().write(record.file(), json::write(said)));
  if (record.attach) {
    report();
    DIBS_CHECK(attached(work));
  }
  return record.persistent && work.able.stage ? stage(work) : success();
}

CsiVolume CsiVolumes::volume_of(const CsiMount& mount, const Record& record) {
  CsiVolume out;
  out.id = record.handle;
  out.block = record.block;
  out.read_only = mount.read_only;
  out.fs_type = mount.source["fsType"].str();
  out.context = texts_of(mount.source["volumeAttributes"]);
  const Value& modes = mount.volume["spec"]["accessModes"];
  if (record.persistent && !modes.empty()) out.access_mode = modes[0].str();
  for (const Value& option : mount.volume["spec"]["mountOptions"].items()) {
    out.mount_options.push_back(option.str());
  }
  const Value& group = mount.pod["spec"]["securityContext"]["fsGroup"];
  if (group.is_integer()) out.group = group.as_int();
  return out;
}

Result<> CsiVolumes::expand(const CsiMount& mount, std::int64_t bytes) {
  const Record record = record_of(mount, false);
  const VolumeTurns::Turn turn(turns_, record.unique_name());
  if (!turn) return wait_for("another pod's turn");
  if (surroundings_.drivers == nullptr) return Error::unavailable("no storage drivers here");
  const auto driver = surroundings_.drivers->find(record.driver);
  // It may come back.
  if (!driver) return Error::unavailable(driver.error().message());
  DIBS_TRY(const CsiAbilities able, (*driver)->abilities());
  CsiVolume volume = volume_of(mount, record);
  auto secrets = secret(mount.source["nodeExpandSecretRef"], "");
  if (!secrets) {
    return Error::unavailable(
        cat("failed to get NodeExpandSecretRef: ", secrets.error().message()));
  }
  volume.secrets = std::move(*secrets);
  return (*driver)->expand(volume, able, able.stage ? staging_of(record) : "", target_of(record),
                           bytes);
}

std::string CsiVolumes::attachment_name(const Record& record) const {
  return cat("csi-", sha256_hex(cat(record.handle, record.driver, facts_.name)));
}

Result<> CsiVolumes::attached(Work& work) {
  const Record& record = work.record;
  const std::string name = record.unique_name();
  DIBS_TRY(const Value node, client_.get(kNodes, "", facts_.name));
  // Only what stands there is safe from being detached.
  const auto in_use = node["status"]["volumesInUse"].items();
  if (std::none_of(in_use.begin(), in_use.end(),
                   [&](const Value& one) { return one.as_string() == name; })) {
    return wait_for(
        "volume has not been added to the list of VolumesInUse in the node's volume status");
  }
  const auto attached = node["status"]["volumesAttached"].items();
  if (std::none_of(attached.begin(), attached.end(),
                   [&](const Value& one) { return one["name"].as_string() == name; })) {
    return wait_for("volume is not yet attached according to node status");
  }
  const auto found = client_.get(kAttachments, "", attachment_name(record));
  if (!found) return found.error();
  const Value& status = (*found)["status"];
  if (!(*found)["metadata"]["deletionTimestamp"].is_null()) {
    return wait_for("volume attachment is being deleted");
  }
  if (!status["attached"].as_bool()) {
    const auto why = status["attachError"]["message"].as_string();
    return wait_for(why.empty() ? "volume is not yet attached" : std::string(why));
  }
  work.volume.publish_context = texts_of(status["attachmentMetadata"]);
  return success();
}

Result<> CsiVolumes::stage(Work& work) {
  const Record& record = work.record;
  const std::string staging = staging_of(record);
  auto secrets = secret(work.mount.source["nodeStageSecretRef"], "");
  if (!secrets) return secrets.error().within("fetching NodeStageSecretRef failed");
  work.volume.secrets = std::move(*secrets);
  DIBS_CHECK(make_folder(staging, 0750));
  if (!record.block) {
    const Value said =
        Value::object({{"volumeHandle", record.handle}, {"driverName", record.driver}});
    DIBS_CHECK(runtime::system_files().write(
        cat(staging.substr(0, staging.rfind('/')), '/', kRecordFile), json::write(said)));
  }
  return work.driver.stage(work.volume, work.able, staging);
}

Result<> CsiVolumes::add_tokens(Work& work) {
  const Value& settings = work.settings["spec"];
  const Value& wanted = settings["tokenRequests"];
  if (wanted.empty()) return success();
  Value tokens = Value::object();
  for (const Value& one : wanted.items()) {
    DIBS_TRY(const auto token, tokens_.get_with_end(work.mount.pod, one));
    tokens.set(one["audience"].as_string(),
               Value::object({{"token", token.first},
                              {"expirationTimestamp", format_rfc3339(token.second)}}));
  }
  auto& into = settings["serviceAccountTokenInSecrets"].as_bool() ? work.volume.secrets
                                                                  : work.volume.context;
  into["csi.storage.k8s.io/serviceAccount.tokens"] = json::write(tokens);
  return success();
}

Result<> CsiVolumes::publish(Work& work) {
  const Record& record = work.record;
  const Value& pod = work.mount.pod;
  work.step = record.block ? "MapVolume.MapPodDevice failed" : "MountVolume.SetUp failed";
  auto secrets = secret(work.mount.source["nodePublishSecretRef"], client::namespace_of(pod));
  if (!secrets) return secrets.error().within("fetching NodePublishSecretRef failed");
  work.volume.secrets = std::move(*secrets);
  if (work.settings["spec"]["podInfoOnMount"].as_bool()) {
    auto& context = work.volume.context;
    context["csi.storage.k8s.io/pod.name"] = client::name_of(pod);
    context["csi.storage.k8s.io/pod.namespace"] = client::namespace_of(pod);
    context["csi.storage.k8s.io/pod.uid"] = record.uid;
    context["csi.storage.k8s.io/serviceAccount.name"] = pod["spec"]["serviceAccountName"].str();
    context["csi.storage.k8s.io/ephemeral"] = record.persistent ? "false" : "true";
  }
  DIBS_CHECK(add_tokens(work));
  const std::string target = target_of(record);
  DIBS_CHECK(make_folder(target.substr(0, target.rfind('/')), 0750));
  const bool staged = record.persistent && work.able.stage;
  DIBS_CHECK(work.driver.publish(work.volume, work.able, staged ? staging_of(record) : "", target));
  if (record.block) {
    struct stat info {};
    if (::stat(target.c_str(), &info) == 0 && S_ISBLK(info.st_mode)) return success();
    return Error::invalid(cat("driver ", record.driver, " published no block device at ", target));
  }
  const Value& volume = work.mount.volume;
  if (work.able.mount_group || !wants_group(work.settings, work.volume, volume)) return success();
  if (auto given = apply_group(pod, target); !given) {
    return given.error().within(cat("applyFSGroup failed for vol ", record.handle));
  }
  return success();
}

Result<std::vector<CsiVolumes::Record>> CsiVolumes::records_of(const std::string& pod_uid) const {
  std::vector<Record> out;
  const std::string folder = cat(pod_folder(facts_, pod_uid), '/', kFolder);
  for (const auto& name : names_in(folder)) {
    Record record;
    record.uid = pod_uid;
    record.name = name;
    record.folder = cat(folder, '/', name);
    const auto text = read_file(record.file(), kMaxRecord);
    // The folder is made before its record, and goes after it: nothing is asked of a driver then.
    if (!text) continue;
    const auto said = json::parse(*text);
    record.driver = said ? (*said)["driverName"].str() : std::string();
    record.handle = said ? (*said)["volumeHandle"].str() : std::string();
    if (record.driver.empty() || record.handle.empty()) {
      return Error::invalid(
          cat(record.file(), ": damaged; unmount what is below it by hand, then remove it"));
    }
    record.persistent = (*said)["volumeLifecycleMode"].as_string() != "Ephemeral";
    record.attach = (*said)["attached"].as_string() == "true";
    record.block = (*said)["volumeMode"].as_string() == "Block";
    out.push_back(std::move(record));
  }
  return out;
}

bool CsiVolumes::is_used_elsewhere(const Record& record) const {
  for (const auto& uid : names_in(cat(facts_.root, "/pods"))) {
    if (uid == record.uid) continue;
    const auto others = records_of(uid);
    // One that cannot be read may be of this volume.
    if (!others) return true;
    if (std::any_of(others->begin(), others->end(),
                    [&](const Record& other) { return other.same_volume(record); })) {
      return true;
    }
  }
  return false;
}

Result<> CsiVolumes::tear_down(const std::string& pod_uid) {
  const std::string folder = cat(pod_folder(facts_, pod_uid), '/', kFolder);
  std::error_code error;
  if (!fs::exists(folder, error)) return success();
  DIBS_TRY(const auto records, records_of(pod_uid));
  Result<> all = success();
  for (const auto& record : records) {
    if (auto gone = take_back(record); !gone) all = gone;
  }
  DIBS_CHECK(all);
  // Of an agent that died before its record was whole.
  for (const auto& name : names_in(folder)) DIBS_CHECK(remove_record(cat(folder, '/', name)));
  return remove_folder(folder);
}

Result<> CsiVolumes::take_back(const Record& record) {
  const VolumeTurns::Turn turn(turns_, record.unique_name());
  if (!turn) return wait_for(cat("volume ", record.name, " is being worked on"));
  if (surroundings_.drivers == nullptr) return Error::unavailable("no storage drivers here");
  const auto driver = surroundings_.drivers->find(record.driver);
  if (!driver) {
    return csi_error("Unmounter.TearDownAt failed to get CSI client", driver.error());
  }
  const std::string target = target_of(record);
  if (auto gone = (*driver)->unpublish(record.handle, target); !gone && !is_unknown(gone)) {
    return csi_error("Unmounter.TearDownAt failed", gone.error());
  }
  DIBS_CHECK(remove_target(target));
  if (record.persistent && !is_used_elsewhere(record)) {
    DIBS_CHECK(unstage(**driver, record));
    if (record.block) DIBS_CHECK(remove_folder(target.substr(0, target.rfind('/'))));
  }
  DIBS_CHECK(remove_record(record.folder));
  waited(record.folder);
  if (record.attach) report();
  return success();
}

Result<> CsiVolumes::unstage(CsiDriver& driver, const Record& record) {
  const std::string staging = staging_of(record);
  std::error_code error;
  if (!fs::exists(staging, error)) return success();
  DIBS_TRY(const auto able, driver.abilities());
  if (able.stage) {
    if (auto gone = driver.unstage(record.handle, staging); !gone && !is_unknown(gone)) {
      return csi_error("attacher.UnmountDevice failed", gone.error());
    }
  }
  DIBS_CHECK(remove_target(staging));
  if (record.block) return success();
  return remove_record(staging.substr(0, staging.rfind('/')));
}

void CsiVolumes::report() const {
  if (!surroundings_.in_use) return;
  std::set<std::string> names;
  for (const auto& uid : names_in(cat(facts_.root, "/pods"))) {
    const auto records = records_of(uid);
    if (!records) continue;
    for (const auto& record : *records) {
      if (record.attach) names.insert(record.unique_name());
    }
  }
  surroundings_.in_use({names.begin(), names.end()});
}

bool CsiVolumes::may_wait(const std::string& folder) {
  const Duration now = runtime_.clock.steady();
  const MutexLock lock(mutex_);
  return now - waiting_since_.emplace(folder, now).first->second < kPatience;
}

void CsiVolumes::waited(const std::string& folder) {
  const MutexLock lock(mutex_);
  waiting_since_.erase(folder);
}

}  // namespace dibs::node
