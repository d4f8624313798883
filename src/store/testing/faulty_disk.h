#pragma once
// A disk in memory that fails on purpose, for tests of the embedded store.
//
// Of each file there is what programs read (the system's cache) and what has reached the disk;
// between the two lies a list of writes and truncations since the last sync. The same holds for the
// names of the files, which a sync of the folder makes durable. A power loss keeps any part of what
// was not synced: everything, nothing, all up to some moment, some of the writes, or some of their
// sectors. A kill of the process loses nothing, but what was not synced is still not durable.
//
// A sync that fails leaves each write on the disk or not, and the system believes from then on that
// all of it is there: no later sync writes it again. Every other open handle is told of the failure
// once, as Linux does.
//
// Everything is decided by the seed and the order of calls. faulty_vfs.h gives it to SQLite.
//
// Thread-safe; image(), set_image() and corrupt() are for when nobody has a file open.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "store/disk.h"

namespace dibs::store::testing {

enum class Call { open, read, write, sync, truncate, remove, lock, map, folder, allocate };
constexpr Call kCalls[] = {Call::open,   Call::read, Call::write, Call::sync,   Call::truncate,
                           Call::remove, Call::lock, Call::map,   Call::folder, Call::allocate};
std::string_view name_of(Call call);

enum class Fault { io_error, short_read, full, kill, power_loss };
std::string_view name_of(Fault fault);

/// What goes wrong, and when.
struct Plan {
  Fault fault = Fault::io_error;
  std::optional<Call> call = {};  // unset: any
  std::size_t at = 1;             // the n-th such call from now
  /// From then on, until mend(). A full disk then has as much room as is freed.
  bool lasts = false;
};

enum class Outcome { ok, io_error, short_read, full };

/// The content of one file.
struct FileState {
  struct Write {
    bool truncates = false;
    std::size_t offset = 0;  // the new length, where it truncates
    std::string bytes = {};
  };
  std::string cache = {};
  std::string disk = {};
  std::vector<Write> unsynced = {};
  std::uint64_t failed_syncs = 0;

  // Locks of SQLite's, and its shared memory.
  int readers = 0;
  bool reserved = false;
  bool pending = false;
  bool exclusive = false;
  std::vector<std::unique_ptr<char[]>> regions = {};
  std::array<int, 8> region_readers = {};
  std::array<bool, 8> region_writers = {};
};
using FilePtr = std::shared_ptr<FileState>;

class FaultyDisk : public Disk {
 public:
  /// `sector`: what is written whole or not at all.
  FaultyDisk(std::uint64_t seed, std::size_t sector);
  ~FaultyDisk() override;

  // --- what goes wrong ---

  void plan(const Plan& plan);
  /// Whether the plan has come about.
  bool has_failed() const;
  /// Whether the process that uses it is gone: every call fails until restart().
  bool is_down() const;
  /// The fault is over, and the disk is large.
  void mend();
  /// Kills the process now, or cuts the power.
  void crash(Fault how);
  /// After a crash, and when the files of the dead process are closed.
  void restart();

  /// The files there are, and how large.
  std::map<std::string, std::size_t> files() const;
  /// Turns one bit over.
  void corrupt(const std::string& path, std::size_t byte, unsigned bit);
  /// All of its content, durable.
  std::map<std::string, std::string> image() const;
  void set_image(const std::map<std::string, std::string>& image);

  // --- for the store ---

  const char* vfs() const override;
  Result<std::unique_ptr<DiskLock>> lock(const std::string& path) override;
  Result<> create(const std::string& path) override;
  Result<> sync_folder(const std::string& path) override;
  bool allocate(const std::string& path, std::size_t bytes) override;
  bool remove(const std::string& path) override;

  // --- for SQLite ---

  FilePtr open(const std::string& path, bool create, Outcome& outcome);
  Outcome read(FileState& file, std::size_t offset, std::span<char> into);
  Outcome write(FileState& file, std::size_t offset, std::string_view bytes);
  Outcome truncate(FileState& file, std::size_t size);
  /// `seen` is the handle's count of failed syncs.
  Outcome sync(FileState& file, std::uint64_t& seen);
  Outcome sync_names();
  Outcome remove(const std::string& path, bool& was_there);
  bool exists(const std::string& path) const;
  std::size_t size(const FileState& file) const;
  /// For calls without data: locks, shared memory.
  Outcome call(Call call);
  bool has_lasting_fault() const;
  void random(std::span<char> bytes);

  /// Guards the locks and the shared memory of all files, too.
  mutable Mutex mutex;

 private:
  struct Vfs;
  class Lock;

  Outcome judge(Call call) DIBS_REQUIRES(mutex);
  void go_down(Fault how) DIBS_REQUIRES(mutex);
  bool coin(unsigned of = 2) DIBS_REQUIRES(mutex) { return random_() % of == 0; }
  std::size_t used() const DIBS_REQUIRES(mutex);
  void put(FileState& file, FileState::Write write) DIBS_REQUIRES(mutex);
  void settle(FileState& file) DIBS_REQUIRES(mutex);
  void settle_names() DIBS_REQUIRES(mutex);
  void apply(std::string& to, const FileState::Write& write, unsigned lost_of_16)
      DIBS_REQUIRES(mutex);
  void name(const std::string& path, FilePtr file) DIBS_REQUIRES(mutex);

  const std::size_t sector_;
  std::unique_ptr<Vfs> vfs_;
  std::mt19937_64 random_ DIBS_GUARDED_BY(mutex);
  std::optional<Plan> plan_ DIBS_GUARDED_BY(mutex);
  std::size_t seen_ DIBS_GUARDED_BY(mutex) = 0;  // calls that the plan is about
  bool failed_ DIBS_GUARDED_BY(mutex) = false;
  std::optional<Fault> down_ DIBS_GUARDED_BY(mutex);
  std::size_t capacity_ DIBS_GUARDED_BY(mutex) = SIZE_MAX;
  std::map<std::string, FilePtr> names_ DIBS_GUARDED_BY(mutex);
  std::map<std::string, FilePtr> durable_names_ DIBS_GUARDED_BY(mutex);
  std::vector<std::pair<std::string, FilePtr>> unsynced_names_ DIBS_GUARDED_BY(mutex);
  std::map<std::string, bool> locked_ DIBS_GUARDED_BY(mutex);
};

}  // namespace dibs::store::testing
