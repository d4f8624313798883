#include "store/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace dibs::store {
namespace {

constexpr std::string_view kDiskFull = "the disk is full, cannot write ";

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

FileDescriptor open_private(const std::string& path) {
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
}

class SystemLock : public DiskLock {
 public:
  explicit SystemLock(FileDescriptor fd) : fd_(std::move(fd)) {}

 private:
  const FileDescriptor fd_;
};

class SystemDisk : public Disk {
 public:
  const char* vfs() const override { return nullptr; }

  Result<std::unique_ptr<DiskLock>> lock(const std::string& path) override {
    const std::string name = cat(path, ".lock");
    FileDescriptor fd = open_private(name);
    if (fd.get() < 0) return cannot_open(name, errno);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) return cannot_open(name, errno);
      char owner[32] = {};
      const auto size = ::pread(fd.get(), owner, sizeof(owner) - 1, 0);
      const auto pid = size > 0 ? trim(std::string_view(owner, static_cast<std::size_t>(size)))
                                : std::string_view();
      return Error::unavailable(cat(path, " is in use by another process",
                                    pid.empty() ? std::string() : cat(" (", pid, ")"),
                                    ": stop it, or choose another data directory"));
    }
    // Only for the message above: a failure to write it does no harm.
    const std::string pid = cat(::getpid(), "\n");
    if (::ftruncate(fd.get(), 0) == 0) {
      [[maybe_unused]] const auto written = ::pwrite(fd.get(), pid.data(), pid.size(), 0);
    }
    return std::unique_ptr<DiskLock>(std::make_unique<SystemLock>(std::move(fd)));
  }

  Result<> create(const std::string& path) override {
    if (open_private(path).get() < 0) return cannot_open(path, errno);
    return success();
  }

  Result<> sync_folder(const std::string& path) override {
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) return cannot_open(folder, errno);
    // Some file systems cannot do it, and say so.
    if (::fsync(fd.get()) != 0 && errno != EINVAL) return cannot_open(folder, errno);
    return success();
  }

  bool allocate(const std::string& path, std::size_t bytes) override {
    const FileDescriptor fd = open_private(path);
    if (fd.get() < 0) return false;
    const auto wanted = static_cast<off_t>(bytes);
    struct stat info {};
    // Blocks, not the length: a file with holes keeps no room.
    const bool whole =
        ::fstat(fd.get(), &info) == 0 && info.st_size == wanted && info.st_blocks * 512 >= wanted;
    // Some more, which is given back: a disk that is full but for this is full.
    const bool held = whole || (::posix_fallocate(fd.get(), 0, wanted + wanted / 4) == 0 &&
                                ::ftruncate(fd.get(), wanted) == 0);
    if (!held) ::unlink(path.c_str());
    return held;
  }

  bool remove(const std::string& path) override { return ::unlink(path.c_str()) == 0; }
};

}  // namespace

Disk& system_disk() {
  static SystemDisk disk;
  return disk;
}

bool is_full(int os_error) { return os_error == ENOSPC || os_error == EDQUOT; }
bool is_full(const Error& error) { return error.message().starts_with(kDiskFull); }

Error disk_full(const std::string& path) {
  return Error::unavailable(cat(kDiskFull, path, ": free some space"));
}

Error cannot_open(const std::string& path, int os_error) {
  if (os_error == EROFS || os_error == EACCES || os_error == EPERM) {
    return Error::unavailable(
        cat("cannot write ", path, ": it or its directory is read-only for this user"));
  }
  if (is_full(os_error)) return disk_full(path);
  return Error::unavailable(cat("cannot open ", path, ": ", std::strerror(os_error),
                                ": check that the directory exists and is writable"));
}

}  // namespace dibs::store
