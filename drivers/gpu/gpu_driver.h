#pragma once
// The example driver: pretends to have devices and shows them in containers as environment
// variables, observably as the dra-example-driver of Kubernetes does.
//
//   gpu.example.com   gpu-0 … gpu-7, or partitions of them
//   net.example.com   nic-0 … nic-7, shared by bandwidth
//   cpu.example.com   numa-0 … numa-7, shared by the number of CPUs

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/plugin.h"
#include "drivers/gpu/profile.h"

namespace dibs::drivers {

struct GpuDriverOptions {
  std::string node_name = {};
  std::string profile = "gpu";
  std::string driver_name = {};  // "": <profile>.example.com
  std::string registry_dir = "/var/lib/kubelet/plugins_registry";
  std::string plugins_dir = "/var/lib/kubelet/plugins";
  std::string cdi_root = "/etc/cdi";
  std::string pod_uid = {};
  unsigned devices = 8;
  unsigned gpu_partitions = 0;
  /// Published as resource.kubernetes.io/pcieRoot, so that a GPU can be had together with another
  /// driver's device that is near: the first GPU has the first, and so on, from the start again
  /// where there are more GPUs. Empty: GPUs do not say.
  std::vector<std::string> gpu_pcie_roots = {};
  bool gpu_allow_multiple_allocations = false;
  /// Write uuid, model and driver version into the status of claims.
  bool gpu_device_status = false;
  /// Containers find a file about the devices of each request that they have: see
  /// driver/device_metadata.h.
  bool device_metadata = false;
  /// Devices are bound only when a condition says so, and the driver's controller says so.
  bool binding_conditions = false;
  bool binding_controller = true;
  unsigned cpu_numa_nodes = 8;
  unsigned cpus_per_numa_node = 4;
  /// Make the class that has the driver's name, where there is none.
  bool create_class = true;
  /// `dibs device` can give devices faults: see driver/faults.h.
  bool faults = true;
  /// As in release 1.30: the node's agent publishes the devices as named resources
  /// (resource.k8s.io/v1alpha2), and the class is a ResourceClass with structured parameters.
  bool named_resources = false;
  /// Agents of releases 1.26 to 1.31, too.
  bool old_agents = false;
  /// Pods may ask for a device of the class by this resource, too; "": they may not.
  std::string extended_resource = {};
};

/// `folder` is the root folder of a node's agent: plugins_registry, plugins and cdi below it. With
/// what a cluster of one's own should show: device status, and "example.com/gpu" for GPUs.
GpuDriverOptions options_for_node(std::string node_name, const std::string& folder,
                                  std::string profile = "gpu");

/// Runs until what it returns is dropped; slices and prepared claims stay. Does not wait for the
/// API server: what needs it follows by itself. Errors name the folder or option.
Result<driver::Running> start_gpu_driver(driver::Environment environment,
                                         const GpuDriverOptions& options);

/// "gpu.example.com" unless an option says otherwise.
std::string driver_name_of(const GpuDriverOptions& options);

}  // namespace dibs::drivers
