#include "cli/starting.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"

namespace dibs::cli {
namespace {

constexpr std::chrono::milliseconds kMoment{500};

}  // namespace

Interruption::Interruption(std::string_view command, std::function<void()> last)
    : waiting_({SIGINT, SIGTERM}, Duration(0),
               [name = std::string(command), last = std::move(last)] {
                 std::fprintf(stderr, "dibs %s: interrupted before it was ready\n", name.c_str());
                 if (last) last();
               }) {}

Progress::Progress(std::string_view command, std::size_t all)
    : command_(command), all_(all), is_terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (is_shown_) std::fprintf(stderr, "\r\033[K");
}

void Progress::tell(std::size_t done, std::string_view what) const {
  if (!is_terminal_ || std::chrono::steady_clock::now() - began_ < kMoment) return;
  is_shown_ = true;
  // The cursor goes back, so that a line of the log takes the place of this one.
  std::fprintf(stderr, "\r\033[Kdibs %s: %zu of %zu %.*s\r", command_.c_str(), done, all_,
               static_cast<int>(what.size()), what.data());
}

Result<std::optional<int>> Background::begin() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::internal(cat("pipe: ", std::strerror(errno)));
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return Error::internal(cat("fork: ", std::strerror(errno)));
  if (child == 0) {
    ::close(ends[0]);
    pipe_ = ends[1];
    return std::optional<int>();
  }
  ::close(ends[1]);
  char byte = 0;
  ssize_t got = 0;
  do {
    got = ::read(ends[0], &byte, 1);
  } while (got < 0 && errno == EINTR);
  ::close(ends[0]);
  if (got == 1) return std::optional(0);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return std::optional(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

Result<> Background::leave(const std::string& log) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file < 0 || nothing < 0)
    return Error::internal(cat("open ", log, ": ", std::strerror(errno)));
  ::setsid();
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  ::close(file);
  ::close(nothing);
  const bool told = ::write(pipe_, "r", 1) == 1;
  ::close(pipe_);
  if (!told) return Error::internal("whoever started this in the background is gone");
  return success();
}

}  // namespace dibs::cli
