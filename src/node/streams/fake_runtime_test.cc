#include "node/streams/fake_runtime.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
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

using net::FdStream;

/// A process of this machine on the loop. It has ended when its outputs have.
struct Process : std::enable_shared_from_this<Process> {
  pid_t pid = 0;
  bool tty = false;
  ProcessOutput output;
  std::function<void()> over;
  std::shared_ptr<FdStream> in;
  std::shared_ptr<FdStream> out;
  std::shared_ptr<FdStream> err;
  std::atomic<int> open = 0;
  std::atomic<bool> reaped = false;

  std::shared_ptr<FdStream> read(const std::shared_ptr<net::EventLoop>& loop, int fd,
                                 std::function<void(std::string_view)> to) {
    ++open;
    FdStream::Handlers handlers;
    handlers.data = std::move(to);
    handlers.ended = [self = shared_from_this()](bool) {
      if (--self->open == 0) self->end();
    };
    return FdStream::open(loop, fd, std::move(handlers));
  }

  void end() {
    int status = 0;
    ::waitpid(pid, &status, 0);
    reaped = true;
    for (const auto& stream : {in, out, err}) {
      if (stream) stream->close();
    }
    over();
    output.ended(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
};

class FakeInput final : public ProcessInput {
 public:
  explicit FakeInput(std::shared_ptr<Process> process) : process_(std::move(process)) {}
  ~FakeInput() override { FakeInput::abandon(); }
  void abandon() override {
    hold(false);
    process_->in->close();
    if (!process_->reaped) ::kill(-process_->pid, SIGKILL);
  }
  void write(std::string_view bytes) override { process_->in->write(bytes); }
  std::size_t queued() const override { return process_->in->queued(); }
  void close() override {
    if (process_->tty) {
      write("\x04");
    } else {
      process_->in->finish();
    }
  }
  void hold(bool held) override {
    for (const auto& stream : {process_->out, process_->err}) {
      if (stream) stream->hold(held);
    }
  }
  void resize(TerminalSize size) override {
    winsize wanted{};
    wanted.ws_col = static_cast<unsigned short>(size.width);
    wanted.ws_row = static_cast<unsigned short>(size.height);
    if (process_->tty) ::ioctl(terminal, TIOCSWINSZ, &wanted);
  }
  int terminal = -1;

 private:
  std::shared_ptr<Process> process_;
};

class FakePort final : public StreamInput {
 public:
  explicit FakePort(std::shared_ptr<FdStream> stream) : stream_(std::move(stream)) {}
  ~FakePort() override { stream_->close(); }
  void abandon() override { stream_->close(); }
  void write(std::string_view bytes) override { stream_->write(bytes); }
  std::size_t queued() const override { return stream_->queued(); }
  void close() override { stream_->finish(); }
  void hold(bool held) override { stream_->hold(held); }

 private:
  std::shared_ptr<FdStream> stream_;
};

}  // namespace

FakeRuntime::~FakeRuntime() {
  MutexLock lock(mutex_);
  changed_.wait(lock, [&] { return running_ == 0; });
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
  process->output = std::move(output);
  int terminal = -1;
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
    process->pid = ::forkpty(&terminal, nullptr, nullptr, nullptr);
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
  int error = 0;
  const bool failed = ::read(report[0], &error, sizeof error) == sizeof error;
  ::close(report[0]);
  if (failed) {
    ::waitpid(process->pid, nullptr, 0);
    for (const int fd : {in[1], out[0], err[0], terminal}) {
      if (fd >= 0) ::close(fd);
    }
    return Error::internal(cat(
        "exec: ", quoted(config.command[0]), ": ",
        error == ENOENT ? "executable file not found in $PATH" : to_lower(std::strerror(error))));
  }
  ++running_;
  process->over = [this] {
    const MutexLock lock(mutex_);
    --running_;
    changed_.notify_all();
  };
  const auto& loop = loop_.loop();
  process->in = FdStream::open(loop, config.tty ? ::fcntl(terminal, F_DUPFD_CLOEXEC, 0) : in[1],
                               {.drained = process->output.drained});
  // Counted before one of them can end.
  ++process->open;
  process->out = process->read(loop, config.tty ? terminal : out[0], process->output.out);
  if (!config.tty) process->err = process->read(loop, err[0], process->output.err);
  loop->post([process] {
    if (--process->open == 0) process->end();
  });
  auto input = std::make_unique<FakeInput>(process);
  input->terminal = terminal;
  return std::unique_ptr<ProcessInput>(std::move(input));
}

Result<std::unique_ptr<StreamInput>> FakeRuntime::connect_port(const std::string&, int port,
                                                               PortOutput output) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    ::close(fd);
    return Error::unavailable(
        cat("dial tcp4 127.0.0.1:", port, ": connect: ", to_lower(std::strerror(error))));
  }
  ++running_;
  FdStream::Handlers handlers;
  handlers.data = std::move(output.data);
  handlers.ended = [this, ended = std::move(output.ended)](bool) {
    ended(success());
    const MutexLock lock(mutex_);
    --running_;
    changed_.notify_all();
  };
  handlers.drained = std::move(output.drained);
  return std::unique_ptr<StreamInput>(
      std::make_unique<FakePort>(FdStream::open(loop_.loop(), fd, std::move(handlers))));
}

void FakeRuntime::listen(std::function<void(const RuntimeEvent&)> listener) {
  const MutexLock lock(mutex_);
  listeners_.push_back(std::move(listener));
}

}  // namespace dibs::node
