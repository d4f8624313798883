#include "node/runtime/mounts.h"

#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

/// mountinfo writes blanks and the like as \040.
std::string unescape(std::string_view field) {
  std::string out;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size()) {
      out.push_back(static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 +
                                      (field[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(field[i]);
    }
  }
  return out;
}

/// The mount table names mounts by their real paths.
std::string real_path(const std::string& path) {
  std::error_code error;
  std::string real = fs::weakly_canonical(path, error).string();
  return error ? path : real;
}

/// In the order of the table: of several at one place the last one is seen.
Result<std::vector<MountPoint>> read_mount_table() {
  std::vector<MountPoint> out;
  DIBS_TRY(const std::string table, runtime::system_files().read("/proc/thread-self/mountinfo"));
  for (const auto line : split(table, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() < 7) continue;
    MountPoint mount{unescape(fields[4])};
    for (std::size_t i = 6; i < fields.size() && fields[i] != "-"; ++i) {
      mount.shared = mount.shared || fields[i].starts_with("shared:");
    }
    out.push_back(std::move(mount));
  }
  return out;
}

std::vector<MountPoint> mount_table() {
  auto table = read_mount_table();
  return table.ok() ? std::move(table).value() : std::vector<MountPoint>();
}

bool is_at_or_below(const std::string& path, const std::string& folder) {
  return folder == "/" || path == folder || path.starts_with(cat(folder, '/'));
}

std::vector<std::string> below(std::vector<MountPoint> table, const std::string& path) {
  std::vector<std::string> found;
  const std::string real = real_path(path);
  for (auto& mount : table) {
    if (is_at_or_below(mount.path, real)) found.push_back(std::move(mount.path));
  }
  std::reverse(found.begin(), found.end());
  std::stable_sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return std::count(a.begin(), a.end(), '/') > std::count(b.begin(), b.end(), '/');
  });
  return found;
}

}  // namespace

std::vector<std::string> mounts_below(const std::string& path) {
  return below(mount_table(), path);
}

// Who calls this deletes what is in the folder next. So a table that cannot be read is not an empty
// one, and it is over when nothing more can be unmounted, not when each was tried: a mount may hide
// another one, which shows when the first is gone.
Result<> unmount_below(const std::string& path) {
  constexpr int kMostRounds = 64;
  for (int round = 0; round < kMostRounds; ++round) {
    DIBS_TRY(auto table, read_mount_table());
    bool any = false;
    for (const auto& point : below(std::move(table), path)) {
      if (::umount2(point.c_str(), UMOUNT_NOFOLLOW) == 0) {
        any = true;
        continue;
      }
      // Something in it is still open, perhaps by a process that is just ending: it goes from sight
      // now, and for good with its last user.
      if (errno == EBUSY && ::umount2(point.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0) {
        any = true;
        continue;
      }
      // Hidden: nobody comes to it by this path.
      if (errno == EINVAL || errno == ENOENT) continue;
      return Error::internal(cat("umount ", point, ": ", std::strerror(errno)));
    }
    if (!any) return success();
  }
  return Error::internal(cat("umount ", path, ": somebody goes on mounting there"));
}

bool is_in_mount_table(const std::string& path) {
  const std::string real = real_path(path);
  const auto table = mount_table();
  return std::any_of(table.begin(), table.end(),
                     [&](const MountPoint& mount) { return mount.path == real; });
}

MountPoint mount_of(const std::string& path) {
  const std::string real = real_path(path);
  MountPoint out;
  for (auto& mount : mount_table()) {
    if (!is_at_or_below(real, mount.path) || mount.path.size() < out.path.size()) continue;
    out = std::move(mount);
  }
  return out;
}

}  // namespace dibs::node
