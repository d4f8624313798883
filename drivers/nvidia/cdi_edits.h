#pragma once
// What a container gets with a GPU or a MIG instance: device files, and the driver's libraries,
// tools and sockets.
//
// Everything is a mount or a device file, no hook: nothing of the container toolkit has to be on
// the machine. Libraries are mounted under all the names that they are loaded by, in the folder
// where the machine has them; the loader of the image finds them there without `ldconfig` where
// that folder is one of its own (docs/nvidia.md says what about other images).
//
// A MIG instance is its GPU's device file and the two capabilities of GPU and compute instance
// (/dev/nvidia-caps/nvidia-cap<n>), without which the first opens nothing.
//
// Thread-safe. Blocks on the disk.

#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/spec.h"
#include "drivers/nvidia/driver_files.h"
#include "runtime/files.h"

namespace dibs::drivers::nvidia {

struct MigIds {
  unsigned gpu_instance = 0;
  unsigned compute_instance = 0;
};

struct EditsOptions {
  Roots roots = {};
  /// Environment variables that containers get, too: NAME=value.
  std::vector<std::string> env = {};
  /// Folders or files of the machine that they get at the same path, to read.
  std::vector<std::string> mounts = {};
};

class CdiEdits {
 public:
  /// `files` is the machine's; it must outlive this.
  CdiEdits(runtime::Files& files, EditsOptions options);

  /// What all containers with a GPU get. Errors name what the machine lacks.
  Result<cdi::ContainerEdits> common(const std::string& driver_version) const;
  Result<cdi::ContainerEdits> gpu(unsigned minor) const;
  /// As gpu(), with the capabilities of the instance.
  Result<cdi::ContainerEdits> mig(unsigned minor, MigIds ids) const;

 private:
  cdi::DeviceNode node(const std::string& path) const;
  Result<cdi::DeviceNode> capability(const std::string& access) const;

  runtime::Files& files_;
  EditsOptions options_;
};

}  // namespace dibs::drivers::nvidia
