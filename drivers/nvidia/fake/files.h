#pragma once
// Files of the fake: read whole, written whole, locked. It is a library that gets into other
// people's processes, so it asks the system itself instead of being handed runtime::Files.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::drivers::nvidia::fake {

/// Tells one content of a path from the next; {} where there is no file.
struct Stamp {
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t changed = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

Stamp stamp_of(const std::string& path);
Result<std::string> read_file(const std::string& path);
/// Replaces the whole file at once: who is killed leaves the old content or the new one.
Result<> write_file(const std::string& path, std::string_view bytes, unsigned mode = 0644);

/// Held while it lives, against other processes and other threads alike.
class FileLock {
 public:
  static Result<FileLock> take(const std::string& path);
  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace dibs::drivers::nvidia::fake
