#include "runtime/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/strings.h"

namespace dibs::runtime {

namespace {

/// Of a pipe or a device, which may have no end, as /dev/zero: it must not take all memory.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Error system_error(std::string_view action, const std::string& path, int number) {
  Code code = Code::internal;
  if (number == ENOENT) code = Code::not_found;
  if (number == EEXIST) code = Code::already_exists;
  if (number == EWOULDBLOCK) code = Code::unavailable;
  return Error(code, cat(action, ' ', path, ": ", std::strerror(number)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }

 private:
  int fd_;
};

std::string folder_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

class SystemLock : public FileLock {
 public:
  explicit SystemLock(int fd) : file_(fd) {}

 private:
  Descriptor file_;
};

class SystemFiles : public Files {
 public:
  Result<std::string> read(const std::string& path) override {
    Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.ok()) return system_error("open", path, errno);
    struct stat what = {};
    const bool has_end = ::fstat(file.get(), &what) == 0 && S_ISREG(what.st_mode);
    std::string bytes;
    char buffer[65536];
    for (;;) {
      ssize_t got = ::read(file.get(), buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("read", path, errno);
      if (got == 0) return bytes;
      bytes.append(buffer, static_cast<std::size_t>(got));
      if (!has_end && bytes.size() > kMostBytes) {
        return Error::too_large(
            cat("read ", path, ": is no file, and has more than ", kMostBytes >> 20, " MiB"));
      }
    }
  }

  Result<> write(const std::string& path, std::string_view bytes, unsigned mode) override {
    std::string temporary = cat(path, ".", ::getpid(), ".", written_.fetch_add(1), ".tmp");
    Result<> written = write_new(temporary, bytes, mode);
    if (written.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
      written = system_error("rename", temporary, errno);
    }
    if (!written.ok()) {
      ::unlink(temporary.c_str());
      return written;
    }
    return sync_folder(folder_of(path));
  }

  Result<> remove(const std::string& path) override {
    if (::unlink(path.c_str()) == 0) return sync_folder(folder_of(path));
    if (errno == ENOENT) return success();
    return system_error("remove", path, errno);
  }

  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  Result<> make_dirs(const std::string& path, unsigned mode) override {
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      std::string part = path.substr(0, end);
      if (::mkdir(part.c_str(), mode) == 0) continue;
      struct stat status {};
      int number = errno;
      if (::stat(part.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) continue;
        number = ENOTDIR;
      }
      return system_error("mkdir", part, number);
    }
    return success();
  }

  Result<std::vector<std::string>> list(const std::string& path) override {
    DIR* folder = ::opendir(path.empty() ? "." : path.c_str());
    if (folder == nullptr) return system_error("list", path, errno);
    std::vector<std::string> names;
    while (dirent* entry = ::readdir(folder)) {
      std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(folder);
    std::sort(names.begin(), names.end());
    return names;
  }

  Result<std::unique_ptr<FileLock>> lock(const std::string& path) override {
    int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return system_error("open", path, errno);
    auto held = std::make_unique<SystemLock>(fd);
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) return system_error("lock", path, errno);
    return std::unique_ptr<FileLock>(std::move(held));
  }

 private:
  Result<> write_new(const std::string& path, std::string_view bytes, unsigned mode) {
    Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file.ok()) return system_error("create", path, errno);
    // The mode given to open() is cut by the umask.
    if (::fchmod(file.get(), mode) != 0) return system_error("chmod", path, errno);
    if (!write_all(file.get(), bytes)) return system_error("write", path, errno);
    if (::fsync(file.get()) != 0) return system_error("sync", path, errno);
    return success();
  }

  // A new or removed name is durable only when its folder is.
  Result<> sync_folder(const std::string& path) {
    Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.ok()) return system_error("open", path, errno);
    if (::fsync(folder.get()) != 0) return system_error("sync", path, errno);
    return success();
  }

  std::atomic<unsigned> written_{0};
};

}  // namespace

Files& system_files() {
  static SystemFiles files;
  return files;
}

}  // namespace dibs::runtime
