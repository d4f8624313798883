#pragma once
// What is mounted on this machine, by the table of the calling thread's namespace.

#include <string>
#include <vector>

#include "base/result.h"

namespace dibs::node {

/// Mount points at or below `path`, the deepest and latest first.
std::vector<std::string> mounts_below(const std::string& path);
/// All of mounts_below(), until nothing is left: afterwards the folder may be deleted. Errors: of
/// what stays, or where nobody can tell what is mounted.
Result<> unmount_below(const std::string& path);
/// Also of the same file system.
bool is_in_mount_table(const std::string& path);

struct MountPoint {
  std::string path = {};
  /// Mounts made in it are seen in copies of it, and the other way round.
  bool shared = false;
};
/// The mount that `path` lies in.
MountPoint mount_of(const std::string& path);

}  // namespace dibs::node
