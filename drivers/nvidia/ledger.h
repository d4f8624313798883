#pragma once
// What this driver has changed on the machine, and for whom, on disk: MIG instances, the MIG mode,
// time slices and compute modes of GPUs, MPS daemons.
//
// It is written before anything is changed, as an intent, and again once it is done. A process that
// is killed in between so leaves a claim that is `preparing`: whoever starts next, or prepares
// anything, takes back all that it may have got to (claims_handler.h). What is in no ledger is
// somebody else's and is never touched.
//
// The file is read on every use and replaced as a whole, so that two instances of a rolling update
// see one state; whoever uses it holds the claims' lock. docs/formats/nvidia-ledger.md shows its
// form.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/claim.h"
#include "drivers/nvidia/nvml/library.h"
#include "runtime/files.h"

namespace dibs::drivers::nvidia {

struct LedgerInstance {
  std::string device = {};
  std::string gpu = {};  // uuid
  unsigned profile = 0;
  nvml::Placement placement = {};
  /// GPU instances that were there when it was to be made: another one at this place is ours even
  /// where nobody lived to write down more.
  std::vector<unsigned> others = {};

  // Once it is made.
  std::optional<unsigned> gpu_instance = {};
  unsigned compute_instance = nvml::kNoInstance;
  std::string uuid = {};
};

/// An MPS control daemon, and all that it takes to start it again.
struct LedgerDaemon {
  std::string id = {};
  std::vector<std::string> devices = {};  // uuids
  std::optional<std::int64_t> active_thread_percentage = {};
  std::map<std::string, std::string> pinned_memory_limits = {};  // by uuid: "10240M"
};

struct LedgerClaim {
  driver::ClaimName id = {};
  bool ready = false;  // else: preparing
  /// Whole GPUs that it has for itself, by uuid.
  std::vector<std::string> gpus = {};
  std::vector<LedgerInstance> instances = {};
  /// GPUs whose time slice is not the default any more.
  std::vector<std::string> sliced = {};
  /// GPUs whose compute mode was changed for MPS.
  std::vector<std::string> exclusive = {};
  std::vector<LedgerDaemon> daemons = {};
};

struct Ledger {
  std::vector<LedgerClaim> claims = {};
  /// GPUs whose MIG mode this driver has switched, and what it was before.
  std::map<std::string, bool> modes = {};
  /// Instances of claims that are gone, on GPUs that were lost then.
  std::vector<LedgerInstance> orphans = {};

  LedgerClaim* find(std::string_view uid);
  void erase(std::string_view uid);
};

class LedgerFile {
 public:
  LedgerFile(runtime::Files& files, std::string path);

  /// A file that is not there is an empty ledger. One that cannot be read any more is put aside
  /// ("….unreadable") and empty, too: pods have to end, and what it named is from then on as if
  /// somebody else had made it. Errors: the disk's.
  Result<Ledger> read();
  Result<> write(const Ledger& ledger);

 private:
  runtime::Files& files_;
  std::string path_;
};

}  // namespace dibs::drivers::nvidia
