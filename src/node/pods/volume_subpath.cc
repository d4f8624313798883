#include "node/pods/volume_subpath.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/strings.h"
#include "node/pods/volume_files.h"

namespace dibs::node {
namespace {

/// Makes the missing folders of `path`, each opened before the next is made in it.
Result<> make_below(int root, const std::string& volume, const std::string& path, unsigned mode) {
  std::string done;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    const std::string parent = done.empty() ? std::string(".") : done;
    done = done.empty() ? std::string(part) : cat(done, '/', part);
    const Descriptor above(open_below(root, parent, O_PATH));
    if (above.get() < 0) return file_error("open", cat(volume, '/', parent), errno);
    if (::mkdirat(above.get(), std::string(part).c_str(), 0700) != 0) {
      if (errno == EEXIST) continue;
      return file_error("mkdir", cat(volume, '/', done), errno);
    }
    const Descriptor made(::openat(above.get(), std::string(part).c_str(),
                                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (made.get() < 0 || ::fchmod(made.get(), mode) != 0) {
      return file_error("chmod", cat(volume, '/', done), errno);
    }
  }
  return success();
}

Result<> make_place(const std::string& place, bool folder) {
  if (folder) return make_folder(place, 0750);
  DIBS_CHECK(make_folder(place.substr(0, place.rfind('/')), 0750));
  return write_file(place, "", 0640);
}

}  // namespace

Result<std::string> bind_sub_path(const SubPath& part) {
  const Descriptor root(::open(part.volume_folder.c_str(), O_PATH | O_CLOEXEC));
  struct stat info {};
  if (root.get() < 0 || ::fstat(root.get(), &info) != 0) {
    return file_error("open", part.volume_folder, errno);
  }
  Descriptor found(open_below(root.get(), part.path, O_PATH));
  if (found.get() < 0 && errno == ENOENT) {
    DIBS_CHECK(make_below(root.get(), part.volume_folder, part.path, info.st_mode & 07777U));
    found.reset(open_below(root.get(), part.path, O_PATH));
  }
  if (found.get() < 0) return file_error("open", cat(part.volume_folder, '/', part.path), errno);
  if (::fstat(found.get(), &info) != 0) return file_error("stat", part.path, errno);
  const std::string source = cat("/proc/self/fd/", found.get());

  DIBS_CHECK(unmount_below(part.place));
  DIBS_CHECK(make_place(part.place, S_ISDIR(info.st_mode)));
  if (::mount(source.c_str(), part.place.c_str(), "", MS_BIND, nullptr) == 0) return part.place;
  if (errno != EPERM) return file_error("mount", part.place, errno);
  // Without the right to mount, the pod's containers have no more rights than this process.
  char real[PATH_MAX];
  const ssize_t size = ::readlink(source.c_str(), real, sizeof real);
  if (size < 0) return file_error("readlink", part.path, errno);
  return std::string(real, static_cast<std::size_t>(size));
}

Result<std::string> read_sub_path(const std::string& volume_folder, const std::string& path,
                                  std::size_t limit) {
  const Descriptor root(::open(volume_folder.c_str(), O_PATH | O_CLOEXEC));
  if (root.get() < 0) return file_error("open", volume_folder, errno);
  // Not opened before it is known to be a file: what the pod left there may be a pipe or a device.
  const Descriptor file(open_below(root.get(), path, O_PATH));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return file_error("open", cat(volume_folder, '/', path), ENOENT);
  }
  return read_file(cat("/proc/self/fd/", file.get()), limit).value_or("");
}

}  // namespace dibs::node
