#include "node/runtime/oci_rootfs.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"
#include "node/runtime/oci_namespaces.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

// In the option text of overlayfs a colon separates and a comma ends.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == ':' || c == ',' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out;
}

bool is_whiteout(const fs::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == 0;
}

bool is_opaque(const fs::path& path) {
  char value[4];
  return ::lgetxattr(path.c_str(), "trusted.overlay.opaque", value, sizeof value) == 1 &&
         value[0] == 'y';
}

}  // namespace

Result<> copy_layers(const std::vector<std::string>& layers, const std::string& target) {
  std::error_code failed;
  for (const auto& layer : layers) {
    std::vector<fs::path> deleted;
    for (fs::recursive_directory_iterator at(layer, failed), end; at != end; at.increment(failed)) {
      const fs::path relative = fs::relative(at->path(), layer, failed);
      if (is_whiteout(at->path())) {
        // Now what it hides, later the mark itself.
        fs::remove_all(fs::path(target) / relative, failed);
        deleted.push_back(fs::path(target) / relative);
      } else if (at->is_directory(failed) && !at->is_symlink(failed) && is_opaque(at->path())) {
        fs::remove_all(fs::path(target) / relative, failed);
      }
    }
    auto copied = runtime::run_checked(
        {.argv = {"cp", "-a", "--remove-destination", layer + "/.", target + "/"}});
    if (!copied.ok()) return copied.error();
    for (const auto& path : deleted) fs::remove_all(path, failed);
  }
  return success();
}

Result<std::string> make_rootfs(const std::string& folder, const std::vector<std::string>& layers) {
  std::error_code failed;
  for (const char* part : {"upper", "work", "merged"}) {
    fs::create_directories(cat(folder, '/', part), failed);
    if (failed) return Error::internal(cat("make ", folder, ": ", failed.message()));
  }
  const std::string merged = folder + "/merged";
  if (!layers.empty()) {
    // The root's own owner and mode come from the upper layer.
    struct stat status = {};
    if (::stat(layers.back().c_str(), &status) == 0) {
      ::chmod((folder + "/upper").c_str(), status.st_mode & 07777);
    }
  }
  std::string lower;
  for (std::size_t i = layers.size(); i-- > 0;) {
    append(lower, lower.empty() ? "" : ":", escaped(layers[i]));
  }
  const std::string options = cat("lowerdir=", lower, ",upperdir=", escaped(folder + "/upper"),
                                  ",workdir=", escaped(folder + "/work"));
  const bool fits = options.size() < static_cast<std::size_t>(::getpagesize());
  // Device nodes of an image are names in it, not devices: those a container has are in its /dev.
  if (fits && ::mount("overlay", merged.c_str(), "overlay", MS_NODEV, options.c_str()) == 0) {
    return merged;
  }
  auto copied = copy_layers(layers, merged);
  if (!copied.ok()) return copied.error().within("make the container's root");
  const auto hide_devices = [&] {
    return ::mount(merged.c_str(), merged.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
           ::mount(nullptr, merged.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_NODEV, nullptr) == 0;
  };
  if (!hide_devices()) {
    return Error::internal(
        cat("make the container's root: mount ", merged, ": ", std::strerror(errno)));
  }
  return merged;
}

Result<> unmake_rootfs(const std::string& folder) {
  const std::string merged = folder + "/merged";
  unmount(merged);
  if (is_mount_point(merged)) return Error::internal(cat(merged, " is still mounted"));
  return success();
}

std::string read_inside(const std::string& root, const std::string& path) {
  constexpr std::size_t kLimit = 1 << 20;
  const runtime::Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return "";
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const runtime::Fd found(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  // Opening is an act where it is a device of the host or a pipe: only what is a file is opened.
  struct stat status = {};
  if (!found.ok() || ::fstat(found.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  const runtime::Fd file(
      ::open(cat("/proc/self/fd/", found.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.ok()) return "";
  std::string text;
  char buffer[8192];
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer, sizeof buffer);
    if (got <= 0 || text.size() > kLimit) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace dibs::node
