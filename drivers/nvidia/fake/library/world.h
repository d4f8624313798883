#pragma once
// The state of the loaded library: NVML's functions take no object, so there is one in a process.
// It begins with nvmlInit and ends with the last nvmlShutdown. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "drivers/nvidia/fake/machine_files.h"
#include "drivers/nvidia/nvml/abi.h"
#include "drivers/nvidia/nvml/library.h"

namespace dibs::drivers::nvidia::fake {

namespace abi = nvml::abi;

enum class Kind : std::uint8_t { gpu, gpu_instance, compute_instance, mig };

/// What a handle stands for. Handles are addresses of these and stay what they are as long as the
/// library is initialized: an instance that is made anew has another serial, so another handle.
struct Handle {
  Kind kind = Kind::gpu;
  std::size_t gpu = 0;
  std::uint64_t gpu_instance = 0;
  std::uint64_t compute_instance = 0;
  friend auto operator<=>(const Handle&, const Handle&) = default;
};

/// What an event set watches and was told.
struct Watched {
  Mutex mutex;
  std::map<std::size_t, unsigned long long> types DIBS_GUARDED_BY(mutex);
  std::set<std::string> told DIBS_GUARDED_BY(mutex);
};

class World {
 public:
  static World& get();

  abi::Return init();
  abi::Return shutdown();
  /// Null before init.
  std::shared_ptr<MachineFiles> files();

  void* handle_of(const Handle& what);
  /// Nothing for what is no handle of this kind.
  std::optional<Handle> what_is(const void* handle, Kind kind);

  abi::EventSet add_set();
  std::shared_ptr<Watched> find_set(abi::EventSet set);
  bool remove_set(abi::EventSet set);
  /// By an event set of this process.
  bool is_watched(std::size_t gpu);

 private:
  World() = default;

  Mutex mutex_;
  int users_ DIBS_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<MachineFiles> files_ DIBS_GUARDED_BY(mutex_);
  std::map<Handle, std::unique_ptr<Handle>> handles_ DIBS_GUARDED_BY(mutex_);
  std::set<const void*> known_ DIBS_GUARDED_BY(mutex_);
  std::map<const void*, std::shared_ptr<Watched>> sets_ DIBS_GUARDED_BY(mutex_);
};

constexpr abi::Return number(nvml::Code code) { return static_cast<abi::Return>(code); }

/// Does `work` with the faults that are told for the function `name` and, where it is about one,
/// the GPU. UNINITIALIZED before init, GPU_IS_LOST where the GPU is.
abi::Return call(std::string_view name, std::optional<std::size_t> gpu,
                 const std::function<abi::Return(MachineFiles&)>& work);

/// The file that describes the machine: DIBS_FAKE_NVML, or fake-nvml.yaml beside the library.
std::string machine_path();

}  // namespace dibs::drivers::nvidia::fake
