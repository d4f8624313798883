#pragma once
// NVIDIA's management library (NVML) as C++ values.
//
// The library is part of NVIDIA's driver and is loaded at run time (dlopen), so that nothing of the
// vendor is needed to build, and a fake one (drivers/nvidia/fake) can stand in for it. Every
// function is looked up by its versioned name. Those that every driver since MIG has (R450) must be
// there; what came later is optional, and without it a method answers not_supported or falls back
// on the older function.
//
// GPUs are named by uuid, not by handle or index: a GPU that fell off the bus and came back has
// another handle and perhaps another index. Every method asks anew, so nothing here is stale.
//
// Errors are Result<>'s, with NVML's own code in them: code_of(error). In dibs's codes: what is not
// there is not_found, what is in use or used up conflict, a lost GPU unavailable, a lack of rights
// forbidden, an argument bad_request, everything else internal.
//
// Thread-safe, as NVML is. Calls may block for seconds (creating an instance, switching MIG).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace dibs::drivers::nvidia::nvml {

/// NVML's numbers.
enum class Code : int {
  ok = 0,
  uninitialized = 1,
  invalid_argument = 2,
  not_supported = 3,
  no_permission = 4,
  already_initialized = 5,
  not_found = 6,
  insufficient_size = 7,
  insufficient_power = 8,
  driver_not_loaded = 9,
  timeout = 10,
  irq_issue = 11,
  library_not_found = 12,
  function_not_found = 13,
  corrupted_inforom = 14,
  gpu_is_lost = 15,
  reset_required = 16,
  operating_system = 17,
  version_mismatch = 18,
  in_use = 19,
  memory = 20,
  no_data = 21,
  vgpu_ecc_not_supported = 22,
  insufficient_resources = 23,
  freq_not_supported = 24,
  argument_version_mismatch = 25,
  deprecated = 26,
  not_ready = 27,
  gpu_not_found = 28,
  invalid_state = 29,
  reset_type_not_supported = 30,
  unknown = 999,
};

/// "NVML_ERROR_IN_USE"
std::string_view name_of(Code code);
/// What NVML said; Code::unknown for an error that is not NVML's.
Code code_of(const Error& error);

struct GpuInfo {
  unsigned index = 0;
  /// /dev/nvidia<minor>
  unsigned minor = 0;
  std::string uuid = {};                // "GPU-…"
  std::string name = {};                // "NVIDIA H200"
  std::string brand = {};               // "Nvidia", "Tesla", …
  std::string architecture = {};        // "Hopper"
  std::string compute_capability = {};  // "9.0"
  /// As sysfs spells it: "0000:19:00.0".
  std::string pci_bus_id = {};
  /// Of the whole card, whatever instances there are.
  std::uint64_t memory_bytes = 0;
  bool mig_capable = false;
  bool mig_enabled = false;
  /// "HMM", "ATS", "None"; "" where driver or GPU does not say.
  std::string addressing_mode = {};
};

/// Memory slices from `start` on.
struct Placement {
  unsigned start = 0;
  unsigned size = 0;
  friend bool operator==(const Placement&, const Placement&) = default;
};

struct MigProfile {
  /// What `nvidia-smi mig -lgip` calls ID: 19 for 1g, 14 for 2g, 9 for 3g, 0 for 7g.
  unsigned id = 0;
  /// NVML_GPU_INSTANCE_PROFILE_…
  unsigned index = 0;
  std::string name = {};  // "1g.18gb", "1g.18gb+me"
  /// Compute slices.
  unsigned slices = 0;
  /// How many of them the GPU has room for when it is empty.
  unsigned instances = 0;
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg = 0;
  unsigned ofa = 0;
  std::uint64_t memory_bytes = 0;
  /// By start. All possible ones, taken or not.
  std::vector<Placement> placements = {};
};

/// Where there is no compute instance, or an event is of no instance.
inline constexpr unsigned kNoInstance = 0xffffffff;

struct MigInstance {
  unsigned gpu_instance = 0;
  /// kNoInstance: the GPU instance has none (yet, or its maker died in between).
  unsigned compute_instance = kNoInstance;
  /// MigProfile::id of the GPU instance.
  unsigned profile = 0;
  /// Of the GPU instance.
  Placement placement = {};
  /// "MIG-…"; "" without a compute instance.
  std::string uuid = {};
};

struct Utilization {
  /// Percent of the last sample period; nothing where NVML does not know (a GPU in MIG mode).
  std::optional<unsigned> gpu_percent = {};
  std::optional<unsigned> memory_percent = {};
  std::uint64_t memory_used = 0;
  std::uint64_t memory_total = 0;
};

struct RemappedRows {
  unsigned correctable = 0;
  unsigned uncorrectable = 0;
  /// A row waits for a reset of the GPU to be remapped.
  bool pending = false;
  /// A remapping failed once: the GPU is to be replaced.
  bool failed = false;
};

/// Errors since the driver was loaded, and since the card was made.
struct EccErrors {
  bool enabled = false;
  std::uint64_t corrected = 0;
  std::uint64_t uncorrected = 0;
  std::uint64_t corrected_ever = 0;
  std::uint64_t uncorrected_ever = 0;
};

struct NvLink {
  unsigned link = 0;
  bool active = false;
  unsigned version = 0;
  std::string remote_kind = {};        // "gpu", "switch", ""
  std::string remote_pci_bus_id = {};  // as GpuInfo's; "" where it is unknown
};

enum class ComputeMode : unsigned { normal = 0, prohibited = 2, exclusive_process = 3 };

enum class EventKind : std::uint8_t {
  xid,
  ecc_single,
  ecc_double,
  other,
};

struct Event {
  /// "" where the GPU is lost so far that it does not say its uuid any more.
  std::string gpu_uuid = {};
  EventKind kind = EventKind::other;
  /// The XID; NVML's event type for EventKind::other.
  std::uint64_t data = 0;
  std::optional<unsigned> gpu_instance = {};
  std::optional<unsigned> compute_instance = {};
};

/// Events from its making on. One thread waits at a time.
class EventSet {
 public:
  virtual ~EventSet() = default;
  /// Nothing when none came in time. Blocks in NVML. Code::gpu_is_lost: a watched GPU fell off the
  /// bus; make a new set.
  virtual Result<std::optional<Event>> wait(Duration timeout) = 0;
  /// GPUs of watch() that are not watched, as they know no events: uuid and why.
  virtual const std::vector<std::pair<std::string, std::string>>& unwatched() const = 0;
};

/// A GPU that does not tell about itself.
struct UnreadGpu {
  /// NVML's, where it is known by that alone.
  std::optional<unsigned> index = {};
  std::string uuid = {};
  Error error;
};

class Library {
 public:
  /// Loads and initializes. "": libnvidia-ml.so.1 as the loader finds it. The last one to go shuts
  /// NVML down. Code::library_not_found, Code::driver_not_loaded, Code::function_not_found with
  /// the names of what is missing.
  static Result<std::unique_ptr<Library>> open(const std::string& path = "");
  virtual ~Library() = default;

  virtual Result<std::string> driver_version() = 0;  // "580.95.05"
  virtual Result<std::string> cuda_version() = 0;    // "13.0", the newest that the driver can

  /// In the order of their index. One that does not tell its uuid is left out, and told to `unread`
  /// where that is not null.
  virtual Result<std::vector<std::string>> gpu_uuids(std::vector<UnreadGpu>* unread = nullptr) = 0;
  virtual Result<GpuInfo> gpu(const std::string& uuid) = 0;

  /// Empty for a GPU that knows no MIG. Does not need MIG mode to be on (R515 and later).
  virtual Result<std::vector<MigProfile>> mig_profiles(const std::string& uuid) = 0;
  /// By placement; one for each compute instance, and one for each GPU instance without any. Empty
  /// where MIG is off.
  virtual Result<std::vector<MigInstance>> mig_instances(const std::string& uuid) = 0;
  /// A GPU instance at exactly this place and the one compute instance that fills it. When the
  /// second half fails nothing is left; when the process dies in between the GPU instance is.
  /// Code::insufficient_resources: the place is taken.
  virtual Result<MigInstance> create_mig(const std::string& uuid, unsigned profile_id,
                                         Placement placement) = 0;
  /// Its compute instances, then itself. Success too when it is not there. Code::in_use: a process
  /// runs in it.
  virtual Result<> destroy_mig(const std::string& uuid, unsigned gpu_instance) = 0;
  /// Success too when it is so. Code::in_use: somebody uses the GPU. Code::reset_required: the mode
  /// is only taken on by a reset of the GPU (before Hopper).
  virtual Result<> set_mig_mode(const std::string& uuid, bool enabled) = 0;

  virtual Result<Utilization> utilization(const std::string& uuid) = 0;
  /// Memory of one instance; no percentages.
  virtual Result<Utilization> mig_utilization(const std::string& mig_uuid) = 0;
  virtual Result<RemappedRows> remapped_rows(const std::string& uuid) = 0;
  virtual Result<EccErrors> ecc_errors(const std::string& uuid) = 0;
  /// Those that the GPU has; empty without NVLink.
  virtual Result<std::vector<NvLink>> nvlinks(const std::string& uuid) = 0;

  virtual Result<ComputeMode> compute_mode(const std::string& uuid) = 0;
  virtual Result<> set_compute_mode(const std::string& uuid, ComputeMode mode) = 0;

  /// XIDs and ECC errors of these GPUs, as far as they tell them. May outlive the Library.
  virtual Result<std::unique_ptr<EventSet>> watch(const std::vector<std::string>& uuids) = 0;
};

}  // namespace dibs::drivers::nvidia::nvml
