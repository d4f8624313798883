#pragma once
// The fake machine's files together: the description, which is read once, and state and faults,
// which are read anew when they have changed. It knows neither handles nor processes; library and
// tool share it.
//
// Thread-safe, and safe against other processes.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "drivers/nvidia/fake/faults.h"
#include "drivers/nvidia/fake/files.h"
#include "drivers/nvidia/fake/machine.h"
#include "drivers/nvidia/fake/state.h"

namespace dibs::drivers::nvidia::fake {

/// Beside the machine file.
std::string state_path(const std::string& machine_path);
std::string faults_path(const std::string& machine_path);

/// The machine at one moment. Valid as long as the MachineFiles live.
struct Snapshot {
  const Machine& machine;
  std::shared_ptr<const State> state;
  std::shared_ptr<const Faults> faults;

  /// In the order of NVML's indices: all GPUs but those that are gone.
  std::vector<std::size_t> present() const;
};

class MachineFiles {
 public:
  /// Links are followed, so that all who name the file have one state.
  static Result<std::shared_ptr<MachineFiles>> open(const std::string& path);

  const Machine& machine() const { return machine_; }
  const std::string& path() const { return path_; }
  /// A file that is broken counts as it last was, and is told to stderr.
  Snapshot look();
  /// Changes the state and makes the laid-out folder follow (root.h). What `change` answers other
  /// than 0 is answered, and nothing is changed. UNKNOWN where the file cannot be written.
  nvml::abi::Return change(const std::function<nvml::abi::Return(State&)>& change);
  /// As above, in the words of the caller.
  Result<> change_or_tell(const std::function<Result<>(State&)>& change);

 private:
  MachineFiles(std::string path, Machine machine);

  const std::string path_;
  const Machine machine_;
  Mutex mutex_;
  Stamp state_stamp_ DIBS_GUARDED_BY(mutex_);
  Stamp faults_stamp_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<const State> state_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<const Faults> faults_ DIBS_GUARDED_BY(mutex_);
};

}  // namespace dibs::drivers::nvidia::fake
