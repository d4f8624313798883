#pragma once
// The driver of NVIDIA's GPUs, gpu.nvidia.com: whole ones, and MIG instances that are made when a
// claim wants them. Manifests for NVIDIA's own DRA driver work with it as they are; docs/nvidia.md
// says how, and what is other.

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "driver/plugin.h"
#include "drivers/nvidia/claims_handler.h"

namespace dibs::drivers::nvidia {

struct NvidiaDriverOptions {
  std::string node_name = {};
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  std::string cdi_root = "/var/run/cdi";
  std::string pod_uid = {};
  /// "": libnvidia-ml.so.1 of the driver's root, or as the loader finds it.
  std::string nvml_library = {};
  std::string driver_root = "/";
  // "": below the driver's root where that has what is looked for, else the machine's.
  std::string dev_root = {};    // stands for "/": has dev/nvidiactl
  std::string proc_root = {};   // stands for "/": has proc/driver/nvidia
  std::string sysfs_root = {};  // is "/sys": has bus/pci/devices
  /// "dynamic", "static"
  std::string mig = "dynamic";
  std::vector<std::string> ignored_xids = {};
  std::vector<std::string> container_env = {};
  std::vector<std::string> container_mounts = {};
  /// Make the DeviceClasses gpu.nvidia.com and mig.nvidia.com, where there are none.
  bool create_classes = true;
  /// Pods may ask for whole GPUs by this resource, too; "": they may not.
  std::string extended_resource = "nvidia.com/gpu";
  bool device_metadata = false;
  /// `dibs device` can give devices faults: see driver/faults.h.
  bool faults = true;
  /// How often memory and utilization are looked at; 0: never.
  Duration usage_every = std::chrono::seconds(30);

  // Of tests. Null: run_program(), and the machine's files.
  RunProgram run = {};
  runtime::Files* machine = nullptr;
};

/// `folder` is the root folder of a node's agent: plugins_registry, plugins and cdi below it.
NvidiaDriverOptions options_for_node(std::string node_name, const std::string& folder);

/// What is wrong with values by themselves: a bad_request that names the flag.
Result<> check_options(const NvidiaDriverOptions& options);

/// Runs until what it returns is dropped; slices, prepared claims and what was made for them stay.
/// Does not wait for the API server. Errors name the library, folder or flag.
Result<driver::Running> start_nvidia_driver(driver::Environment environment,
                                            const NvidiaDriverOptions& options);

/// The two DeviceClasses.
std::vector<json::Value> device_classes(const std::string& extended_resource);

}  // namespace dibs::drivers::nvidia
