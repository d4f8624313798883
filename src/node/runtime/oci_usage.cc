// What containers of the oci runtime take of the disk.
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "base/strings.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_runtime_state.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::string OciRuntime::written_folder(const std::string& id) {
  if (find_sandbox(id)) return sandbox_folder(id);
  // Where there was no overlay, the container has a copy of its image.
  const std::string merged = container_folder(id) + "/merged";
  return is_mount_point(merged) ? container_folder(id) + "/upper" : merged;
}

std::uint64_t OciRuntime::unlinked_bytes(const std::string& id) {
  const ContainerPtr container = find_container(id);
  if (!container) return 0;
  std::uint64_t sum = 0;
  std::set<std::pair<dev_t, ino_t>> seen;
  for (const auto& process : groups_.processes(group_of(id))) {
    // By a descriptor, or by a mapping after the descriptor was closed.
    for (const char* held : {"/fd", "/map_files"}) {
      std::error_code failed;
      for (const auto& entry : fs::directory_iterator(cat("/proc/", process, held), failed)) {
        const std::string path = entry.path().string();
        struct stat file = {};
        struct statfs system = {};
        if (::stat(path.c_str(), &file) != 0 || file.st_nlink != 0 || !S_ISREG(file.st_mode)) {
          continue;
        }
        if (::statfs(path.c_str(), &system) != 0 || system.f_type == TMPFS_MAGIC) continue;
        if (!seen.emplace(file.st_dev, file.st_ino).second) continue;
        sum += static_cast<std::uint64_t>(file.st_blocks) * 512;
      }
    }
  }
  return sum;
}

}  // namespace dibs::node
