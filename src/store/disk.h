#pragma once
// The disk under the embedded store: the file layer that SQLite uses, and the few things that the
// store does there beside SQLite. Tests hand in one that fails.
//
// Thread-safe.

#include <cstddef>
#include <memory>
#include <string>

#include "base/result.h"

namespace dibs::store {

/// Held while it lives, and not longer than the process, however that ends.
class DiskLock {
 public:
  virtual ~DiskLock() = default;
};

class Disk {
 public:
  virtual ~Disk() = default;

  /// SQLite's name of the file layer; null: the system's.
  virtual const char* vfs() const = 0;
  /// Locks PATH.lock, which it makes; never waits. Errors: unavailable, with who holds it.
  virtual Result<std::unique_ptr<DiskLock>> lock(const std::string& path) = 0;
  /// Makes an empty file that only this user may read, where there is none.
  virtual Result<> create(const std::string& path) = 0;
  /// Makes durable which files there are in the folder of `path`.
  virtual Result<> sync_folder(const std::string& path) = 0;
  /// Makes a file that keeps `bytes` of the disk, where it does not yet. False when less than a
  /// quarter of that would be left for others: then there is no file.
  virtual bool allocate(const std::string& path, std::size_t bytes) = 0;
  /// False when there was nothing to remove.
  virtual bool remove(const std::string& path) = 0;
};

/// The machine's.
Disk& system_disk();

/// Whether an error of the system is about want of room.
bool is_full(int os_error);
/// The same of one of these.
bool is_full(const Error& error);
Error disk_full(const std::string& path);
Error cannot_open(const std::string& path, int os_error);

}  // namespace dibs::store
