#pragma once
// NVML's C interface, as far as it is used: numbers, structures, functions.
//
// These are facts of NVIDIA's nvml.h (API version 13; unchanged since they came), declared anew so
// that nothing of the vendor is needed to build. Two sides include it: the Library, which looks the
// functions up by name, and the fake library, which defines them. Sizes and offsets are asserted
// below, since a structure that grew would be written past its end.
//
// A versioned structure carries its own size and number in its first field (version_of), by which
// the library tells which one it was handed.

#include <cstddef>

namespace dibs::drivers::nvidia::nvml::abi {

/// nvmlReturn_t; nvml::Code has the names.
using Return = int;

struct DeviceTag;
struct GpuInstanceTag;
struct ComputeInstanceTag;
struct EventSetTag;
using Device = DeviceTag*;
using GpuInstance = GpuInstanceTag*;
using ComputeInstance = ComputeInstanceTag*;
using EventSet = EventSetTag*;

inline constexpr unsigned kUuidSize = 96;     // NVML_DEVICE_UUID_V2_BUFFER_SIZE
inline constexpr unsigned kNameSize = 96;     // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned kVersionSize = 80;  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
inline constexpr unsigned kMaxLinks = 36;     // NVML_NVLINK_MAX_LINKS

inline constexpr unsigned kGpuInstanceProfiles = 0x12;      // NVML_GPU_INSTANCE_PROFILE_COUNT
inline constexpr unsigned kComputeInstanceProfiles = 0x09;  // NVML_COMPUTE_INSTANCE_PROFILE_COUNT
/// Of nvmlEventData_t, where an event is of no instance.
inline constexpr unsigned kNoInstanceId = 0xffffffff;

// nvmlEventType…
inline constexpr unsigned long long kEventSingleBitEcc = 0x1;
inline constexpr unsigned long long kEventDoubleBitEcc = 0x2;
inline constexpr unsigned long long kEventXid = 0x8;

inline constexpr unsigned kMigDisable = 0;
inline constexpr unsigned kMigEnable = 1;

/// nvmlMemoryErrorType_t, nvmlEccCounterType_t
inline constexpr int kErrorCorrected = 0;
inline constexpr int kErrorUncorrected = 1;
inline constexpr int kEccVolatile = 0;
inline constexpr int kEccAggregate = 1;

/// nvmlIntNvLinkDeviceType_t
inline constexpr int kLinkToGpu = 0;
inline constexpr int kLinkToSwitch = 2;
inline constexpr int kLinkToUnknown = 0xff;

/// NVML_DEVICE_ARCH_UNKNOWN
inline constexpr unsigned kArchitectureUnknown = 0xffffffff;

template <typename T>
constexpr unsigned version_of(unsigned number) {
  return static_cast<unsigned>(sizeof(T)) | (number << 24U);
}

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct Utilization {
  unsigned gpu;
  unsigned memory;
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct MemoryV2 {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};

struct AddressingModeV1 {
  unsigned version;
  unsigned value;
};

struct EventData {
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Placement {
  unsigned start;
  unsigned size;
};

struct GpuInstanceProfile {
  unsigned id;
  unsigned p2p;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
  unsigned long long memory_mb;
};

struct GpuInstanceProfileV2 {
  unsigned version;
  unsigned id;
  unsigned p2p;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
  unsigned long long memory_mb;
  char name[kNameSize];
};

/// V2 without p2p, which became one of the capabilities.
struct GpuInstanceProfileV3 {
  unsigned version;
  unsigned id;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned copy_engines;
  unsigned decoders;
  unsigned encoders;
  unsigned jpeg;
  unsigned ofa;
  unsigned long long memory_mb;
  char name[kNameSize];
  unsigned capabilities;
};

struct GpuInstanceInfo {
  Device device;
  unsigned id;
  unsigned profile_id;
  Placement placement;
};

struct ComputeInstanceProfile {
  unsigned id;
  unsigned slices;
  unsigned instances;
  unsigned multiprocessors;
  unsigned shared_copy_engines;
  unsigned shared_decoders;
  unsigned shared_encoders;
  unsigned shared_jpeg;
  unsigned shared_ofa;
};

struct ComputeInstanceInfo {
  Device device;
  GpuInstance gpu_instance;
  unsigned id;
  unsigned profile_id;
  Placement placement;
};

struct DeviceAttributes {
  unsigned multiprocessors;
  unsigned shared_copy_engines;
  unsigned shared_decoders;
  unsigned shared_encoders;
  unsigned shared_jpeg;
  unsigned shared_ofa;
  unsigned gpu_instance_slices;
  unsigned compute_instance_slices;
  unsigned long long memory_mb;
};

static_assert(sizeof(void*) == 8, "the layouts below are those of 64 bits");
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);
static_assert(sizeof(Utilization) == 8 && sizeof(Memory) == 24);
static_assert(sizeof(MemoryV2) == 40 && offsetof(MemoryV2, total) == 8);
static_assert(sizeof(EventData) == 32 && offsetof(EventData, gpu_instance) == 24);
static_assert(sizeof(GpuInstanceProfile) == 48 && offsetof(GpuInstanceProfile, memory_mb) == 40);
static_assert(sizeof(GpuInstanceProfileV2) == 152 && offsetof(GpuInstanceProfileV2, name) == 56);
static_assert(sizeof(GpuInstanceProfileV3) == 152 && offsetof(GpuInstanceProfileV3, name) == 48);
static_assert(sizeof(GpuInstanceInfo) == 24 && sizeof(ComputeInstanceInfo) == 32);
static_assert(sizeof(ComputeInstanceProfile) == 36);
static_assert(sizeof(DeviceAttributes) == 40 && offsetof(DeviceAttributes, memory_mb) == 32);
static_assert(version_of<MemoryV2>(2) == 0x02000028);
static_assert(version_of<AddressingModeV1>(1) == 0x01000008);
static_assert(version_of<GpuInstanceProfileV2>(2) == 0x02000098);
static_assert(version_of<GpuInstanceProfileV3>(3) == 0x03000098);

}  // namespace dibs::drivers::nvidia::nvml::abi

// X(required, name, arguments): every function that is used. Those that are not required came after
// R450, the first driver with MIG.
#define DIBS_NVML_FUNCTIONS(X)                                                                     \
  X(true, nvmlInit_v2, ())                                                                         \
  X(true, nvmlShutdown, ())                                                                        \
  X(true, nvmlSystemGetDriverVersion, (char* version, unsigned length))                            \
  X(true, nvmlSystemGetCudaDriverVersion_v2, (int* version))                                       \
  X(true, nvmlDeviceGetCount_v2, (unsigned* count))                                                \
  X(true, nvmlDeviceGetHandleByIndex_v2, (unsigned index, abi::Device* device))                    \
  X(true, nvmlDeviceGetHandleByUUID, (const char* uuid, abi::Device* device))                      \
  X(true, nvmlDeviceGetIndex, (abi::Device device, unsigned* index))                               \
  X(true, nvmlDeviceGetUUID, (abi::Device device, char* uuid, unsigned length))                    \
  X(true, nvmlDeviceGetName, (abi::Device device, char* name, unsigned length))                    \
  X(true, nvmlDeviceGetBrand, (abi::Device device, int* brand))                                    \
  X(true, nvmlDeviceGetMinorNumber, (abi::Device device, unsigned* minor))                         \
  X(true, nvmlDeviceGetPciInfo_v3, (abi::Device device, abi::PciInfo * pci))                       \
  X(true, nvmlDeviceGetCudaComputeCapability, (abi::Device device, int* major, int* minor))        \
  X(true, nvmlDeviceGetMemoryInfo, (abi::Device device, abi::Memory * memory))                     \
  X(true, nvmlDeviceGetUtilizationRates, (abi::Device device, abi::Utilization * utilization))     \
  X(true, nvmlDeviceGetComputeMode, (abi::Device device, int* mode))                               \
  X(true, nvmlDeviceSetComputeMode, (abi::Device device, int mode))                                \
  X(true, nvmlDeviceGetEccMode, (abi::Device device, int* current, int* pending))                  \
  X(true, nvmlDeviceGetTotalEccErrors,                                                             \
    (abi::Device device, int error_type, int counter_type, unsigned long long* count))             \
  X(true, nvmlDeviceGetNvLinkState, (abi::Device device, unsigned link, int* active))              \
  X(true, nvmlDeviceGetNvLinkVersion, (abi::Device device, unsigned link, unsigned* version))      \
  X(true, nvmlDeviceGetNvLinkRemotePciInfo_v2,                                                     \
    (abi::Device device, unsigned link, abi::PciInfo* pci))                                        \
  X(true, nvmlDeviceGetSupportedEventTypes, (abi::Device device, unsigned long long* types))       \
  X(true, nvmlDeviceRegisterEvents,                                                                \
    (abi::Device device, unsigned long long types, abi::EventSet set))                             \
  X(true, nvmlEventSetCreate, (abi::EventSet * set))                                               \
  X(true, nvmlEventSetFree, (abi::EventSet set))                                                   \
  X(true, nvmlDeviceGetMigMode, (abi::Device device, unsigned* current, unsigned* pending))        \
  X(true, nvmlDeviceSetMigMode, (abi::Device device, unsigned mode, abi::Return* activation))      \
  X(true, nvmlDeviceGetGpuInstanceProfileInfo,                                                     \
    (abi::Device device, unsigned profile, abi::GpuInstanceProfile* info))                         \
  X(true, nvmlDeviceGetGpuInstances,                                                               \
    (abi::Device device, unsigned profile_id, abi::GpuInstance* instances, unsigned* count))       \
  X(true, nvmlDeviceGetGpuInstanceById,                                                            \
    (abi::Device device, unsigned id, abi::GpuInstance* instance))                                 \
  X(true, nvmlGpuInstanceGetInfo, (abi::GpuInstance instance, abi::GpuInstanceInfo * info))        \
  X(true, nvmlGpuInstanceDestroy, (abi::GpuInstance instance))                                     \
  X(true, nvmlGpuInstanceGetComputeInstanceProfileInfo,                                            \
    (abi::GpuInstance instance, unsigned profile, unsigned engines,                                \
     abi::ComputeInstanceProfile* info))                                                           \
  X(true, nvmlGpuInstanceCreateComputeInstance,                                                    \
    (abi::GpuInstance instance, unsigned profile_id, abi::ComputeInstance* made))                  \
  X(true, nvmlGpuInstanceGetComputeInstances,                                                      \
    (abi::GpuInstance instance, unsigned profile_id, abi::ComputeInstance* found,                  \
     unsigned* count))                                                                             \
  X(true, nvmlComputeInstanceDestroy, (abi::ComputeInstance instance))                             \
  X(true, nvmlDeviceGetMaxMigDeviceCount, (abi::Device device, unsigned* count))                   \
  X(true, nvmlDeviceGetMigDeviceHandleByIndex,                                                     \
    (abi::Device device, unsigned index, abi::Device* mig))                                        \
  X(true, nvmlDeviceGetGpuInstanceId, (abi::Device device, unsigned* id))                          \
  X(true, nvmlDeviceGetComputeInstanceId, (abi::Device device, unsigned* id))                      \
  X(false, nvmlDeviceGetMemoryInfo_v2, (abi::Device device, abi::MemoryV2 * memory))               \
  X(false, nvmlDeviceGetArchitecture, (abi::Device device, unsigned* architecture))                \
  X(false, nvmlDeviceGetAddressingMode, (abi::Device device, abi::AddressingModeV1 * mode))        \
  X(false, nvmlDeviceGetRemappedRows,                                                              \
    (abi::Device device, unsigned* correctable, unsigned* uncorrectable, unsigned* pending,        \
     unsigned* failed))                                                                            \
  X(false, nvmlDeviceGetNvLinkRemoteDeviceType, (abi::Device device, unsigned link, int* kind))    \
  X(false, nvmlEventSetWait_v2, (abi::EventSet set, abi::EventData * data, unsigned milliseconds)) \
  X(false, nvmlDeviceGetGpuInstanceProfileInfoV,                                                   \
    (abi::Device device, unsigned profile, abi::GpuInstanceProfileV2* info))                       \
  X(false, nvmlDeviceGetGpuInstancePossiblePlacements_v2,                                          \
    (abi::Device device, unsigned profile_id, abi::Placement* placements, unsigned* count))        \
  X(false, nvmlDeviceCreateGpuInstanceWithPlacement,                                               \
    (abi::Device device, unsigned profile_id, const abi::Placement* placement,                     \
     abi::GpuInstance* made))                                                                      \
  X(false, nvmlComputeInstanceGetInfo_v2,                                                          \
    (abi::ComputeInstance instance, abi::ComputeInstanceInfo * info))
