#pragma once
// The GPUs that there are, and were: what is published, and what claims can have.
//
// A GPU that does not answer any more stays, with what was known of it, until it comes back or
// another one takes its number: who has it, has it still. It is lost where NVML says so, or does
// not name it any more; one that cannot be read for another reason is left as it was. Thread-safe;
// NVML is asked without a lock held.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/nvidia/health.h"
#include "drivers/nvidia/inventory.h"
#include "drivers/nvidia/ledger.h"
#include "drivers/nvidia/parts.h"
#include "drivers/nvidia/slices.h"

namespace dibs::drivers::nvidia {

class KnownGpus {
 public:
  KnownGpus(std::string pool, MigMode mode);

  struct Found {
    Part part = {};
    KnownGpu gpu = {};
  };

  /// Takes over what is there now; `ledger` tells which instances are this driver's. Whether what
  /// is published changed.
  bool update(Inventory inventory, const Ledger& ledger, Health& health, Time now);

  SlicesInput all() const;
  /// Nothing where no part has that name.
  std::optional<Found> find(const std::string& device) const;
  /// The part that a MIG instance is; "" where none is.
  std::string device_of(const std::string& gpu_uuid, const nvml::MigInstance& instance) const;
  /// Of those that answer.
  std::vector<std::string> uuids(const Health& health) const;

 private:
  const MigMode mode_;
  mutable Mutex mutex_;
  SlicesInput all_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::drivers::nvidia
