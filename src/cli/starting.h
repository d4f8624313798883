#pragma once
// What a long-running command does until it is ready: it can be interrupted, tells how far it is,
// and goes into the background.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "runtime/interruption.h"

namespace dibs::cli {

/// While it lives, SIGINT and SIGTERM end the process at once, after `last` is done. That is as
/// good as any other end: whatever is half made is found and finished, or taken away, by the next
/// start. begin_process() comes before it.
class Interruption {
 public:
  explicit Interruption(std::string_view command, std::function<void()> last = {});

 private:
  runtime::Interruption waiting_;
};

/// A line on a terminal that is written over, where something takes longer than a moment; silent
/// elsewhere.
class Progress {
 public:
  Progress(std::string_view command, std::size_t all);
  /// The line goes.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void tell(std::size_t done, std::string_view what) const;

 private:
  const std::string command_;
  const std::size_t all_;
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  mutable bool is_shown_ = false;
};

/// A child that goes on when the command has returned.
class Background {
 public:
  /// In the child: nothing. In the parent, once the child has left or ended: the exit status of the
  /// command. Before any thread is started. Errors: no process can be made.
  Result<std::optional<int>> begin();
  /// The child is ready: from here on its words go to the file, and no terminal ends it.
  Result<> leave(const std::string& log);

 private:
  int pipe_ = -1;
};

}  // namespace dibs::cli
