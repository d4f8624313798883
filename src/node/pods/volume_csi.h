#pragma once
// Volumes of storage drivers: staged once on the node, published for each pod, and taken back in
// the opposite order. volume_persistent.h says what lies where; the staged volume has a folder of
// its own, plugins/kubernetes.io/csi/DRIVER/HASH/globalmount.
//
// A pod's record is written before the volume is staged, so whatever is staged has a record that
// leads to it; the last pod's end takes it back. A volume that must be attached is first named
// among the node's volumesInUse, and staged when its VolumeAttachment says that it is attached.

#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "node/pods/volume_persistent.h"

namespace dibs::node {

/// A csi volume of a pod: of a PersistentVolume, or the pod's own (`volume` null).
struct CsiMount {
  const json::Value& pod;
  std::string name = {};  // the PersistentVolume's, or the volume's in the pod
  const json::Value& source;
  const json::Value& volume;
  bool read_only = false;
};

class CsiVolumes {
 public:
  /// All must outlive it.
  CsiVolumes(client::Client& client, runtime::Runtime& runtime, const NodeFacts& facts,
             VolumeTokens& tokens, const VolumeSurroundings& surroundings, VolumeTurns& turns);

  struct Made {
    std::string path = {};
    std::optional<VolumeFailure> failure = {};
    /// The driver wants to be asked again from time to time (requiresRepublish).
    bool again = false;
    /// It can enlarge what it has published.
    bool grows = false;
  };
  /// Idempotent, as drivers are.
  Made set_up(const CsiMount& mount);
  /// What is set up becomes as large as its volume. Errors are those of CsiDriver; `timeout`:
  /// another pod's turn.
  Result<> expand(const CsiMount& mount, std::int64_t bytes);
  Result<> tear_down(const std::string& pod_uid);

 private:
  struct Record;
  struct Work;

  Made make(const CsiMount& mount, CsiDriver& driver, const json::Value& settings);
  Result<> ready(Work& work);
  Result<> stage(Work& work);
  Result<> publish(Work& work);
  Result<> attached(Work& work);
  Result<> add_tokens(Work& work);
  Result<std::map<std::string, std::string>> secret(const json::Value& reference,
                                                    std::string_view fallback);
  Result<json::Value> driver_settings(const std::string& driver);
  Result<> take_back(const Record& record);
  Result<> unstage(CsiDriver& driver, const Record& record);

  Record record_of(const CsiMount& mount, bool attach) const;
  static CsiVolume volume_of(const CsiMount& mount, const Record& record);
  std::string attachment_name(const Record& record) const;
  std::string target_of(const Record& record) const;
  std::string staging_of(const Record& record) const;
  Result<std::vector<Record>> records_of(const std::string& pod_uid) const;
  bool is_used_elsewhere(const Record& record) const;
  /// Tells which attached volumes are in use: those of all records.
  void report() const;
  /// True for the first two minutes of a wait.
  bool may_wait(const std::string& folder);
  void waited(const std::string& folder);

  client::Client& client_;
  runtime::Runtime& runtime_;
  const NodeFacts& facts_;
  VolumeTokens& tokens_;
  const VolumeSurroundings& surroundings_;
  VolumeTurns& turns_;
  Mutex mutex_;
  std::map<std::string, Duration> waiting_since_ DIBS_GUARDED_BY(mutex_);  // by record folder
};

}  // namespace dibs::node
