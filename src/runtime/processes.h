#pragma once
// Child processes: started with pipes or a terminal, waited for, ended.
//
// A child gets exactly the descriptors that its options name, and default signals; nothing of the
// parent leaks into it. Calls block; code that must not block runs them on the executor. A Process
// that is destroyed while its child runs kills and reaps it: what shall outlive the parent has to
// leave by itself, as daemons do.

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace dibs::runtime {

/// An open descriptor; closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  explicit operator bool() const { return ok(); }
  void reset();
  /// To whoever closes it from now on.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

/// Both ends close on exec.
struct Pipe {
  Fd read_end = {};
  Fd write_end = {};
};
Result<Pipe> make_pipe();

enum class Stdio : std::uint8_t {
  null,     // /dev/null
  inherit,  // the parent's
  pipe,
  to_out,  // stderr alone: where stdout goes
};

struct ProcessOptions {
  /// The program is looked up in PATH unless it has a slash.
  std::vector<std::string> argv = {};
  /// KEY=value; nothing: the parent's.
  std::optional<std::vector<std::string>> env = {};
  std::string directory = {};
  Stdio in = Stdio::null;
  Stdio out = Stdio::null;
  Stdio err = Stdio::null;
  /// A new session with a terminal for all three; the others are then not looked at.
  bool terminal = false;
  unsigned rows = 0;
  unsigned columns = 0;
  /// Further descriptors: the parent's, and the number it has in the child, from 3 upwards without
  /// a gap.
  std::vector<std::pair<int, int>> descriptors = {};
  bool new_session = false;
};

struct ExitStatus {
  int code = 0;  // 128 + the signal where one ended it
  int signal = 0;
};

/// Thread-safe but for the descriptors, which belong to whoever uses them.
class Process {
 public:
  static Result<std::unique_ptr<Process>> start(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  /// Readable once the child has ended: for poll().
  int exit_fd() const { return exit_.get(); }
  /// The parent's ends; with a terminal `out()` is the terminal's, to be read and written.
  Fd& in() { return in_; }
  Fd& out() { return out_; }
  Fd& err() { return err_; }

  /// Waits; nothing when `timeout` passed first (zero: no limit).
  std::optional<ExitStatus> wait(Duration timeout = Duration::zero());
  /// No effect on one that has ended.
  void kill(int signal);
  void resize(unsigned rows, unsigned columns);

 private:
  Process() = default;

  struct Ending;
  pid_t pid_ = -1;
  Fd exit_;
  Fd in_;
  Fd out_;
  Fd err_;
  std::unique_ptr<Ending> ending_;
};

struct Output {
  std::string out = {};
  std::string err = {};
  ExitStatus status = {};
};

/// Starts, feeds `input`, collects both streams until the child has ended. A child that takes
/// longer than `timeout` (zero: no limit) is killed, and the error is of kind timeout.
Result<Output> run(ProcessOptions options, std::string_view input = {},
                   Duration timeout = Duration::zero());
/// As above; an exit code other than 0 is an error with what the child said.
Result<std::string> run_checked(ProcessOptions options, std::string_view input = {},
                                Duration timeout = Duration::zero());

/// The path that a program's name stands for, "" when there is none. Where PATH does not have it,
/// the folders of system programs are looked at too.
std::string find_program(std::string_view name);

}  // namespace dibs::runtime
