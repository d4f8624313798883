#pragma once
// The kinds of devices that the example driver can pretend to have: GPUs, network interfaces, CPUs.
//
// A profile says which devices there are and what a container's environment shows of them. None of
// it touches hardware.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "driver/claim.h"
#include "driver/pool.h"
#include "json/value.h"

namespace dibs::drivers {

/// "pci<domain>:<bus>", in hexadecimal digits.
bool is_pcie_root(std::string_view text);

struct ProfileOptions {
  std::string driver_name = {};
  std::string node_name = {};
  unsigned devices = 8;
  unsigned gpu_partitions = 0;
  /// PCIe roots that GPUs say they hang on, in turn: "pci0000:80".
  std::vector<std::string> gpu_pcie_roots = {};
  bool gpu_allow_multiple_allocations = false;
  bool gpu_device_status = false;
  bool binding_conditions = false;
  unsigned cpu_numa_nodes = 8;
  unsigned cpus_per_numa_node = 4;
};

class Profile {
 public:
  virtual ~Profile() = default;

  virtual driver::Pool pool() const = 0;
  /// Opaque parameters, decoded. Errors are those of Go's decoder.
  virtual Result<json::Value> decode(const json::Value& parameters) const = 0;
  /// The environment that shows the device with this configuration; null: the default one.
  virtual Result<std::vector<std::string>> environment(
      const json::Value& config, const driver::AllocatedDevice& device) const = 0;
  /// What status.devices[].data of the claim shows; null: nothing.
  virtual json::Value status_data(const json::Value& device) const;
};

std::unique_ptr<Profile> make_gpu_profile(const ProfileOptions& options);
std::unique_ptr<Profile> make_net_profile(const ProfileOptions& options);
std::unique_ptr<Profile> make_cpu_profile(const ProfileOptions& options);

struct ProfileKind {
  std::string_view name;  // in --device-profile
  std::unique_ptr<Profile> (*make)(const ProfileOptions& options);
};

std::span<const ProfileKind> profile_kinds();

/// Errors: invalid, in upstream's words, for a name that is not in the table.
Result<std::unique_ptr<Profile>> make_profile(std::string_view name, const ProfileOptions& options);

}  // namespace dibs::drivers
