#include "node/pods/volumes.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>

#include "base/mutex.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "client/gate.h"
#include "node/pods/env.h"
#include "node/pods/node_paths.h"
#include "node/pods/pod_certificates.h"
#include "node/pods/pod_resources.h"
#include "node/pods/trust_anchors.h"
#include "node/pods/volume_files.h"
#include "node/pods/volume_host.h"
#include "node/pods/volume_payload.h"
#include "node/pods/volume_subpath.h"
#include "node/pods/volume_tokens.h"
#include "node/pods/volume_writer.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

constexpr std::size_t kMaxTermination = 4096;
/// As often as a kubelet looks at a pod that nothing happened to.
constexpr Duration kAnchorsAgain = std::chrono::seconds(60);

struct VolumeKind {
  const char* key;     // in the spec
  const char* folder;  // under volumes/, with the volume's name below it
  bool in_memory;      // secrets never reach a disk
  bool read_only;
};
constexpr VolumeKind kKinds[] = {
    {"emptyDir", "kubernetes.io~empty-dir", false, false},
    {"configMap", "kubernetes.io~configmap", false, true},
    {"secret", "kubernetes.io~secret", true, true},
    {"downwardAPI", "kubernetes.io~downward-api", true, true},
    {"projected", "kubernetes.io~projected", true, true},
};

const VolumeKind* kind_of(const Value& volume) {
  for (const auto& kind : kKinds) {
    if (volume[kind.key].is_object()) return &kind;
  }
  return nullptr;
}

/// Volumes that no container mounts are not made.
std::set<std::string> used_volumes(const Value& pod) {
  std::set<std::string> used;
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      for (const auto& mount : container["volumeMounts"].items()) used.insert(mount["name"].str());
      for (const auto& device : container["volumeDevices"].items()) {
        used.insert(device["name"].str());
      }
    }
  }
  return used;
}

std::optional<std::int64_t> group_of(const Value& pod) {
  const Value& group = pod["spec"]["securityContext"]["fsGroup"];
  return group.is_integer() ? std::optional(group.as_int()) : std::nullopt;
}

const Value& find_volume(const Value& pod, std::string_view name) {
  for (const auto& volume : pod["spec"]["volumes"].items()) {
    if (volume["name"].as_string() == name) return volume;
  }
  return json::null_value();
}

/// The bound on what a memory volume may take: its own limit, what the pod's containers may use in
/// all when each has a limit, and what the node has.
std::int64_t memory_bound(const Value& pod, const Value& spec, const NodeFacts& facts) {
  std::int64_t bound = facts.memory_bytes;
  const auto lower = [&](std::int64_t amount) {
    if (amount > 0 && (bound <= 0 || amount < bound)) bound = amount;
  };
  std::int64_t sum = 0;
  bool all = true;
  for (const auto& container : pod["spec"]["containers"].items()) {
    const Value& limit = container["resources"]["limits"]["memory"];
    sum = sum_of(sum, amount_of(limit, "memory"));
    all = all && limit.is_string();
  }
  if (all) lower(sum);
  lower(amount_of(spec["sizeLimit"], "memory"));
  return bound;
}

Propagation propagation_of(const Value& mount) {
  const auto text = mount["mountPropagation"].as_string();
  if (text == "Bidirectional") return Propagation::bidirectional;
  if (text == "HostToContainer") return Propagation::host_to_container;
  return Propagation::none;
}

}  // namespace

struct Volumes::State : std::enable_shared_from_this<Volumes::State> {
  State(client::Client& client, runtime::Runtime& world, PodObjects& known, const NodeFacts& node,
        VolumeSurroundings surroundings)
      : api(client),
        runtime(world),
        objects(known),
        facts(node),
        tokens(client, world),
        certificates(client, world, certificate_options(node, surroundings)),
        persistent(client, world, node, tokens, std::move(surroundings)) {}

  static PodCertificatesOptions certificate_options(const NodeFacts& node,
                                                    const VolumeSurroundings& surroundings) {
    PodCertificatesOptions options;
    options.node_name = node.name;
    if (surroundings.event) {
      options.warn = [event = surroundings.event](const Value& pod, std::string reason,
                                                  std::string note) {
        event(pod, true, std::move(reason), std::move(note));
      };
    }
    return options;
  }

  client::Client& api;
  runtime::Runtime& runtime;
  PodObjects& objects;
  const NodeFacts& facts;
  VolumeTokens tokens;
  PodCertificates certificates;
  PersistentVolumes persistent;
  client::Gate gate;

  Mutex mutex;
  struct Renewal {
    Time at;
    runtime::TimerId timer;
  };
  std::function<void(const std::string&)> due DIBS_GUARDED_BY(mutex);
  std::map<std::string, Renewal> renewals DIBS_GUARDED_BY(mutex);  // by pod uid

  std::string folder(const Value& pod) const {
    return pod_folder(facts, pod["metadata"]["uid"].str());
  }

  VolumePlace place_of(const Value& pod, const Value& volume) const {
    if (PersistentVolumes::owns(volume)) {
      return persistent.place(pod["metadata"]["uid"].str(), volume["name"].str());
    }
    const VolumeKind* kind = kind_of(volume);
    return {path_of(pod, volume), kind != nullptr && kind->read_only};
  }

  std::string path_of(const Value& pod, const Value& volume) const {
    if (volume["hostPath"].is_object())
      return node_path(facts, volume["hostPath"]["path"].as_string());
    const VolumeKind* kind = kind_of(volume);
    if (kind == nullptr) return {};
    return cat(folder(pod), "/volumes/", kind->folder, '/', volume["name"].as_string());
  }

  PayloadSources sources(const Value& pod) {
    PodAddresses addresses;
    for (const auto& ip : pod["status"]["podIPs"].items()) {
      addresses.pod_ips.push_back(ip["ip"].str());
    }
    addresses.host_ips = facts.addresses;
    return {objects,
            facts,
            addresses,
            [this, &pod](const Value& source) { return token(pod, source); },
            [this](const Value& source) { return anchors(source); },
            [this, &pod](const std::string& volume, std::size_t index, const Value& source) {
              return certificate(pod, volume, index, source);
            }};
  }

  Result<PodCredential> certificate(const Value& pod, const std::string& volume, std::size_t index,
                                    const Value& source) {
    if (facts.simulated) return PodCredential();
    return certificates.get(pod, volume, index, source);
  }

  Result<std::string> anchors(const Value& source) {
    if (facts.simulated) return std::string();
    return trust_anchors(api, source);
  }

  Result<std::string> token(const Value& pod, const Value& source) {
    // Nobody reads it, and a signature costs more than all the rest of a simulated pod.
    if (facts.simulated) return std::string();
    return tokens.get(pod, source);
  }

  Result<> set_up(const Value& pod, const Value& volume) {
    if (volume["hostPath"].is_object()) {
      return facts.simulated ? success() : check_host_path(volume["hostPath"], facts);
    }
    if (has_payload(volume)) {
      DIBS_TRY(auto files, volume_payload(pod, volume, sources(pod)));
      return facts.simulated ? success() : write_payload(pod, volume, files);
    }
    if (volume["emptyDir"].is_object()) {
      return facts.simulated ? success() : make_empty(pod, volume);
    }
    // Mounted with each container by the runtime, once it is here.
    if (volume["image"].is_object()) return success();
    for (const auto& [key, what] : volume.members()) {
      if (key == "name" || !what.is_object()) continue;
      return Error::invalid(cat("volumes of type ", key, " are not supported by this node"));
    }
    return Error::invalid("the volume has no source");
  }

  Result<> write_payload(const Value& pod, const Value& volume, const VolumeFiles& files) {
    const std::string path = path_of(pod, volume);
    DIBS_CHECK(make_folder(path, 0777));
    if (kind_of(volume)->in_memory && !is_mounted(path)) {
      // Where mounting is not allowed, the files are on the disk, and go with the pod all the same.
      (void)mount_memory(path, memory_bound(pod, Value(), facts));
    }
    VolumeWrite how;
    how.group = group_of(pod);
    how.now = runtime.clock.now();
    DIBS_CHECK(write_volume(path, files, how));
    return success();
  }

  Result<> make_empty(const Value& pod, const Value& volume) {
    const std::string path = path_of(pod, volume);
    const auto medium = volume["emptyDir"]["medium"].as_string();
    if (!medium.empty() && medium != "Memory") {
      return Error::invalid(cat("emptyDir of medium ", medium, " is not supported by this node"));
    }
    std::error_code error;
    const bool fresh = !fs::exists(path, error);
    DIBS_CHECK(make_folder(path, 0777));
    if (medium == "Memory") {
      if (is_mounted(path)) return success();
      DIBS_CHECK(mount_memory(path, memory_bound(pod, volume["emptyDir"], facts)));
    } else if (!fresh) {
      return success();
    }
    if (const auto group = group_of(pod)) return give_to_group(path, *group, false);
    return success();
  }

  /// Asks for another set_up() when the first token gets old, or certificates may be.
  void arm(const std::string& uid, bool has_anchors) {
    auto next = tokens.next_renewal(uid);
    const auto add = [&next](Time at) { next = next ? std::min(*next, at) : at; };
    if (const auto look = certificates.next_look(uid)) add(*look);
    if (has_anchors && !facts.simulated) add(runtime.clock.now() + kAnchorsAgain);
    if (!next) return;
    const MutexLock lock(mutex);
    if (const auto set = renewals.find(uid); set != renewals.end()) {
      if (set->second.at == *next) return;
      runtime.timers.cancel(set->second.timer);
    }
    const Duration wait = std::max<Duration>(*next - runtime.clock.now(), std::chrono::seconds(1));
    const std::weak_ptr<State> weak = weak_from_this();
    const auto timer = runtime.timers.after(wait, [weak, uid] {
      if (const auto self = weak.lock()) self->tell_due(uid);
    });
    renewals[uid] = {*next, timer};
  }

  void disarm(const std::string& uid) {
    const MutexLock lock(mutex);
    const auto at = renewals.find(uid);
    if (at == renewals.end()) return;
    runtime.timers.cancel(at->second.timer);
    renewals.erase(at);
  }

  void tell_due(const std::string& uid) {
    {
      const MutexLock lock(mutex);
      renewals.erase(uid);
    }
    tell(uid);
  }

  void tell(const std::string& uid) {
    client::GateEntry inside(gate);
    if (!inside) return;
    std::function<void(const std::string&)> listener;
    {
      const MutexLock lock(mutex);
      listener = due;
    }
    if (listener) listener(uid);
  }
};

Volumes::Volumes(client::Client& client, runtime::Runtime& runtime, PodObjects& objects,
                 const NodeFacts& facts, VolumeSurroundings surroundings)
    : state_(std::make_shared<State>(client, runtime, objects, facts, std::move(surroundings))) {}

Volumes::~Volumes() {
  state_->gate.close();
  const MutexLock lock(state_->mutex);
  for (const auto& [uid, renewal] : state_->renewals) {
    state_->runtime.timers.cancel(renewal.timer);
  }
}

std::vector<VolumeFailure> Volumes::set_up(const Value& pod) {
  std::vector<VolumeFailure> failures;
  const std::string uid = pod["metadata"]["uid"].str();
  state_->objects.retain(pod);
  const auto used = used_volumes(pod);
  for (const auto& volume : pod["spec"]["volumes"].items()) {
    const std::string name = volume["name"].str();
    if (used.count(name) == 0) continue;
    if (PersistentVolumes::owns(volume)) {
      if (auto failure = state_->persistent.set_up(pod, volume)) {
        failures.push_back(std::move(*failure));
      }
      continue;
    }
    if (auto made = state_->set_up(pod, volume); !made) {
      failures.push_back({name, cat("MountVolume.SetUp failed for volume ", quoted(name), " : ",
                                    made.error().message())});
    }
  }
  state_->arm(uid, wants_trust_anchors(pod));
  return failures;
}

Result<std::vector<Mount>> Volumes::mounts(
    const Value& pod, const Value& container,
    const std::vector<std::pair<std::string, std::string>>& env, const VolumeImages& images) {
  std::vector<Mount> out;
  if (state_->facts.simulated) return out;
  const std::string name = container["name"].str();
  std::size_t index = 0;
  for (const auto& mount : container["volumeMounts"].items()) {
    const std::string volume_name = mount["name"].str();
    const Value& volume = find_volume(pod, volume_name);
    if (volume.is_null()) {
      return Error::invalid(cat("cannot find volume ", quoted(volume_name),
                                " to mount into container ", quoted(name)));
    }
    std::string sub = mount["subPath"].str();
    if (mount["subPathExpr"].is_string() && !mount["subPathExpr"].as_string().empty()) {
      DIBS_TRY(sub, expand_strictly(mount["subPathExpr"].as_string(), env));
    }
    if (!sub.empty()) DIBS_CHECK(check_sub_path(sub));

    Mount made;
    made.container_path = mount["mountPath"].str();
    if (!made.container_path.starts_with('/')) made.container_path.insert(0, "/");
    if (const auto image = images.find(volume_name); image != images.end()) {
      made.image = image->second;
      made.image_path = std::move(sub);
      made.read_only = true;
      out.push_back(std::move(made));
      ++index;
      continue;
    }
    VolumePlace place = state_->place_of(pod, volume);
    if (place.path.empty()) {
      return Error::invalid(cat("volume ", quoted(volume_name), " is not mounted"));
    }
    made.host_path = std::move(place.path);
    made.read_only = mount["readOnly"].as_bool() || place.read_only;
    made.propagation = propagation_of(mount);
    if (volume["hostPath"].is_object()) {
      DIBS_CHECK(prepare_host_path(volume["hostPath"], state_->facts));
    }
    if (made.propagation == Propagation::bidirectional) {
      DIBS_CHECK(share_mounts(state_->facts, made.host_path));
    }
    if (!sub.empty()) {
      SubPath part{
          made.host_path, sub,
          cat(state_->folder(pod), "/volume-subpaths/", volume_name, '/', name, '/', index)};
      auto bound = bind_sub_path(part);
      if (!bound) {
        return Error(bound.error().code(),
                     cat("failed to prepare subPath for volumeMount ", quoted(volume_name),
                         " of container ", quoted(name)));
      }
      made.host_path = std::move(*bound);
    }
    out.push_back(std::move(made));
    ++index;
  }
  return out;
}

Result<std::vector<HostDevice>> Volumes::devices(const Value& pod, const Value& container) {
  std::vector<HostDevice> out;
  if (state_->facts.simulated) return out;
  for (const auto& device : container["volumeDevices"].items()) {
    const VolumePlace place = state_->place_of(pod, find_volume(pod, device["name"].as_string()));
    if (place.path.empty()) {
      return Error::invalid(cat("volume ", quoted(device["name"].as_string()), " is no device"));
    }
    out.push_back({device["devicePath"].str(), place.path, place.read_only ? "rm" : "rwm"});
  }
  return out;
}

Result<std::string> Volumes::hosts_file(const Value& pod, const std::vector<std::string>& pod_ips) {
  if (state_->facts.simulated || pod_ips.empty()) return std::string();
  const std::string path = cat(state_->folder(pod), "/etc-hosts");
  DIBS_CHECK(make_folder(state_->folder(pod), 0750));
  DIBS_CHECK(write_file(path, hosts_content(pod, pod_ips, state_->facts), 0644));
  return path;
}

Result<std::string> Volumes::termination_file(const Value& pod, std::string_view container,
                                              unsigned attempt) {
  if (state_->facts.simulated) return std::string();
  const std::string folder = cat(state_->folder(pod), "/containers/", container);
  DIBS_CHECK(make_folder(folder, 0750));
  const std::string path = cat(folder, "/termination-", attempt);
  DIBS_CHECK(write_file(path, "", 0666));
  return path;
}

std::string Volumes::termination_message(const std::string& pod_uid, std::string_view container,
                                         unsigned attempt) {
  if (state_->facts.simulated) return {};
  const auto text = read_file(
      cat(pod_folder(state_->facts, pod_uid), "/containers/", container, "/termination-", attempt),
      kMaxTermination);
  return text.value_or("");
}

Result<> Volumes::unmount(const std::string& pod_uid) {
  return pod_uid.empty() ? success() : state_->persistent.tear_down(pod_uid);
}

Result<> Volumes::tear_down(const std::string& pod_uid) {
  DIBS_CHECK(unmount(pod_uid));
  state_->disarm(pod_uid);
  state_->tokens.forget(pod_uid);
  state_->certificates.forget(pod_uid);
  state_->objects.release(pod_uid);
  if (state_->facts.simulated || pod_uid.empty()) return success();
  const std::string folder = pod_folder(state_->facts, pod_uid);
  std::error_code error;
  if (!fs::exists(folder, error)) return success();
  DIBS_CHECK(unmount_below(folder));
  return remove_tree(folder);
}

std::vector<std::string> Volumes::pods_on_disk() const {
  std::vector<std::string> uids;
  if (state_->facts.simulated) return uids;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cat(state_->facts.root, "/pods"), error)) {
    uids.push_back(entry.path().filename().string());
  }
  std::sort(uids.begin(), uids.end());
  return uids;
}

std::string Volumes::certificate_metrics() const { return state_->certificates.metrics(); }

void Volumes::on_due(std::function<void(const std::string&)> due) {
  {
    const MutexLock lock(state_->mutex);
    state_->due = due;
  }
  state_->certificates.on_change([weak = std::weak_ptr<State>(state_)](const std::string& uid) {
    if (const auto self = weak.lock()) self->tell(uid);
  });
  state_->objects.on_change(std::move(due));
}

}  // namespace dibs::node
