#pragma once
// The audit log's file: lines at its end, moved aside when it has grown large.
//
// add() never waits for the disk: lines gather in memory, and a task of the executor writes what
// has gathered. What was added is in the file when the destructor returns. A file that cannot be
// written is tried again each second; once kMostWaiting bytes wait, further lines are lost and
// counted.
//
// A file that is moved aside is NAME-2026-01-02T15-04-05.000.EXT, as others call it.
//
// Thread-safe.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "runtime/runtime.h"

namespace dibs::server {

struct AuditLogOptions {
  std::string path = {};  // "-": standard output
  int max_size = 100;     // megabytes; 0: never moved aside
  int max_age = 366;      // days that files moved aside are kept; 0: for ever
  int max_backups = 100;  // that are kept; 0: all
};

class AuditLog {
 public:
  static constexpr std::size_t kMostWaiting = std::size_t{64} << 20;

  /// Errors name the flag.
  static Result<std::unique_ptr<AuditLog>> open(AuditLogOptions options, runtime::Runtime& runtime);
  /// Nobody may add any more.
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  /// `line` ends with a line break.
  void add(std::string_view line);
  /// Lines that could not be kept.
  std::uint64_t lost() const;

 private:
  struct State;
  explicit AuditLog(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace dibs::server
