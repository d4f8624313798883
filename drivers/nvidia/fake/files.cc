#include "drivers/nvidia/fake/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/strings.h"

namespace dibs::drivers::nvidia::fake {
namespace {

Error failed(std::string_view doing, const std::string& path) {
  const int why = errno;
  std::string message = cat(doing, " ", path, ": ", std::strerror(why));
  return why == ENOENT ? Error::not_found(std::move(message)) : Error::internal(std::move(message));
}

}  // namespace

Stamp stamp_of(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_size,
          info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

Result<std::string> read_file(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open", path);
  std::string bytes;
  char buffer[8192];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      const bool broken = got < 0;
      const Error error = broken ? failed("read", path) : Error::internal("");
      close(fd);
      if (broken) return error;
      return bytes;
    }
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<> write_file(const std::string& path, std::string_view bytes, unsigned mode) {
  // A name of its own for each process and thread, so that two that write do not mix.
  const std::string made = cat(path, ".new.", getpid(), ".", gettid());
  const int fd = open(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) return failed("create", made);
  // The mask of the process must not take the bit away that lets a script run.
  fchmod(fd, mode);
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      Error error = failed("write", made);
      close(fd);
      unlink(made.c_str());
      return error;
    }
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
  close(fd);
  if (rename(made.c_str(), path.c_str()) != 0) {
    Error error = failed("replace", path);
    unlink(made.c_str());
    return error;
  }
  return success();
}

Result<FileLock> FileLock::take(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return failed("open", path);
  while (flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    Error error = failed("lock", path);
    close(fd);
    return error;
  }
  return FileLock(fd);
}

FileLock::~FileLock() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace dibs::drivers::nvidia::fake
