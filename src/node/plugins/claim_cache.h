#pragma once
// What this node knows about the claims of its pods, in memory and in the checkpoint file.
//
// An entry is there from before the first call to a driver until after the last, so that whatever
// happens in between, somebody knows whom to tell. Entries are the kubelet's: its file is read and
// written (docs/formats/dra-checkpoint.md).
//
// Thread-safe: `mutex` guards the entries, and is never held while the file is written.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "json/value.h"
#include "node/plugins/pod_claims.h"
#include "runtime/files.h"

namespace dibs::node {

struct DriverState {
  std::vector<PreparedDevice> devices = {};
  /// Calls that this driver does not want for the claim.
  std::vector<std::string> skip = {};

  bool skips(std::string_view operation) const;
};

/// A driver's own data in a claim of the classic model.
struct ClassicHandle {
  std::string driver = {};
  std::string data = {};
  json::Value structured = {};
};

struct ClaimInfo {
  std::string uid = {};
  std::string name = {};
  std::string name_space = {};
  std::set<std::string> pods = {};  // uids
  std::map<std::string, DriverState> drivers = {};
  bool classic = false;
  std::string class_name = {};
  std::vector<ClassicHandle> handles = {};

  // Not in the file: after a restart drivers are asked again.
  bool prepared = false;
  /// The last pod is leaving; nobody may join any more.
  bool unpreparing = false;
};

/// The file's content, and back. Errors say what is wrong with it.
std::string encode_checkpoint(const std::vector<const ClaimInfo*>& claims);
/// As the kubelet begins: a list that is not there.
std::string empty_checkpoint();
Result<std::vector<ClaimInfo>> decode_checkpoint(std::string_view text);

class ClaimCache {
 public:
  using Entries = std::map<std::string, ClaimInfo>;  // by "namespace/name"

  /// Reads the file, or writes an empty one. `files` must outlive the cache.
  static Result<std::unique_ptr<ClaimCache>> open(std::string path, runtime::Files& files);

  Mutex mutex;
  Entries entries DIBS_GUARDED_BY(mutex);

  /// There is something to write.
  void changed() DIBS_REQUIRES(mutex) { ++version_; }
  /// Everything that was changed before is in the file when it returns. Callers at the same time
  /// share one write.
  Result<> persist() DIBS_EXCLUDES(mutex);

 private:
  ClaimCache(std::string path, runtime::Files& files) : path_(std::move(path)), files_(files) {}

  const std::string path_;
  runtime::Files& files_;
  std::uint64_t version_ DIBS_GUARDED_BY(mutex) = 0;
  /// Held while the file is written, for that is what it is for: one write at a time.
  Mutex write_mutex_;
  std::uint64_t written_ DIBS_GUARDED_BY(write_mutex_) = 0;
};

}  // namespace dibs::node
