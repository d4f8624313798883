#include "node/streams/fake_runtime.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"

namespace dibs::node {
namespace {

/// What the reader and the handle share; the descriptors close with the last of them.
struct Process {
  ~Process() {
    close_in();
    if (out >= 0) ::close(out);
    if (err >= 0) ::close(err);
  }
  void close_in() {
    const MutexLock lock(mutex);
    if (in >= 0 && !tty) ::close(in);
    in = -1;
  }
  void kill() {
    const MutexLock lock(mutex);
    if (!reaped) ::kill(-pid, SIGKILL);
  }
  Mutex mutex;
  pid_t pid = 0;
  int in DIBS_GUARDED_BY(mutex) = -1;  // the terminal's only end with a terminal
  int out = -1;
  int err = -1;
  bool tty = false;
  bool reaped DIBS_GUARDED_BY(mutex) = false;
};

class FakeInput final : public ProcessInput {
 public:
  explicit FakeInput(std::shared_ptr<Process> process) : process_(std::move(process)) {}
  ~FakeInput() override { FakeInput::abandon(); }
  void abandon() override {
    process_->close_in();
    process_->kill();
  }
  Result<> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      int fd = -1;
      {
        const MutexLock lock(process_->mutex);
        fd = process_->in;
      }
      if (fd < 0) return Error::unavailable("closed");
      pollfd entry{fd, POLLOUT, 0};
      ::poll(&entry, 1, 100);
      const auto count = ::write(fd, bytes.data(), bytes.size());
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
      if (count < 0 && errno != EAGAIN && errno != EINTR) return Error::unavailable("broken pipe");
    }
    return success();
  }
  void close() override {
    if (process_->tty) {
      (void)write("\x04");
    } else {
      process_->close_in();
    }
  }
  void resize(TerminalSize size) override {
    winsize wanted{};
    wanted.ws_col = static_cast<unsigned short>(size.width);
    wanted.ws_row = static_cast<unsigned short>(size.height);
    if (process_->tty) ::ioctl(process_->out, TIOCSWINSZ, &wanted);
  }

 private:
  std::shared_ptr<Process> process_;
};

void read_outputs(Process& process, const ProcessOutput& output) {
  char buffer[32 * 1024];
  bool out_open = true;
  bool err_open = process.err >= 0;
  while (out_open || err_open) {
    pollfd entries[2] = {{out_open ? process.out : -1, POLLIN, 0},
                         {err_open ? process.err : -1, POLLIN, 0}};
    ::poll(entries, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (entries[i].revents == 0) continue;
      const auto count = ::read(entries[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        (i == 0 ? output.out : output.err)({buffer, static_cast<std::size_t>(count)});
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        (i == 0 ? out_open : err_open) = false;
      }
    }
  }
}

class FakePort final : public PortStream {
 public:
  explicit FakePort(std::shared_ptr<int> fd) : fd_(std::move(fd)) {}
  ~FakePort() override { ::shutdown(*fd_, SHUT_RDWR); }
  void abandon() override { ::shutdown(*fd_, SHUT_RDWR); }
  Result<> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const auto count = ::send(*fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return Error::unavailable("broken pipe");
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return success();
  }
  void close_write() override { ::shutdown(*fd_, SHUT_WR); }

 private:
  std::shared_ptr<int> fd_;
};

}  // namespace

FakeRuntime::~FakeRuntime() {
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

std::string FakeRuntime::add(const std::string& pod_uid, const std::string& name,
                             const std::string& log_path) {
  const MutexLock lock(mutex_);
  const std::string sandbox_id = cat("sandbox-", pod_uid);
  bool known = false;
  for (const auto& sandbox : sandboxes_) known = known || sandbox.id == sandbox_id;
  if (!known) {
    SandboxStatus sandbox;
    sandbox.id = sandbox_id;
    sandbox.uid = pod_uid;
    sandbox.state = SandboxState::ready;
    sandboxes_.push_back(sandbox);
  }
  ContainerStatus container;
  container.id = cat(pod_uid, "-", name, "-", containers_.size());
  container.sandbox_id = sandbox_id;
  container.name = name;
  container.attempt = static_cast<unsigned>(containers_.size());
  container.state = ContainerState::running;
  container.log_path = log_path;
  containers_.push_back(container);
  return container.id;
}

void FakeRuntime::stop(const std::string& id) {
  std::vector<std::function<void(const RuntimeEvent&)>> listeners;
  RuntimeEvent event;
  {
    const MutexLock lock(mutex_);
    for (auto& container : containers_) {
      if (container.id != id) continue;
      container.state = ContainerState::exited;
      event.sandbox_id = container.sandbox_id;
    }
    listeners = listeners_;
  }
  event.container_id = id;
  for (const auto& listener : listeners) listener(event);
}

bool FakeRuntime::wait_for_none_running(Duration timeout) {
  MutexLock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return running_ == 0; });
}

Result<SandboxStatus> FakeRuntime::sandbox_status(const std::string& id) {
  const MutexLock lock(mutex_);
  for (const auto& sandbox : sandboxes_) {
    if (sandbox.id == id) return sandbox;
  }
  return Error::not_found(cat("no sandbox ", id));
}

Result<std::vector<SandboxStatus>> FakeRuntime::list_sandboxes() {
  const MutexLock lock(mutex_);
  return sandboxes_;
}

Result<ContainerStatus> FakeRuntime::container_status(const std::string& id) {
  const MutexLock lock(mutex_);
  for (const auto& container : containers_) {
    if (container.id == id) return container;
  }
  return Error::not_found(cat("no container ", id));
}

Result<std::vector<ContainerStatus>> FakeRuntime::list_containers() {
  const MutexLock lock(mutex_);
  return containers_;
}

Result<std::unique_ptr<ProcessInput>> FakeRuntime::exec(const std::string&,
                                                        const ExecConfig& config,
                                                        ProcessOutput output) {
  return spawn(config, std::move(output));
}

Result<std::unique_ptr<ProcessInput>> FakeRuntime::attach(const std::string&,
                                                          ProcessOutput output) {
  ExecConfig config;
  config.command = {"/bin/sh", "-c", "while read x; do echo got $x; done; echo over"};
  config.stdin_open = true;
  return spawn(config, std::move(output));
}

Result<std::unique_ptr<ProcessInput>> FakeRuntime::spawn(const ExecConfig& config,
                                                         ProcessOutput output) {
  auto process = std::make_shared<Process>();
  process->tty = config.tty;
  int in[2] = {-1, -1};
  int out[2] = {-1, -1};
  int err[2] = {-1, -1};
  int report[2] = {-1, -1};
  std::vector<char*> arguments;
  for (const std::string& word : config.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (::pipe2(report, O_CLOEXEC) != 0) return Error::internal("pipe");
  if (config.tty) {
    process->pid = ::forkpty(&process->out, nullptr, nullptr, nullptr);
  } else {
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0 ||
        ::pipe2(err, O_CLOEXEC) != 0) {
      return Error::internal("pipe");
    }
    process->pid = ::fork();
  }
  if (process->pid == 0) {
    if (!config.tty) {
      ::setpgid(0, 0);
      const int null = ::open("/dev/null", O_RDONLY);
      ::dup2(config.stdin_open ? in[0] : null, 0);
      ::dup2(out[1], 1);
      ::dup2(err[1], 2);
    }
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    [[maybe_unused]] const auto told = ::write(report[1], &error, sizeof error);
    ::_exit(127);
  }
  ::close(report[1]);
  for (const int fd : {in[0], out[1], err[1]}) {
    if (fd >= 0) ::close(fd);
  }
  if (!config.tty) {
    process->out = out[0];
    process->err = err[0];
    ::fcntl(in[1], F_SETFL, O_NONBLOCK);
  }
  {
    const MutexLock lock(process->mutex);
    process->in = config.tty ? process->out : in[1];
  }
  int error = 0;
  const bool failed = ::read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  if (failed) {
    ::waitpid(process->pid, nullptr, 0);
    const MutexLock lock(process->mutex);
    process->reaped = true;
    return Error::internal(cat(
        "exec: ", quoted(config.command[0]), ": ",
        error == ENOENT ? "executable file not found in $PATH" : to_lower(std::strerror(error))));
  }
  ++running_;
  const MutexLock lock(mutex_);
  threads_.emplace_back([this, process, output = std::move(output)] {
    read_outputs(*process, output);
    int status = 0;
    ::waitpid(process->pid, &status, 0);
    {
      MutexLock reaped(process->mutex);
      process->reaped = true;
    }
    {
      MutexLock counted(mutex_);
      --running_;
    }
    changed_.notify_all();
    output.ended(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  });
  return std::unique_ptr<ProcessInput>(new FakeInput(process));
}

Result<std::unique_ptr<PortStream>> FakeRuntime::connect_port(const std::string&, int port,
                                                              PortOutput output) {
  const std::shared_ptr<int> fd(new int(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
                                [](int* held) {
                                  ::close(*held);
                                  delete held;
                                });
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(*fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Error::unavailable(
        cat("dial tcp4 127.0.0.1:", port, ": connect: ", to_lower(std::strerror(errno))));
  }
  const MutexLock lock(mutex_);
  threads_.emplace_back([fd, output = std::move(output)] {
    char buffer[32 * 1024];
    while (true) {
      const auto count = ::recv(*fd, buffer, sizeof buffer, 0);
      if (count <= 0) break;
      output.data({buffer, static_cast<std::size_t>(count)});
    }
    output.ended(success());
  });
  return std::unique_ptr<PortStream>(new FakePort(fd));
}

void FakeRuntime::listen(std::function<void(const RuntimeEvent&)> listener) {
  const MutexLock lock(mutex_);
  listeners_.push_back(std::move(listener));
}

}  // namespace dibs::node
