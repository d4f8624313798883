#pragma once
// Volumes that outlive their pod: those behind claims (hostPath, local, csi), and csi volumes that
// a pod names itself.
//
// What is mounted for a pod lies below its folder, as the kubelet has it:
//
//   volumes/kubernetes.io~csi/PV/vol_data.json    which driver, which volume: written before the
//   volumes/kubernetes.io~csi/PV/mount            driver is asked for anything, removed last
//   volumes/kubernetes.io~local-volume/PV         the folder itself, mounted
//   volumes/kubernetes.io~host-path/PV            empty: says that the pod has it
//   volumeDevices/kubernetes.io~local-volume/PV   likewise, of a block device
//
// So the disk alone tells what is to undo. Contents are never removed here: only empty folders and
// files with names of our own are, so that a mount that should not be there keeps its data.
//
// One pod at a time works on a volume; who comes second is told to wait, without blocking.
// Calls block and may come from any thread.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/quantity.h"
#include "base/result.h"
#include "client/client.h"
#include "client/gate.h"
#include "json/value.h"
#include "node/plugins/csi_drivers.h"
#include "node/pods/node_facts.h"
#include "node/pods/volume_claim.h"
#include "node/pods/volume_tokens.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct VolumeFailure {
  std::string volume = {};
  /// The note of a FailedMount event: MountVolume.SetUp failed for volume "v" : ….
  std::string message = {};
  /// Somebody else is at work on it: no event, look again soon.
  bool waits = false;
};

/// What volumes need of the rest of the node. Without drivers csi volumes wait.
struct VolumeSurroundings {
  CsiDrivers* drivers = nullptr;
  /// The Node object, or null.
  std::function<json::Value()> node = {};
  /// Told the names of attached volumes that are in use, for status.volumesInUse.
  std::function<void(std::vector<std::string> names)> in_use = {};
  /// An event about an object: a pod, or its claim.
  std::function<void(const json::Value& object, bool warning, std::string reason, std::string note)>
      event = {};
};

/// Where a volume is on this machine, once it is set up.
struct VolumePlace {
  std::string path = {};
  bool read_only = false;
};

/// Who works on what. Thread-safe.
class VolumeTurns {
 public:
  /// Held while it lives; false when somebody else has it.
  class Turn {
   public:
    Turn(VolumeTurns& turns, std::string key);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return held_; }

   private:
    VolumeTurns& turns_;
    const std::string key_;
    bool held_ = false;
  };

 private:
  Mutex mutex_;
  std::set<std::string> busy_ DIBS_GUARDED_BY(mutex_);
};

inline constexpr const char* kInUse =
    "volume uses the ReadWriteOncePod access mode and is already in use by another pod";

/// Gives the volume at `path` to the pod's fsGroup, if it has one and the policy wants it.
Result<> apply_group(const json::Value& pod, const std::string& path);
/// An empty folder; success where there is none. Never its contents.
Result<> remove_folder(const std::string& path);

class CsiVolumes;

class PersistentVolumes {
 public:
  /// All must outlive it.
  PersistentVolumes(client::Client& client, runtime::Runtime& runtime, const NodeFacts& facts,
                    VolumeTokens& tokens, VolumeSurroundings surroundings);
  ~PersistentVolumes();

  /// The volume's source is one of those here.
  static bool owns(const json::Value& volume);
  /// The folders below volumes/ whose contents are not the pod's own.
  static bool is_folder_of_others(std::string_view name);

  /// Nothing: it is there.
  std::optional<VolumeFailure> set_up(const json::Value& pod, const json::Value& volume);
  VolumePlace place(const std::string& pod_uid, const std::string& volume) const;
  /// Success when nothing of the pod is mounted any more. Errors: timeout, while a volume of it is
  /// being enlarged.
  Result<> tear_down(const std::string& pod_uid);

 private:
  struct Outcome {
    VolumePlace place = {};
    std::optional<VolumeFailure> failure = {};
    /// It wants to be set up again from time to time.
    bool again = false;
    /// The size that it has here, of one that can grow.
    std::optional<Quantity> size = {};
  };
  struct Known {
    VolumePlace place = {};
    std::optional<Time> again = {};
    std::optional<Quantity> size = {};
    Time looked = {};
    bool growing = false;  // somebody is at follow_growth()
  };
  Outcome find_and_mount(const json::Value& pod, const json::Value& volume);
  Outcome mount(const json::Value& pod, const ClaimedVolume& claimed);
  Outcome mount_csi(const json::Value& pod, const ClaimedVolume& claimed);
  /// Looks whether the volume grew under a pod that has it, and tells of what comes of that. A
  /// driver may take minutes for it, so whoever looks after the pod does not wait.
  void follow_growth_later(const json::Value& pod, const json::Value& volume, const Known& known);
  void follow_growth(const json::Value& pod, const json::Value& volume, Known known);
  /// Enlarges what is smaller here than its claim may have. The size that it has then.
  Result<Quantity> grow(const json::Value& pod, const ClaimedVolume& claimed, const Quantity& here);
  Result<json::Value> patch_claim(const json::Value& claim, const json::Value& patch);
  Outcome use_host_path(const json::Value& pod, const json::Value& persistent_volume);
  Outcome mount_local(const json::Value& pod, const ClaimedVolume& claimed);
  Outcome use_device(const json::Value& pod, const ClaimedVolume& claimed);
  bool is_alone(const json::Value& persistent_volume, const std::string& pod_uid,
                std::string_view folder) const;

  client::Client& client_;
  runtime::Runtime& runtime_;
  const NodeFacts& facts_;
  const VolumeSurroundings surroundings_;
  VolumeTurns turns_;
  const std::unique_ptr<CsiVolumes> csi_;
  mutable Mutex mutex_;
  /// By pod uid, then by the volume's name in the pod.
  std::map<std::string, std::map<std::string, Known>> known_ DIBS_GUARDED_BY(mutex_);
  /// Of what runs beside calls. Tasks that come too late hold it.
  const std::shared_ptr<client::Gate> gate_ = std::make_shared<client::Gate>();
};

}  // namespace dibs::node
