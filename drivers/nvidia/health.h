#pragma once
// What is known to be wrong with GPUs and their instances, by what the library told.
//
// A mark is a taint of the devices that it is about. Those of a GPU are those of all its parts,
// too.
//
//   gpu.nvidia.com/xid=<n>        the GPU's driver reported an error; NoSchedule, or None where it
//   is
//                                 the fault of a program
//   gpu.nvidia.com/gpu-lost       the GPU does not answer any more; NoSchedule
//   gpu.nvidia.com/ecc=double-bit memory had an error that could not be corrected; NoSchedule
//   gpu.nvidia.com/row-remap=pending, =failed   a broken row of memory waits for a reset of the
//   GPU,
//                                 or cannot be replaced; NoSchedule
//   gpu.nvidia.com/unmonitored    no errors are told of it; None
//
// A mark stays until the GPU was lost and came back, as it does by a reset, until the instance that
// it is about is destroyed, or until the driver starts anew; the rows' follows what the GPU says.
//
// Thread-safe.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "driver/driver.h"
#include "drivers/nvidia/nvml/library.h"
#include "drivers/nvidia/parts.h"

namespace dibs::drivers::nvidia {

struct Mark {
  std::string key = {};
  std::string value = {};
  std::string effect = {};
  std::string message = {};
  Time since = {};
};

class Health {
 public:
  /// XIDs besides those of programs that make no device unfit.
  explicit Health(std::set<std::uint64_t> harmless_xids = {});

  // All of them tell whether something changed.

  /// `device`: the part that an event of an instance is about; "": the whole GPU.
  bool saw(const nvml::Event& event, const std::string& device, Time now);
  bool set_lost(const std::string& gpu_uuid, bool lost, Time now);
  bool set_rows(const std::string& gpu_uuid, const nvml::RemappedRows& rows, Time now);
  bool set_unmonitored(const std::string& gpu_uuid, const std::string& why, Time now);
  /// A new instance has none of the faults of the last one there.
  bool forget_device(const std::string& device);

  bool is_lost(const std::string& gpu_uuid) const;
  std::vector<Mark> marks_of(const Part& part) const;
  driver::DeviceHealth health_of(const std::string& pool, const Part& part) const;

 private:
  using Marks = std::map<std::string, Mark>;  // by key
  bool put(Marks& marks, Mark mark) DIBS_REQUIRES(mutex_);

  std::set<std::uint64_t> harmless_;
  mutable Mutex mutex_;
  std::map<std::string, Marks> gpus_ DIBS_GUARDED_BY(mutex_);     // by uuid
  std::map<std::string, Marks> devices_ DIBS_GUARDED_BY(mutex_);  // by name of a part
};

}  // namespace dibs::drivers::nvidia
