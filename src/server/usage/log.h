#pragma once
// The records of usage in a folder (docs/formats/usage.md): who has held which devices, moment by
// moment as far back as there is room, then as sums of days.
//
// Lines are added to a file; when it has grown large the next begins with what is held then, so
// that a restart reads one file and an old one can go. What goes is added to the sums first. A last
// line that a kill has torn is cut off.
//
// Thread-safe, but for open(), flush() and their like: one caller at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "server/usage/table.h"

namespace dibs::server {

struct UsageLimits {
  std::size_t file = std::size_t{16} << 20;
  std::size_t all = std::size_t{256} << 20;  // files; then the oldest becomes sums
  std::size_t day_rows = 100'000;            // rows of sums; then the oldest day goes
};

/// What a claim holds, since when.
struct UsageHold {
  std::int64_t since = 0;
  std::string holding;
};
using UsageHolds = std::unordered_map<std::string, UsageHold>;  // by "namespace/name"

class UsageLog {
 public:
  explicit UsageLog(std::string folder, UsageLimits limits = {});
  ~UsageLog();
  UsageLog(const UsageLog&) = delete;
  UsageLog& operator=(const UsageLog&) = delete;

  struct Start {
    UsageHolds held;
    std::int64_t known = 0;  // up to when; 0: nothing is
  };
  /// Reads what there is. Writes nothing but the end of a torn line. Errors: of the folder.
  Result<Start> open();

  // Lines; they are written by flush().
  void add_end(const UsageInterval& interval);
  void add_begin(std::string_view claim, const UsageHold& hold);
  /// Nothing else had changed until then.
  void add_known(std::int64_t at);
  /// The next file is wanted.
  bool is_full() const;
  void begin_file(std::int64_t at, const UsageHolds& held);

  /// Writes what was added, and makes room. What cannot be written is tried again next time; where
  /// that lasts for long, it is dropped. Errors: unavailable.
  Result<> flush();
  /// Makes what was written last through a loss of power.
  void sync();

  /// A picture of this moment, read without disturbing anybody.
  class View {
   public:
    /// All that ended after the plan's begin, into the table. Errors: unavailable.
    Result<> read(UsageTable& table) const;
    /// From then on everything is known moment by moment; before it, by sums.
    std::int64_t exact_since() const;
    /// Adds the sums of the days between the plan's ends.
    void read_sums(UsageTable& table) const;

   private:
    friend class UsageLog;
    struct Data;
    std::shared_ptr<const Data> data_;
  };
  View view() const;

 private:
  struct File;
  struct Sums;
  using FilePtr = std::shared_ptr<File>;
  /// Lines on their way to the disk.
  struct Piece {
    bool begins_file = false;
    std::int64_t latest = 0;  // end of an interval in it
    std::string lines;
  };

  Result<Start> replay() DIBS_REQUIRES(mutex_);
  Piece& last_piece() DIBS_REQUIRES(mutex_);
  void add_line(std::string_view line, std::int64_t latest) DIBS_REQUIRES(mutex_);
  /// The next piece to write; null where there is none.
  std::shared_ptr<Piece> next_piece();
  Result<> write(Piece& piece);
  Result<> open_next();
  Result<> make_room();
  void drop_waiting();
  Error failure(const std::string& path, std::string_view what) const;

  const std::string folder_;
  const UsageLimits limits_;

  mutable Mutex mutex_;
  std::vector<FilePtr> files_ DIBS_GUARDED_BY(mutex_);  // the oldest first
  std::shared_ptr<const Sums> sums_ DIBS_GUARDED_BY(mutex_);
  std::vector<Piece> waiting_ DIBS_GUARDED_BY(mutex_);
  std::shared_ptr<Piece> writing_ DIBS_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ DIBS_GUARDED_BY(mutex_) = 0;
  std::size_t file_bytes_ DIBS_GUARDED_BY(mutex_) = 0;   // of the last file, with what waits
  std::size_t first_bytes_ DIBS_GUARDED_BY(mutex_) = 0;  // of its beginning
  bool wants_file_ DIBS_GUARDED_BY(mutex_) = true;       // lines have nowhere to go

  // Of who flushes.
  int fd_ = -1;
  std::uint64_t last_number_ = 0;
  bool synced_ = true;
};

}  // namespace dibs::server
