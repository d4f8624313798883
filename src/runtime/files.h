#pragma once
// Small files: configuration, keys, checkpoints, sockets' neighbours.
//
// A write replaces the whole file at once: a reader, and the machine after a power cut, sees the
// old content or the new one, never a mixture. Paths are absolute or relative to the working
// directory, and use '/'. Errors: not_found, already_exists, unavailable (a lock that somebody
// holds), internal.
//
// Thread-safe.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dibs::runtime {

/// Held while it lives.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class Files {
 public:
  virtual ~Files() = default;

  virtual Result<std::string> read(const std::string& path) = 0;
  /// Durable when it returns. The folder must exist.
  virtual Result<> write(const std::string& path, std::string_view bytes, unsigned mode = 0600) = 0;
  /// Success too when the file is not there.
  virtual Result<> remove(const std::string& path) = 0;
  virtual bool exists(const std::string& path) = 0;
  /// With the missing folders above it.
  virtual Result<> make_dirs(const std::string& path, unsigned mode = 0700) = 0;
  /// Names of files and folders in a folder, sorted.
  virtual Result<std::vector<std::string>> list(const std::string& path) = 0;
  /// Creates the file where needed and locks it against other processes; never waits.
  virtual Result<std::unique_ptr<FileLock>> lock(const std::string& path) = 0;
};

/// The machine's.
Files& system_files();

/// Empty at first; it has a root folder, and "" is the working directory.
std::unique_ptr<Files> make_memory_files();

}  // namespace dibs::runtime
