#include "node/pods/volume_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/strings.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

/// Go begins the texts of errno in lower case.
std::string errno_text(int number) {
  std::string text = std::strerror(number);
  if (text.size() > 1 && text[1] >= 'a' && text[1] <= 'z' && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

struct MountFlag {
  std::string_view name;
  unsigned long bit;
  bool sets;
};
constexpr MountFlag kFlags[] = {
    {"ro", MS_RDONLY, true},
    {"rw", MS_RDONLY, false},
    {"noexec", MS_NOEXEC, true},
    {"exec", MS_NOEXEC, false},
    {"nosuid", MS_NOSUID, true},
    {"suid", MS_NOSUID, false},
    {"nodev", MS_NODEV, true},
    {"dev", MS_NODEV, false},
    {"noatime", MS_NOATIME, true},
    {"atime", MS_NOATIME, false},
    {"nodiratime", MS_NODIRATIME, true},
    {"diratime", MS_NODIRATIME, false},
    {"relatime", MS_RELATIME, true},
    {"strictatime", MS_STRICTATIME, true},
    {"defaults", 0, true},
    {"bind", 0, true},
};

constexpr int kDeepest = 1000;

struct Ownership {
  gid_t group = 0;
  bool read_only = false;
};

/// What `fd` (O_PATH) is, and all below it. Held by its descriptor from the first look to the last
/// change, so that nothing put in its place is touched.
Result<> give(int fd, const std::string& name, const Ownership& to, int depth) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return file_error("stat", name, errno);
  if (::fchownat(fd, "", static_cast<uid_t>(-1), to.group, AT_EMPTY_PATH) != 0) {
    return file_error("chown", name, errno);
  }
  if (S_ISLNK(info.st_mode)) return success();
  const std::string self = cat("/proc/self/fd/", fd);
  if (S_ISDIR(info.st_mode)) {
    if (depth > kDeepest) return file_error("open", name, ELOOP);
    DIR* folder = nullptr;
    if (const int opened = ::open(self.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
      folder = ::fdopendir(opened);
    }
    if (folder == nullptr) return file_error("open", name, errno);
    const std::unique_ptr<DIR, int (*)(DIR*)> held(folder, ::closedir);
    while (const dirent* entry = ::readdir(folder)) {
      const std::string_view child = entry->d_name;
      if (child == "." || child == "..") continue;
      const Descriptor below(::openat(fd, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
      if (below.get() < 0 && errno == ENOENT) continue;
      if (below.get() < 0) return file_error("open", cat(name, '/', child), errno);
      DIBS_CHECK(give(below.get(), cat(name, '/', child), to, depth + 1));
    }
  }
  unsigned mode = (info.st_mode & 07777U) | (to.read_only ? 0440U : 0660U);
  if (S_ISDIR(info.st_mode)) mode |= 02110U;
  if (::chmod(self.c_str(), mode) != 0) return file_error("chmod", name, errno);
  return success();
}

}  // namespace

Error file_error(std::string_view operation, std::string_view path, int error_number) {
  const Code code = error_number == ENOENT ? Code::not_found : Code::internal;
  return {code, cat(operation, ' ', path, ": ", errno_text(error_number))};
}

Result<> make_folder(const std::string& path, unsigned mode) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return success();
    return file_error("mkdir", path, ENOTDIR);
  }
  const auto slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    DIBS_CHECK(make_folder(path.substr(0, slash), 0750));
  }
  if (::mkdir(path.c_str(), mode & 0777) != 0) {
    if (errno == EEXIST) return success();
    return file_error("mkdir", path, errno);
  }
  if (::chmod(path.c_str(), mode) != 0) return file_error("chmod", path, errno);
  return success();
}

Result<> write_file(const std::string& path, std::string_view bytes, unsigned mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return file_error("open", path, errno);
  int failed = 0;
  while (!bytes.empty() && failed == 0) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno != EINTR) {
      failed = errno;
    }
  }
  // A mode of the umask's making would keep other users out of what the pod asked for.
  if (failed == 0 && ::fchmod(fd, mode) != 0) failed = errno;
  ::close(fd);
  if (failed != 0) return file_error("write", path, failed);
  return success();
}

std::optional<std::string> read_file(const std::string& path, std::size_t limit) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  std::string out;
  char buffer[4096];
  while (out.size() < limit) {
    const ssize_t got = ::read(fd, buffer, std::min(sizeof buffer, limit - out.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(fd);
  return out;
}

Result<> remove_tree(const std::string& path) {
  int failed = 0;
  const auto remove_one = [](const char* name, const struct stat*, int, struct FTW*) {
    return ::remove(name) == 0 || errno == ENOENT ? 0 : errno;
  };
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return success();
    return file_error("lstat", path, errno);
  }
  failed = ::nftw(path.c_str(), remove_one, 32, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  if (failed == -1) failed = errno;
  if (failed != 0 && failed != ENOENT) return file_error("remove", path, failed);
  return success();
}

Result<> give_to_group(const std::string& path, std::int64_t group, bool read_only) {
  const Descriptor root(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (root.get() < 0) return file_error("open", path, errno);
  return give(root.get(), path, {static_cast<gid_t>(group), read_only}, 0);
}

bool is_given_to_group(const std::string& path, std::int64_t group) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_gid == static_cast<gid_t>(group) &&
         (info.st_mode & 02770U) == 02770U;
}

Result<> mount_bind(const std::string& source, const std::string& target,
                    const std::vector<std::string>& options) {
  unsigned long flags = 0;
  for (const auto& option : options) {
    const auto known = std::find_if(std::begin(kFlags), std::end(kFlags),
                                    [&](const MountFlag& flag) { return flag.name == option; });
    if (known == std::end(kFlags)) {
      return Error::invalid(cat("mount option ", quoted(option), " is not known to bind mounts"));
    }
    flags = known->sets ? flags | known->bit : flags & ~known->bit;
  }
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return file_error(cat("mount ", source, " at"), target, errno);
  }
  if (flags == 0) return success();
  // The kernel ignores flags of a bind that it makes, and takes those of one that is there.
  if (::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | flags, nullptr) != 0) {
    const int failed = errno;
    ::umount2(target.c_str(), UMOUNT_NOFOLLOW);
    return file_error("remount", target, failed);
  }
  return success();
}

Result<> mount_memory(const std::string& path, std::int64_t size_bytes) {
  const std::string options = size_bytes > 0 ? cat("size=", size_bytes) : std::string();
  if (::mount("tmpfs", path.c_str(), "tmpfs", 0, options.c_str()) != 0) {
    return file_error("mount tmpfs at", path, errno);
  }
  return success();
}

bool is_mounted(const std::string& path) {
  struct stat here {};
  struct stat above {};
  if (::stat(path.c_str(), &here) != 0 || ::stat(cat(path, "/..").c_str(), &above) != 0) {
    return false;
  }
  return here.st_dev != above.st_dev;
}

int open_below(int folder, const std::string& path, unsigned flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder, path.c_str(), &how, sizeof how));
}

}  // namespace dibs::node
