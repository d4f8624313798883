#include "drivers/nvidia/fake/root.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/strings.h"
#include "drivers/nvidia/fake/files.h"

namespace dibs::drivers::nvidia::fake {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraries = "/usr/lib/x86_64-linux-gnu";
constexpr unsigned kInstancesPerGpu = 15;
constexpr unsigned kCapsPerInstance = 9;  // its own, and those of 8 compute instances
constexpr unsigned kFirstCap = 3;
constexpr unsigned kOwnerOnly = 256;  // 0400, as the kernel module writes modes
constexpr unsigned kEverybody = 292;  // 0444

/// Names without and with the driver's version; a driver brings many more.
constexpr std::string_view kDriverLibraries[] = {"libcuda",
                                                 "libcudadebugger",
                                                 "libnvcuvid",
                                                 "libnvidia-allocator",
                                                 "libnvidia-cfg",
                                                 "libnvidia-encode",
                                                 "libnvidia-gpucomp",
                                                 "libnvidia-nvvm",
                                                 "libnvidia-opencl",
                                                 "libnvidia-opticalflow",
                                                 "libnvidia-pkcs11-openssl3",
                                                 "libnvidia-ptxjitcompiler"};
constexpr std::string_view kTools[] = {"nvidia-debugdump", "nvidia-persistenced",
                                       "nvidia-cuda-mps-server"};

Result<> make_folder(const std::string& path) {
  std::error_code why;
  fs::create_directories(path, why);
  if (why) return Error::internal(cat("create ", path, ": ", why.message()));
  return success();
}

Result<> put(const std::string& path, std::string_view bytes, unsigned mode = 0644) {
  DIBS_CHECK(make_folder(fs::path(path).parent_path().string()));
  return write_file(path, bytes, mode);
}

Result<> link_to(const std::string& target, const std::string& path) {
  std::error_code why;
  fs::remove(path, why);
  fs::create_symlink(target, path, why);
  if (why) return Error::internal(cat("link ", path, ": ", why.message()));
  return success();
}

Result<> make_node(const std::string& path) {
  DIBS_CHECK(make_folder(fs::path(path).parent_path().string()));
  struct stat info = {};
  if (lstat(path.c_str(), &info) == 0) return success();
  // The mask of the process must not take rights from a device that everybody opens.
  if (mknod(path.c_str(), S_IFCHR | 0666, makedev(1, 3)) == 0) {
    chmod(path.c_str(), 0666);
    return success();
  }
  if (errno != EPERM) return Error::internal(cat("make node ", path, ": ", std::strerror(errno)));
  return write_file(path, "", 0666);
}

std::string capability(unsigned minor, unsigned mode) {
  return cat("DeviceFileMinor: ", minor, "\nDeviceFileMode: ", mode, "\nDeviceFileModify: 1\n");
}

Result<> put_libraries(const Machine& machine, const std::string& machine_path,
                       const std::string& library, const std::string& root) {
  const std::string folder = cat(root, kLibraries);
  std::vector<std::pair<std::string, std::string>> cached;
  const auto add = [&](std::string_view name) -> Result<> {
    const std::string versioned = cat(name, ".so.", machine.driver);
    const std::string soname = cat(name, ".so.1");
    DIBS_CHECK(link_to(versioned, cat(folder, "/", soname)));
    cached.emplace_back(soname, cat(kLibraries, "/", soname));
    return success();
  };
  DIBS_CHECK(make_folder(folder));
  DIBS_TRY(const std::string bytes, read_file(library));
  DIBS_CHECK(put(cat(folder, "/libnvidia-ml.so.", machine.driver), bytes, 0755));
  DIBS_CHECK(add("libnvidia-ml"));
  // The library looks for its machine beside itself; a link, so that all have one state.
  DIBS_CHECK(link_to(machine_path, cat(folder, "/fake-nvml.yaml")));
  for (const std::string_view name : kDriverLibraries) {
    DIBS_CHECK(put(cat(folder, "/", name, ".so.", machine.driver),
                   cat("a stand-in for ", name, " of a fake machine\n")));
    DIBS_CHECK(add(name));
  }
  DIBS_CHECK(link_to("libcuda.so.1", cat(folder, "/libcuda.so")));
  cached.emplace_back("libcuda.so", cat(kLibraries, "/libcuda.so"));
  return put(cat(root, "/etc/ld.so.cache"), ld_cache(cached));
}

Result<> put_tools(const std::string& root) {
  for (const std::string_view name : kTools) {
    DIBS_CHECK(
        put(cat(root, "/usr/bin/", name), "#!/bin/sh\n# a stand-in on a fake machine\n", 0755));
  }
  DIBS_CHECK(put(cat(root, "/usr/bin/nvidia-cuda-mps-control"), mps_control_script(), 0755));
  return make_folder(cat(root, "/run/fake-nvml"));
}

Result<> put_proc(const Machine& machine, const std::string& root) {
  const std::string driver = cat(root, "/proc/driver/nvidia");
  DIBS_CHECK(
      put(cat(driver, "/version"), cat("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  ",
                                       machine.driver, "  Release Build  (fake)\n")));
  DIBS_CHECK(put(cat(driver, "/params"), "ModifyDeviceFiles: 1\n"));
  DIBS_CHECK(put(cat(root, "/proc/devices"),
                 "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n195 nvidia-modeset\n"
                 "235 nvidia-caps\n511 nvidia-uvm\n\nBlock devices:\n"));
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    DIBS_CHECK(put(cat(driver, "/gpus/", gpu.pci, "/information"),
                   cat("Model: \t\t ", machine.model_of(i).name, "\nGPU UUID: \t ", gpu.uuid,
                       "\nBus Location: \t ", gpu.pci, "\nDevice Minor: \t ", gpu.minor, "\n")));
  }
  return success();
}

Result<> put_sysfs(const Machine& machine, const std::string& root) {
  for (const Gpu& gpu : machine.gpus) {
    const std::string bus = gpu.pcie_root.empty() ? "pci0000:00" : gpu.pcie_root;
    const std::string device = cat(root, "/sys/devices/", bus, "/", gpu.pci);
    DIBS_CHECK(put(cat(device, "/numa_node"), cat(gpu.numa_node, "\n")));
    DIBS_CHECK(put(cat(device, "/vendor"), "0x10de\n"));
    DIBS_CHECK(make_folder(cat(root, "/sys/bus/pci/devices")));
    DIBS_CHECK(link_to(cat("../../../devices/", bus, "/", gpu.pci),
                       cat(root, "/sys/bus/pci/devices/", gpu.pci)));
  }
  return success();
}

/// Takes away what is in `folder` and not among these.
void keep_only(const std::string& folder, const std::set<std::string>& names) {
  std::error_code ignored;
  std::vector<fs::path> others;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!names.contains(entry.path().filename().string())) others.push_back(entry.path());
  }
  for (const fs::path& other : others) fs::remove_all(other, ignored);
}

/// Capabilities of one GPU, whose nodes are added to `nodes` and the table's lines to `minors`.
Result<> follow_gpu(const Gpu& gpu, const GpuState& state, const std::string& root,
                    std::set<std::string>& nodes, std::string& minors) {
  const std::string name = cat("gpu", gpu.minor);
  const std::string folder = cat(root, "/proc/driver/nvidia/capabilities/", name, "/mig");
  DIBS_CHECK(make_folder(folder));
  std::set<std::string> instances;
  for (const GpuInstance& instance : state.instances) {
    const std::string inside = cat("gi", instance.id);
    instances.insert(inside);
    const unsigned own = gpu_instance_cap(gpu.minor, instance.id);
    DIBS_CHECK(put(cat(folder, "/", inside, "/access"), capability(own, kEverybody), 0444));
    nodes.insert(cat("nvidia-cap", own));
    std::set<std::string> kept = {"access"};
    for (const ComputeInstance& compute : instance.compute) {
      const std::string part = cat("ci", compute.id);
      kept.insert(part);
      const unsigned cap = compute_instance_cap(gpu.minor, instance.id, compute.id);
      DIBS_CHECK(
          put(cat(folder, "/", inside, "/", part, "/access"), capability(cap, kEverybody), 0444));
      nodes.insert(cat("nvidia-cap", cap));
    }
    keep_only(cat(folder, "/", inside), kept);
  }
  keep_only(folder, instances);
  // The table has a line for everything that could be.
  for (unsigned id = 0; id < kInstancesPerGpu; ++id) {
    append(minors, name, "/gi", id, "/access ", gpu_instance_cap(gpu.minor, id), "\n");
    for (unsigned part = 0; part + 1 < kCapsPerInstance; ++part) {
      append(minors, name, "/gi", id, "/ci", part, "/access ",
             compute_instance_cap(gpu.minor, id, part), "\n");
    }
  }
  return success();
}

}  // namespace

unsigned gpu_instance_cap(unsigned gpu_minor, unsigned gpu_instance) {
  return kFirstCap + (gpu_minor * kInstancesPerGpu + gpu_instance) * kCapsPerInstance;
}

unsigned compute_instance_cap(unsigned gpu_minor, unsigned gpu_instance,
                              unsigned compute_instance) {
  return gpu_instance_cap(gpu_minor, gpu_instance) + 1 + compute_instance;
}

Result<> lay_out(const Machine& machine, const std::string& machine_path,
                 const std::string& library, const std::string& root) {
  for (const std::string_view name :
       {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}) {
    DIBS_CHECK(make_node(cat(root, "/dev/", name)));
  }
  for (const Gpu& gpu : machine.gpus) {
    DIBS_CHECK(make_node(cat(root, "/dev/nvidia", gpu.minor)));
  }
  DIBS_CHECK(put_libraries(machine, machine_path, library, root));
  DIBS_CHECK(put_tools(root));
  DIBS_CHECK(put_proc(machine, root));
  return put_sysfs(machine, root);
}

Result<> follow_state(const Machine& machine, const State& state) {
  if (state.root.empty()) return success();
  const std::string& root = state.root;
  const std::string capabilities = cat(root, "/proc/driver/nvidia/capabilities");
  DIBS_CHECK(put(cat(capabilities, "/mig/config"), capability(1, kOwnerOnly), 0400));
  DIBS_CHECK(put(cat(capabilities, "/mig/monitor"), capability(2, kEverybody), 0444));
  std::set<std::string> nodes = {"nvidia-cap1", "nvidia-cap2"};
  std::string minors = "config 1\nmonitor 2\n";
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    if (!machine.model_of(i).mig) continue;
    DIBS_CHECK(follow_gpu(machine.gpus[i], state.gpus[i], root, nodes, minors));
  }
  const std::string caps = cat(root, "/dev/nvidia-caps");
  for (const std::string& node : nodes) DIBS_CHECK(make_node(cat(caps, "/", node)));
  keep_only(caps, nodes);
  DIBS_CHECK(put(cat(root, "/proc/driver/nvidia-caps/mig-minors"), minors));
  return put(cat(root, "/usr/bin/nvidia-smi"), nvidia_smi_script(machine, state), 0755);
}

}  // namespace dibs::drivers::nvidia::fake
