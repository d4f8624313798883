#pragma once
// The driver's process: started, killed, ended, and what it writes.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "runtime/processes.h"

namespace dibs::trial {

class Program {
 public:
  static constexpr Duration kNoWait = std::chrono::nanoseconds(1);  // zero is no limit

  /// Nothing is started yet. Its output is added to the file.
  Program(std::vector<std::string> argv, std::vector<std::string> environment, std::string output);
  /// As kill().
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Result<> start();
  /// `patience`: how long it is given to end, if it is about to.
  bool is_running(Duration patience = kNoWait);
  /// At once and with whatever it started itself, as the end of a machine.
  void kill();
  /// By SIGTERM, to the process alone, as a container is ended. Nothing: it did not end in time.
  std::optional<runtime::ExitStatus> end(Duration timeout);
  /// Of the last process; nothing while it runs.
  std::optional<runtime::ExitStatus> ended() const { return ended_; }

  /// Bytes written so far, and the last lines of what was written after the first `from` of them.
  std::size_t written() const;
  std::string last_lines(std::size_t from) const;

 private:
  const std::vector<std::string> argv_;
  const std::vector<std::string> environment_;
  const std::string output_;
  std::unique_ptr<runtime::Process> process_;
  std::optional<runtime::ExitStatus> ended_;
};

/// "status 3", "signal 11".
std::string text_of(const runtime::ExitStatus& status);

}  // namespace dibs::trial
