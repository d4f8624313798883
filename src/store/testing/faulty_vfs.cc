#include "store/testing/faulty_vfs.h"

#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <string>
#include <thread>

#include "base/strings.h"
#include "store/testing/faulty_disk.h"

namespace dibs::store::testing {
namespace {

/// An open file.
struct Handle {
  FaultyDisk& disk;
  FilePtr file;
  bool syncs_folder = false;  // at the next sync
  int level = SQLITE_LOCK_NONE;
  std::uint64_t seen = 0;  // failed syncs
  unsigned region_readers = 0;
  unsigned region_writers = 0;
};

/// How SQLite holds it.
struct OpenFile {
  sqlite3_file base;
  Handle* handle;
};

Handle& of(sqlite3_file* file) { return *reinterpret_cast<OpenFile*>(file)->handle; }
FaultyDisk& of(sqlite3_vfs* vfs) { return *static_cast<FaultyDisk*>(vfs->pAppData); }

int result_of(Outcome outcome, int otherwise) {
  switch (outcome) {
    case Outcome::ok:
      return SQLITE_OK;
    case Outcome::full:
      return SQLITE_FULL;
    case Outcome::short_read:
      return SQLITE_IOERR_SHORT_READ;
    case Outcome::io_error:
      return otherwise;
  }
  return otherwise;
}

int read(sqlite3_file* file, void* into, int size, sqlite3_int64 offset) {
  Handle& handle = of(file);
  return result_of(handle.disk.read(*handle.file, static_cast<std::size_t>(offset),
                                    {static_cast<char*>(into), static_cast<std::size_t>(size)}),
                   SQLITE_IOERR_READ);
}

int write(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  Handle& handle = of(file);
  return result_of(
      handle.disk.write(*handle.file, static_cast<std::size_t>(offset),
                        {static_cast<const char*>(from), static_cast<std::size_t>(size)}),
      SQLITE_IOERR_WRITE);
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  Handle& handle = of(file);
  return result_of(handle.disk.truncate(*handle.file, static_cast<std::size_t>(size)),
                   SQLITE_IOERR_TRUNCATE);
}

int sync(sqlite3_file* file, int) {
  Handle& handle = of(file);
  const Outcome outcome = handle.disk.sync(*handle.file, handle.seen);
  if (outcome != Outcome::ok) return SQLITE_IOERR_FSYNC;
  // Whether that works, the system's layer does not look at either.
  if (std::exchange(handle.syncs_folder, false)) (void)handle.disk.sync_names();
  return SQLITE_OK;
}

int size(sqlite3_file* file, sqlite3_int64* out) {
  *out = static_cast<sqlite3_int64>(of(file).disk.size(*of(file).file));
  return SQLITE_OK;
}

int lock(sqlite3_file* opened, int level) {
  Handle& handle = of(opened);
  if (handle.level >= level) return SQLITE_OK;
  const Outcome outcome = handle.disk.call(Call::lock);
  if (outcome != Outcome::ok) return SQLITE_IOERR_LOCK;
  const MutexLock guard(handle.disk.mutex);
  FileState& file = *handle.file;
  const bool mine_reserved = handle.level >= SQLITE_LOCK_RESERVED;
  if (level == SQLITE_LOCK_SHARED) {
    if (file.pending || file.exclusive) return SQLITE_BUSY;
    ++file.readers;
  } else if (level == SQLITE_LOCK_RESERVED) {
    if (file.reserved) return SQLITE_BUSY;
    file.reserved = true;
  } else {
    if (!mine_reserved && file.reserved) return SQLITE_BUSY;
    file.reserved = file.pending = true;
    handle.level = SQLITE_LOCK_PENDING;
    if (file.readers > 1) return SQLITE_BUSY;
    file.exclusive = true;
  }
  handle.level = level;
  return SQLITE_OK;
}

int unlock(sqlite3_file* opened, int level) {
  Handle& handle = of(opened);
  if (handle.level <= level) return SQLITE_OK;
  const MutexLock guard(handle.disk.mutex);
  FileState& file = *handle.file;
  if (handle.level >= SQLITE_LOCK_RESERVED) file.reserved = file.pending = file.exclusive = false;
  if (level == SQLITE_LOCK_NONE) --file.readers;
  handle.level = level;
  return SQLITE_OK;
}

int check_reserved(sqlite3_file* opened, int* out) {
  const MutexLock guard(of(opened).disk.mutex);
  *out = of(opened).file->reserved ? 1 : 0;
  return SQLITE_OK;
}

int control(sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file*) { return 4096; }
int characteristics(sqlite3_file*) { return SQLITE_IOCAP_POWERSAFE_OVERWRITE; }

int map_region(sqlite3_file* opened, int region, int size, int extend, void volatile** out) {
  Handle& handle = of(opened);
  *out = nullptr;
  const Outcome outcome = handle.disk.call(Call::map);
  if (outcome != Outcome::ok) return result_of(outcome, SQLITE_IOERR_SHMMAP);
  const MutexLock guard(handle.disk.mutex);
  auto& regions = handle.file->regions;
  const auto index = static_cast<std::size_t>(region);
  if (index >= regions.size() && extend == 0) return SQLITE_OK;
  while (regions.size() <= index) {
    regions.push_back(std::make_unique<char[]>(static_cast<std::size_t>(size)));
  }
  *out = regions[index].get();
  return SQLITE_OK;
}

int unlock_regions(Handle& handle, unsigned mask) {
  FileState& file = *handle.file;
  for (unsigned i = 0; i < file.region_readers.size(); ++i) {
    const unsigned bit = 1U << i;
    if ((mask & handle.region_readers & bit) != 0) --file.region_readers[i];
    if ((mask & handle.region_writers & bit) != 0) file.region_writers[i] = false;
  }
  handle.region_readers &= ~mask;
  handle.region_writers &= ~mask;
  return SQLITE_OK;
}

int lock_regions(sqlite3_file* opened, int first, int count, int flags) {
  Handle& handle = of(opened);
  const unsigned mask = ((1U << count) - 1) << first;
  if ((flags & SQLITE_SHM_UNLOCK) != 0) {
    const MutexLock guard(handle.disk.mutex);
    return unlock_regions(handle, mask);
  }
  if (handle.disk.call(Call::lock) != Outcome::ok) return SQLITE_IOERR_SHMLOCK;
  const MutexLock guard(handle.disk.mutex);
  FileState& file = *handle.file;
  const bool shared = (flags & SQLITE_SHM_SHARED) != 0;
  for (int i = first; i < first + count; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const unsigned bit = 1U << i;
    const int mine = (handle.region_readers & bit) != 0 ? 1 : 0;
    if (file.region_writers[slot] && (handle.region_writers & bit) == 0) return SQLITE_BUSY;
    if (!shared && file.region_readers[slot] > mine) return SQLITE_BUSY;
  }
  for (int i = first; i < first + count; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const unsigned bit = 1U << i;
    if (shared && (handle.region_readers & bit) == 0) {
      ++file.region_readers[slot];
      handle.region_readers |= bit;
    } else if (!shared) {
      file.region_writers[slot] = true;
      handle.region_writers |= bit;
    }
  }
  return SQLITE_OK;
}

void barrier(sqlite3_file*) { std::atomic_thread_fence(std::memory_order_seq_cst); }

int unmap_regions(sqlite3_file* opened, int remove) {
  Handle& handle = of(opened);
  const MutexLock guard(handle.disk.mutex);
  unlock_regions(handle, 0xff);
  // The last one asks for it.
  if (remove != 0) handle.file->regions.clear();
  return SQLITE_OK;
}

int close(sqlite3_file* file) {
  Handle& handle = of(file);
  unlock(file, SQLITE_LOCK_NONE);
  unmap_regions(file, 0);
  delete &handle;
  return SQLITE_OK;
}

constexpr sqlite3_io_methods kMethods = {2,
                                         close,
                                         read,
                                         write,
                                         truncate,
                                         sync,
                                         size,
                                         lock,
                                         unlock,
                                         check_reserved,
                                         control,
                                         sector_size,
                                         characteristics,
                                         map_region,
                                         lock_regions,
                                         barrier,
                                         unmap_regions,
                                         nullptr,
                                         nullptr};

int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  FaultyDisk& disk = of(vfs);
  FilePtr found;
  if (path == nullptr) {
    found = std::make_shared<FileState>();
  } else {
    Outcome outcome = Outcome::ok;
    found = disk.open(path, (flags & SQLITE_OPEN_CREATE) != 0, outcome);
    if (!found) return result_of(outcome, SQLITE_CANTOPEN);
  }
  const bool journal =
      (flags & (SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL)) != 0;
  std::uint64_t seen = 0;
  {
    const MutexLock guard(disk.mutex);
    seen = found->failed_syncs;
  }
  reinterpret_cast<OpenFile*>(file)->handle =
      new Handle{disk, std::move(found), journal, SQLITE_LOCK_NONE, seen};
  file->pMethods = &kMethods;
  if (out_flags != nullptr) *out_flags = flags;
  return SQLITE_OK;
}

int remove(sqlite3_vfs* vfs, const char* path, int sync_folder) {
  bool was_there = false;
  const Outcome outcome = of(vfs).remove(path, was_there);
  if (outcome != Outcome::ok) return SQLITE_IOERR_DELETE;
  if (!was_there) return SQLITE_IOERR_DELETE_NOENT;
  if (sync_folder != 0 && of(vfs).sync_names() != Outcome::ok) return SQLITE_IOERR_DIR_FSYNC;
  return SQLITE_OK;
}

int access(sqlite3_vfs* vfs, const char* path, int, int* out) {
  *out = of(vfs).exists(path) ? 1 : 0;
  return SQLITE_OK;
}

int full_path(sqlite3_vfs*, const char* path, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", path);
  return SQLITE_OK;
}

int randomness(sqlite3_vfs* vfs, int size, char* out) {
  of(vfs).random({out, static_cast<std::size_t>(size)});
  return size;
}

/// Another thread may have what is waited for; but a fault that lasts will not end by waiting.
int sleep(sqlite3_vfs* vfs, int microseconds) {
  if (!of(vfs).has_lasting_fault()) {
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(microseconds, 1000)));
  }
  return microseconds;
}

int current_time(sqlite3_vfs*, double* out) {
  *out = 2460000.5;
  return SQLITE_OK;
}

int last_error(sqlite3_vfs*, int, char*) { return EIO; }

}  // namespace

struct FaultyVfs::Registered {
  std::string name;
  sqlite3_vfs vfs = {};
};

FaultyVfs::FaultyVfs(FaultyDisk& disk) : registered_(std::make_unique<Registered>()) {
  registered_->name = cat("faulty-", reinterpret_cast<std::uintptr_t>(&disk));
  sqlite3_vfs& vfs = registered_->vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(OpenFile);
  vfs.mxPathname = 512;
  vfs.zName = registered_->name.c_str();
  vfs.pAppData = &disk;
  vfs.xOpen = open;
  vfs.xDelete = remove;
  vfs.xAccess = access;
  vfs.xFullPathname = full_path;
  vfs.xRandomness = randomness;
  vfs.xSleep = sleep;
  vfs.xCurrentTime = current_time;
  vfs.xGetLastError = last_error;
  sqlite3_vfs_register(&vfs, 0);
}

FaultyVfs::~FaultyVfs() { sqlite3_vfs_unregister(&registered_->vfs); }

const char* FaultyVfs::name() const { return registered_->name.c_str(); }

}  // namespace dibs::store::testing
