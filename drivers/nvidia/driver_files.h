#pragma once
// Where NVIDIA's driver lies on the machine: libraries, tools, device files.
//
// Libraries are found as NVIDIA's container toolkit finds them: those that end with the driver's
// version ("libcuda.so.580.95.05"), in the folders where the loader's cache (/etc/ld.so.cache) or
// the usual ones have libcuda or libnvidia-ml of that version, and in `vdpau` below those.
//
// Asked for each claim, as a driver may be updated while this process runs. Blocks on the disk.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/files.h"

namespace dibs::drivers::nvidia {

/// Each is a folder that stands for "/".
struct Roots {
  /// Where the driver is installed: "/", or "/run/nvidia/driver" where a container installs it.
  std::string driver = "/";
  /// Where /dev is.
  std::string dev = "/";
  /// Where /proc is.
  std::string proc = "/";
};

/// `path` below a root, without two slashes.
std::string below(const std::string& root, std::string_view path);

/// A file of the driver, and where containers find it.
struct DriverFile {
  std::string host = {};
  std::string container = {};
};

/// NVIDIA's management library, under its name for programs or, where there is no link, its own;
/// "" where there is none.
std::string find_nvml(runtime::Files& files, const Roots& roots);

/// With the other names that a library goes by: libcuda.so.1, libcuda.so; in the machine's folder,
/// and in those where the loaders of images look by themselves. Errors (not_found): none
/// of this version is there, with the folders that were looked at.
Result<std::vector<DriverFile>> find_libraries(runtime::Files& files, const Roots& roots,
                                               const std::string& version);
/// nvidia-smi and its like, as far as they are there.
std::vector<DriverFile> find_tools(runtime::Files& files, const Roots& roots);
/// Sockets of the driver's services.
std::vector<DriverFile> find_sockets(runtime::Files& files, const Roots& roots);
/// What the GPU's own processor is started with.
std::vector<DriverFile> find_firmware(runtime::Files& files, const Roots& roots,
                                      const std::string& version);

/// The program on the machine; "" where there is none.
std::string find_tool(runtime::Files& files, const Roots& roots, std::string_view name);
/// Folders of libraries of this version, on the machine.
std::vector<std::string> library_folders(runtime::Files& files, const Roots& roots,
                                         const std::string& version);

/// Paths of 64 bit libraries in a cache of the loader (glibc's format, 1.1). Empty for what is
/// none.
std::vector<std::string> paths_in_loader_cache(std::string_view bytes);

/// Of `…/capabilities/gpu0/mig/gi1/access`: the minor number of the device file that lets one use
/// it.
std::optional<unsigned> minor_in_access_file(std::string_view text);
/// Of /proc/devices: the major number of "nvidia-caps".
std::optional<unsigned> major_of(std::string_view proc_devices, std::string_view name);

}  // namespace dibs::drivers::nvidia
