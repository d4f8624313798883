#include "runtime/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"

extern char** environ;

namespace dibs::runtime {
namespace {

Error system_error(std::string_view what, int number) {
  return Error::internal(cat(what, ": ", std::strerror(number)));
}

// A write to a child that has ended shall be an error, not the end of this process.
void ignore_broken_pipes() {
  static const bool done = [] {
    struct sigaction now = {};
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL) {
      ::signal(SIGPIPE, SIG_IGN);
    }
    return true;
  }();
  (void)done;
}

class Actions {
 public:
  Actions() { ::posix_spawn_file_actions_init(&actions_); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  explicit Attributes(bool new_session) {
    ::posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (new_session) flags |= POSIX_SPAWN_SETSID;
    ::posix_spawnattr_setflags(&attributes_, flags);
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  posix_spawnattr_t* get() { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const auto& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

// One of the three standard descriptors. The child's end is moved out of the way of those that are
// still to be placed: dup2 onto a number that is another one's source would lose it.
Result<> place(Actions& actions, Stdio kind, int number, Fd& parents_end, std::vector<Fd>& childs) {
  if (kind == Stdio::inherit) return success();
  if (kind == Stdio::to_out) {
    ::posix_spawn_file_actions_adddup2(actions.get(), 1, number);
    return success();
  }
  if (kind == Stdio::null) {
    ::posix_spawn_file_actions_addopen(actions.get(), number, "/dev/null",
                                       number == 0 ? O_RDONLY : O_WRONLY, 0);
    return success();
  }
  DIBS_TRY(Pipe pipe, make_pipe());
  Fd& childs_end = number == 0 ? pipe.read_end : pipe.write_end;
  parents_end = std::move(number == 0 ? pipe.write_end : pipe.read_end);
  ::posix_spawn_file_actions_adddup2(actions.get(), childs_end.get(), number);
  childs.push_back(std::move(childs_end));
  return success();
}

// A copy with a number that no child's descriptor has.
Result<Fd> moved_up(int fd) {
  Fd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 64));
  if (!copy.ok()) return system_error("duplicate a descriptor", errno);
  return copy;
}

ExitStatus status_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {info.si_status, 0};
  return {128 + info.si_status, info.si_status};
}

Duration steady_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

int poll_limit(Duration deadline) {
  if (deadline == Duration::zero()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_now());
  return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

bool read_some(Fd& fd, std::string& out) {
  char buffer[65536];
  const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (got <= 0) {
    fd.reset();
    return false;
  }
  out.append(buffer, static_cast<std::size_t>(got));
  return true;
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_error("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

struct Process::Ending {
  Mutex mutex;
  std::optional<ExitStatus> status DIBS_GUARDED_BY(mutex);
};

Result<std::unique_ptr<Process>> Process::start(const ProcessOptions& options) {
  ignore_broken_pipes();
  if (options.argv.empty()) return Error::invalid("no command");
  const std::string program = find_program(options.argv[0]);
  if (program.empty()) {
    return Error::not_found(cat(options.argv[0], ": executable file not found in $PATH"));
  }
  std::unique_ptr<Process> process(new Process());
  process->ending_ = std::make_unique<Ending>();
  Actions actions;
  std::vector<Fd> childs;
  std::vector<int> moved;
  for (const auto& [fd, number] : options.descriptors) {
    DIBS_TRY(Fd copy, moved_up(fd));
    moved.push_back(copy.get());
    childs.push_back(std::move(copy));
  }
  if (options.terminal) {
    int master = -1, slave = -1;
    struct winsize size = {};
    size.ws_row = static_cast<unsigned short>(options.rows);
    size.ws_col = static_cast<unsigned short>(options.columns);
    char name[128];
    if (::openpty(&master, &slave, name, nullptr, options.rows > 0 ? &size : nullptr) != 0) {
      return system_error("open a terminal", errno);
    }
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
    ::fcntl(slave, F_SETFD, FD_CLOEXEC);
    process->out_ = Fd(master);
    childs.emplace_back(slave);
    // The leader of a session gets the first terminal that it opens.
    ::posix_spawn_file_actions_addopen(actions.get(), 0, name, O_RDWR, 0);
    ::posix_spawn_file_actions_adddup2(actions.get(), 0, 1);
    ::posix_spawn_file_actions_adddup2(actions.get(), 0, 2);
  } else {
    DIBS_CHECK(place(actions, options.in, 0, process->in_, childs));
    DIBS_CHECK(place(actions, options.out, 1, process->out_, childs));
    DIBS_CHECK(place(actions, options.err, 2, process->err_, childs));
  }
  int next = 3;
  for (std::size_t i = 0; i < options.descriptors.size(); ++i) {
    ::posix_spawn_file_actions_adddup2(actions.get(), moved[i], options.descriptors[i].second);
    next = std::max(next, options.descriptors[i].second + 1);
  }
  ::posix_spawn_file_actions_addclosefrom_np(actions.get(), next);
  if (!options.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(actions.get(), options.directory.c_str());
  }
  Attributes attributes(options.new_session || options.terminal);
  const auto argv = pointers(options.argv);
  const auto env = options.env ? pointers(*options.env) : std::vector<char*>();
  const int failed = ::posix_spawn(&process->pid_, program.c_str(), actions.get(), attributes.get(),
                                   argv.data(), options.env ? env.data() : environ);
  if (failed != 0) {
    process->pid_ = -1;
    return system_error(cat("start ", program), failed);
  }
  process->exit_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, process->pid_, 0)));
  return process;
}

Process::~Process() {
  if (pid_ < 0) return;
  kill(SIGKILL);
  wait();
}

std::optional<ExitStatus> Process::wait(Duration timeout) {
  {
    const MutexLock lock(ending_->mutex);
    if (ending_->status) return ending_->status;
  }
  const Duration deadline = timeout > Duration::zero() ? steady_now() + timeout : Duration::zero();
  if (exit_.ok()) {
    struct pollfd ended = {exit_.get(), POLLIN, 0};
    for (;;) {
      const int ready = ::poll(&ended, 1, poll_limit(deadline));
      if (ready > 0) break;
      if (ready == 0) return std::nullopt;
      if (errno != EINTR) break;
    }
  } else {
    siginfo_t info = {};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) {
      if (errno != EINTR) break;
    }
  }
  // One waiter reaps; the number is free for another process from then on.
  const MutexLock lock(ending_->mutex);
  if (ending_->status) return ending_->status;
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0) {
    if (errno != EINTR) {
      ending_->status = ExitStatus{255, 0};
      return ending_->status;
    }
  }
  ending_->status = status_of(info);
  return ending_->status;
}

void Process::kill(int signal) {
  const MutexLock lock(ending_->mutex);
  if (!ending_->status) ::kill(pid_, signal);
}

void Process::resize(unsigned rows, unsigned columns) {
  struct winsize size = {};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  if (out_.ok()) ::ioctl(out_.get(), TIOCSWINSZ, &size);
}

Result<Output> run(ProcessOptions options, std::string_view input, Duration timeout) {
  if (!input.empty()) options.in = Stdio::pipe;
  if (options.out == Stdio::null) options.out = Stdio::pipe;
  if (options.err == Stdio::null) options.err = Stdio::pipe;
  const Duration deadline = timeout > Duration::zero() ? steady_now() + timeout : Duration::zero();
  DIBS_TRY(auto process, Process::start(options));
  if (process->in()) ::fcntl(process->in().get(), F_SETFL, O_NONBLOCK);
  Output output;
  // Until the child ends, not until its pipes close: what it left behind may hold them open.
  for (bool ended = false; !ended;) {
    struct pollfd all[] = {{process->exit_fd(), POLLIN, 0},
                           {process->out().get(), POLLIN, 0},
                           {process->err().get(), POLLIN, 0},
                           {process->in().get(), POLLOUT, 0}};
    const int ready = ::poll(all, 4, poll_limit(deadline));
    if (ready < 0 && errno != EINTR) break;
    if (ready == 0) {
      return Error::timeout(cat("command ", quoted(join(options.argv, " ")), " timed out"));
    }
    if (ready < 0) continue;
    ended = all[0].revents != 0;
    if (all[1].revents != 0) read_some(process->out(), output.out);
    if (all[2].revents != 0) read_some(process->err(), output.err);
    if (all[3].revents != 0) {
      const ssize_t written = ::write(process->in().get(), input.data(), input.size());
      if (written > 0) input.remove_prefix(static_cast<std::size_t>(written));
      const bool later = written < 0 && (errno == EINTR || errno == EAGAIN);
      if (input.empty() || (written <= 0 && !later)) process->in().reset();
    }
  }
  output.status = *process->wait();
  for (Fd* fd : {&process->out(), &process->err()}) {
    if (!fd->ok()) continue;
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
    while (read_some(*fd, fd == &process->out() ? output.out : output.err)) {
    }
  }
  return output;
}

Result<std::string> run_checked(ProcessOptions options, std::string_view input, Duration timeout) {
  const std::string name = options.argv.empty() ? "" : options.argv[0];
  DIBS_TRY(Output output, run(std::move(options), input, timeout));
  if (output.status.code == 0) return std::move(output.out);
  const std::string_view said = trim(output.err).empty() ? trim(output.out) : trim(output.err);
  if (said.empty()) return Error::internal(cat(name, ": exit status ", output.status.code));
  return Error::internal(cat(name, ": ", said));
}

std::string find_program(std::string_view name) {
  if (name.empty()) return "";
  if (name.find('/') != std::string_view::npos) return std::string(name);
  const char* path = std::getenv("PATH");
  const std::string folders = cat(path != nullptr ? path : "",
                                  ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
  for (const auto folder : split(folders, ':')) {
    if (folder.empty()) continue;
    std::string candidate = cat(folder, '/', name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

}  // namespace dibs::runtime
