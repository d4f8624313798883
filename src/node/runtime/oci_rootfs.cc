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

/// Only named, not opened: what is there may be a device. Links lead nowhere out of `root`.
runtime::Fd open_inside(const std::string& root, const std::string& path) {
  const runtime::Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return runtime::Fd();
  struct open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  return runtime::Fd(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
}

/// Mounts `place` over the layers, lowest first; copies them there where overlayfs does not work.
/// Device nodes of an image are names in it, not devices: those a container has are in its /dev.
Result<> lay_over(const std::vector<std::string>& layers, const std::string& place,
                  const std::string& upper, unsigned long flags) {
  std::string lower;
  for (std::size_t i = layers.size(); i-- > 0;) {
    append(lower, lower.empty() ? "" : ":", escaped(layers[i]));
  }
  const std::string options = cat("lowerdir=", lower, upper);
  const bool fits = options.size() < static_cast<std::size_t>(::getpagesize());
  if (fits && ::mount("overlay", place.c_str(), "overlay", flags, options.c_str()) == 0) {
    return success();
  }
  DIBS_CHECK(copy_layers(layers, place));
  if (::mount(place.c_str(), place.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, place.c_str(), nullptr, MS_BIND | MS_REMOUNT | flags, nullptr) != 0) {
    return Error::internal(cat("mount ", place, ": ", std::strerror(errno)));
  }
  return success();
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
  auto mounted = lay_over(
      layers, merged,
      cat(",upperdir=", escaped(folder + "/upper"), ",workdir=", escaped(folder + "/work")),
      MS_NODEV);
  if (!mounted.ok()) return mounted.error().within("make the container's root");
  return merged;
}

Result<std::string> mount_image(const std::string& folder, std::size_t index,
                                const std::vector<std::string>& layers, const std::string& path) {
  const std::string place = cat(folder, "/images/", index);
  const std::string nothing = folder + "/images/none";
  std::error_code failed;
  fs::create_directories(place, failed);
  if (!failed) fs::create_directories(nothing, failed);
  if (failed) return Error::internal(cat("make ", place, ": ", failed.message()));
  // Without an upper layer there must be two.
  std::vector<std::string> all = {nothing};
  all.insert(all.end(), layers.begin(), layers.end());
  DIBS_CHECK(lay_over(all, place, "", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC));
  if (path.empty()) return place;
  const runtime::Fd part = open_inside(place, path);
  std::error_code unreadable;
  const fs::path found = fs::read_symlink(cat("/proc/self/fd/", part.get()), unreadable);
  if (!part.ok() || unreadable) {
    return Error::invalid(cat("the image has no ", quoted(path)));
  }
  return found.string();
}

Result<> unmake_rootfs(const std::string& folder) {
  std::vector<std::string> places = {folder + "/merged"};
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder + "/images", none)) {
    places.push_back(entry.path().string());
  }
  for (const auto& place : places) {
    unmount(place);
    if (is_mount_point(place)) return Error::internal(cat(place, " is still mounted"));
  }
  return success();
}

std::string read_inside(const std::string& root, const std::string& path) {
  constexpr std::size_t kLimit = 1 << 20;
  const runtime::Fd found = open_inside(root, path);
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
