// Processes beside a container's own, its terminal, its ports.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/oci_config.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

using runtime::Fd;

void set_nonblocking(const Fd& fd) {
  if (fd.ok()) ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

std::int64_t read_pid(const std::string& path) {
  auto text = runtime::system_files().read(path);
  return text.ok() ? std::atoll(text->c_str()) : 0;
}

// Bytes into a descriptor that does not block, waiting for room; `stop` ends the wait.
Result<> write_waiting(int fd, int stop, std::string_view bytes, bool packets) {
  // The monitor's buffer; it would cut a longer packet.
  constexpr std::size_t kPacket = 8000;
  while (!bytes.empty()) {
    struct pollfd both[] = {{fd, POLLOUT, 0}, {stop, POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return Error::internal(std::strerror(errno));
    if (both[1].revents != 0) return Error::unavailable("closed");
    const std::size_t size = packets ? std::min(bytes.size(), kPacket) : bytes.size();
    const ssize_t written =
        packets ? ::send(fd, bytes.data(), size, MSG_NOSIGNAL) : ::write(fd, bytes.data(), size);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return Error::unavailable(to_lower(std::strerror(errno)));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return success();
}

// False at the end of the stream.
bool forward(Fd& fd, const std::function<void(std::string_view)>& to) {
  char buffer[32768];
  const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) {
    fd.reset();
    return false;
  }
  if (to) to({buffer, static_cast<std::size_t>(got)});
  return true;
}

// A command in a container: the OCI runtime's process, and the one that it started inside.
struct Exec {
  std::unique_ptr<runtime::Process> process;
  std::string log;
  std::string pid_file;
  std::string process_file;
  bool tty = false;
  ProcessOutput output;
  Mutex writing;
  Fd in DIBS_GUARDED_BY(writing);
  Fd stop;  // an eventfd
  std::atomic<bool> ended = false;

  ~Exec() {
    for (const auto& file : {log, pid_file, process_file}) ::unlink(file.c_str());
  }

  // The runtime's process only waits for the other one, which would go on without it.
  void kill_inside() {
    if (ended) return;
    if (const auto pid = read_pid(pid_file); pid > 0) ::kill(static_cast<pid_t>(pid), SIGKILL);
    process->kill(SIGKILL);
  }
};

class ExecInput : public ProcessInput {
 public:
  explicit ExecInput(std::shared_ptr<Exec> exec) : exec_(std::move(exec)) {}
  ~ExecInput() override { ExecInput::abandon(); }
  void abandon() override {
    const std::uint64_t one = 1;
    (void)!::write(exec_->stop.get(), &one, sizeof one);
    exec_->kill_inside();
  }
  Result<> write(std::string_view bytes) override {
    const MutexLock lock(exec_->writing);
    if (!exec_->in.ok()) return Error::unavailable("the input is closed");
    return write_waiting(exec_->in.get(), exec_->stop.get(), bytes, false);
  }
  void close() override {
    const MutexLock lock(exec_->writing);
    if (exec_->tty && exec_->in.ok()) {
      // A terminal has no end of input but the character for it.
      (void)write_waiting(exec_->in.get(), exec_->stop.get(), "\x04", false).ok();
      return;
    }
    exec_->in.reset();
  }
  void resize(TerminalSize size) override {
    if (exec_->tty) exec_->process->resize(size.height, size.width);
  }

 private:
  std::shared_ptr<Exec> exec_;
};

void pump(const std::shared_ptr<Exec>& exec,
          const std::function<Result<int>(const Exec&, runtime::ExitStatus)>& outcome) {
  runtime::Process& process = *exec->process;
  set_nonblocking(process.out());
  set_nonblocking(process.err());
  // Until the command runs, what comes is the runtime's own complaint, and its log has it too.
  constexpr int kLookAgain = 10;  // milliseconds
  bool running = false;
  std::string early[2];
  const auto pass = [&] {
    for (const int i : {0, 1}) {
      const auto& to = i == 0 ? exec->output.out : exec->output.err;
      if (!early[i].empty() && to) to(early[i]);
      early[i].clear();
    }
  };
  const auto taker = [&](int i) -> std::function<void(std::string_view)> {
    return [&, i](std::string_view bytes) {
      if (!running) return void(early[i].append(bytes));
      const auto& to = i == 0 ? exec->output.out : exec->output.err;
      if (to) to(bytes);
    };
  };
  const auto out = taker(0);
  const auto err = taker(1);
  for (bool ended = false; !ended;) {
    struct pollfd all[] = {{process.exit_fd(), POLLIN, 0},
                           {process.out().get(), POLLIN, 0},
                           {process.err().get(), POLLIN, 0}};
    const bool waiting = !early[0].empty() || !early[1].empty();
    if (::poll(all, 3, waiting ? kLookAgain : -1) < 0 && errno != EINTR) break;
    if (!running && read_pid(exec->pid_file) > 0) {
      running = true;
      pass();
    }
    ended = (all[0].revents & POLLIN) != 0;
    if (all[1].revents != 0) forward(process.out(), out);
    if (all[2].revents != 0) forward(process.err(), err);
  }
  const auto status = process.wait();
  exec->ended = true;
  // What is in the pipes already; what others hold open is not waited for.
  for (Fd* fd : {&process.out(), &process.err()}) {
    struct pollfd left = {fd->get(), POLLIN, 0};
    while (fd->ok() && ::poll(&left, 1, 0) > 0 && forward(*fd, fd == &process.out() ? out : err)) {
    }
  }
  const Result<int> result = outcome(*exec, *status);
  if (result.ok()) pass();
  if (exec->output.ended) exec->output.ended(result);
}

// A connection to a socket, both ways.
struct Connection {
  Fd socket;
  Fd stop;
  Mutex writing;
  std::atomic<bool> closed = false;

  void close() {
    closed = true;
    const std::uint64_t one = 1;
    (void)!::write(stop.get(), &one, sizeof one);
  }
};

std::shared_ptr<Connection> make_connection(Fd socket) {
  auto connection = std::make_shared<Connection>();
  connection->socket = std::move(socket);
  connection->stop = Fd(::eventfd(0, EFD_CLOEXEC));
  set_nonblocking(connection->socket);
  return connection;
}

// Until the other side ends, or ours; true in the first case.
bool read_all(Connection& connection, const std::function<void(std::string_view)>& take) {
  std::string buffer(65536, '\0');
  for (;;) {
    struct pollfd both[] = {{connection.socket.get(), POLLIN, 0},
                            {connection.stop.get(), POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return true;
    if (both[1].revents != 0) return false;
    if (both[0].revents == 0) continue;
    const ssize_t got = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return true;
    take({buffer.data(), static_cast<std::size_t>(got)});
  }
}

class AttachInput : public ProcessInput {
 public:
  AttachInput(std::shared_ptr<Connection> connection, std::string control)
      : connection_(std::move(connection)), control_(std::move(control)) {}
  ~AttachInput() override { connection_->close(); }
  void abandon() override { connection_->close(); }
  Result<> write(std::string_view bytes) override {
    const MutexLock lock(connection_->writing);
    return write_waiting(connection_->socket.get(), connection_->stop.get(), bytes, true);
  }
  void close() override { ::shutdown(connection_->socket.get(), SHUT_WR); }
  void resize(TerminalSize size) override {
    const Fd control(::open(control_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    if (!control.ok()) return;
    const std::string message = cat("1 ", size.height, " ", size.width, "\n");
    (void)!::write(control.get(), message.data(), message.size());
  }

 private:
  std::shared_ptr<Connection> connection_;
  std::string control_;
};

class SocketStream : public PortStream {
 public:
  explicit SocketStream(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}
  ~SocketStream() override { connection_->close(); }
  void abandon() override { connection_->close(); }
  Result<> write(std::string_view bytes) override {
    const MutexLock lock(connection_->writing);
    while (!bytes.empty()) {
      struct pollfd both[] = {{connection_->socket.get(), POLLOUT, 0},
                              {connection_->stop.get(), POLLIN, 0}};
      if (::poll(both, 2, -1) < 0 && errno != EINTR) return Error::internal(std::strerror(errno));
      if (both[1].revents != 0) return Error::unavailable("closed");
      const ssize_t sent =
          ::send(connection_->socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (sent < 0) return Error::unavailable(to_lower(std::strerror(errno)));
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return success();
  }
  void close_write() override { ::shutdown(connection_->socket.get(), SHUT_WR); }

 private:
  std::shared_ptr<Connection> connection_;
};

std::string_view state_name(ContainerState state) {
  switch (state) {
    case ContainerState::created:
      return "CONTAINER_CREATED";
    case ContainerState::running:
      return "CONTAINER_RUNNING";
    case ContainerState::exited:
      return "CONTAINER_EXITED";
    case ContainerState::unknown:
      return "CONTAINER_UNKNOWN";
  }
  return "";
}

}  // namespace

std::uint64_t OciRuntime::begin_stream(std::function<void()> stop) {
  const MutexLock lock(mutex_);
  streams_.emplace(++last_stream_, std::move(stop));
  return last_stream_;
}

void OciRuntime::end_stream(std::uint64_t stream) {
  const MutexLock lock(mutex_);
  streams_.erase(stream);
  changed_.notify_all();
}

Result<OciRuntime::ContainerPtr> OciRuntime::find_running(const std::string& id,
                                                          std::string_view refusal) {
  ContainerPtr container = find_container(id);
  if (!container) {
    return Error::not_found(cat("failed to find container ", dibs::quoted(id), ": not found"));
  }
  const MutexLock lock(mutex_);
  const ContainerState state = container->record.status.state;
  if (state == ContainerState::running) return container;
  return Error::conflict(cat(refusal, "container is in ", state_name(state), " state"));
}

Result<std::unique_ptr<ProcessInput>> OciRuntime::exec(const std::string& id,
                                                       const ExecConfig& config,
                                                       ProcessOutput output) {
  DIBS_TRY(const ContainerPtr container, find_running(id, "failed to exec in container: "));
  DIBS_TRY(const std::string bytes,
           runtime::system_files().read(container_folder(id) + "/config.json"));
  DIBS_TRY(const json::Value oci, json::parse(bytes));
  auto exec = std::make_shared<Exec>();
  const std::string exec_id = new_id();
  const std::string prefix = cat(options_.run, "/x-", exec_id.substr(0, 24));
  exec->log = prefix + ".log";
  exec->pid_file = prefix + ".pid";
  exec->process_file = prefix + ".json";
  exec->tty = config.tty;
  exec->output = std::move(output);
  exec->stop = Fd(::eventfd(0, EFD_CLOEXEC));
  DIBS_CHECK(replace_file(exec->process_file,
                          json::write(build_exec_process(oci, config.command, config.tty))));
  std::vector<std::string> argv = runtime_command(exec->log);
  argv.insert(argv.end(), {"exec", "--process", exec->process_file, "--pid-file", exec->pid_file});
  if (config.tty) argv.push_back("--tty");
  argv.push_back(id);
  using runtime::Stdio;
  auto started = runtime::Process::start({.argv = std::move(argv),
                                          .in = config.stdin_open ? Stdio::pipe : Stdio::null,
                                          .out = Stdio::pipe,
                                          .err = Stdio::pipe,
                                          .terminal = config.tty,
                                          .rows = 24,
                                          .columns = 80});
  if (!started.ok()) return started.error().within("failed to exec in container");
  exec->process = std::move(*started);
  {
    const MutexLock lock(exec->writing);
    // A terminal gets a descriptor of its own, since reading and writing end at different times.
    exec->in = config.tty ? Fd(::fcntl(exec->process->out().get(), F_DUPFD_CLOEXEC, 0))
                          : std::move(exec->process->in());
    set_nonblocking(exec->in);
  }
  const auto outcome = [this, exec_id](const Exec& done,
                                       runtime::ExitStatus status) -> Result<int> {
    if (status.code == 0) return 0;
    // The same number can be the command's own; an error of the runtime is in its log.
    std::string message = logged_error(done.log, "");
    if (message.empty()) return status.code;
    constexpr std::string_view kCreate = "runc create failed: ";
    if (message.starts_with(kCreate)) message = "exec failed: " + message.substr(kCreate.size());
    return Error::internal(cat("failed to exec in container: failed to start exec ",
                               dibs::quoted(exec_id), ": OCI runtime exec failed: ", message));
  };
  const auto stream = begin_stream([exec] { exec->kill_inside(); });
  machine_.executor.post([this, exec, outcome, stream] {
    pump(exec, outcome);
    end_stream(stream);
  });
  return std::unique_ptr<ProcessInput>(std::make_unique<ExecInput>(exec));
}

Result<ExecResult> OciRuntime::exec_sync(const std::string& id,
                                         const std::vector<std::string>& command,
                                         Duration timeout) {
  struct Wait {
    Mutex mutex;
    CondVar changed;
    ExecResult result DIBS_GUARDED_BY(mutex);
    std::optional<Result<int>> ended DIBS_GUARDED_BY(mutex);
  };
  // Probes need no more, and a command that never stops talking must not fill the memory.
  static constexpr std::size_t kLimit = 16 * 1024 * 1024;
  auto wait = std::make_shared<Wait>();
  const auto take = [wait](std::string ExecResult::*part, std::string_view bytes) {
    const MutexLock lock(wait->mutex);
    std::string& to = wait->result.*part;
    to.append(bytes.substr(0, kLimit - std::min(kLimit, to.size())));
  };
  auto started = exec(id, {.command = command},
                      {.out = [take](std::string_view bytes) { take(&ExecResult::out, bytes); },
                       .err = [take](std::string_view bytes) { take(&ExecResult::err, bytes); },
                       .ended =
                           [wait](Result<int> code) {
                             const MutexLock lock(wait->mutex);
                             wait->ended = std::move(code);
                             wait->changed.notify_all();
                           }});
  if (!started.ok()) return started.error();
  MutexLock lock(wait->mutex);
  const auto done = [&]() DIBS_REQUIRES(wait->mutex) { return wait->ended.has_value(); };
  if (timeout > Duration::zero()) {
    if (!wait->changed.wait_for(lock, timeout, done)) {
      lock.unlock();
      started->reset();
      return Error::timeout(cat("command ", dibs::quoted(join(command, " ")), " timed out"));
    }
  } else {
    wait->changed.wait(lock, done);
  }
  if (!wait->ended->ok()) return wait->ended->error();
  wait->result.exit_code = **wait->ended;
  return std::move(wait->result);
}

Result<std::unique_ptr<ProcessInput>> OciRuntime::attach(const std::string& id,
                                                         ProcessOutput output) {
  DIBS_TRY(const ContainerPtr container, find_running(id, ""));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = cat(options_.run, "/s/", id, "/attach");
  if (path.size() >= sizeof address.sun_path) {
    return Error::internal(cat("socket path too long: ", path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.ok() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Error::unavailable(cat("failed to attach container: ", to_lower(std::strerror(errno))));
  }
  auto connection = make_connection(std::move(socket));
  const auto stream = begin_stream([connection] { connection->close(); });
  machine_.executor.post([this, connection, container, stream, output = std::move(output)] {
    const bool by_container = read_all(*connection, [&](std::string_view packet) {
      // The first byte tells the stream.
      constexpr char kOut = 2, kErr = 3;
      if (packet.size() < 2) return;
      if (packet[0] == kOut && output.out) output.out(packet.substr(1));
      if (packet[0] == kErr && output.err) output.err(packet.substr(1));
    });
    if (!by_container) {
      if (output.ended) output.ended(0);
      return end_stream(stream);
    }
    // The monitor closes the socket shortly before or after it writes the exit file.
    MutexLock lock(mutex_);
    const bool ended = changed_.wait_for(lock, std::chrono::seconds(10), [&] {
      return container->record.phase != ContainerPhase::running;
    });
    const int code = container->record.status.exit_code;
    lock.unlock();
    if (output.ended) {
      output.ended(ended ? Result<int>(code)
                         : Error::internal("the connection to the container was lost"));
    }
    end_stream(stream);
  });
  return std::unique_ptr<ProcessInput>(
      std::make_unique<AttachInput>(connection, container_folder(id) + "/ctl"));
}

Result<std::unique_ptr<PortStream>> OciRuntime::connect_port(const std::string& sandbox_id,
                                                             int port, PortOutput output) {
  const SandboxPtr sandbox = find_sandbox(sandbox_id);
  if (!sandbox) {
    return Error::not_found(
        cat("failed to find sandbox ", dibs::quoted(sandbox_id), ": not found"));
  }
  if (sandbox->record.phase != SandboxPhase::ready) {
    return Error::conflict(cat("sandbox container ", dibs::quoted(sandbox_id), " is not running"));
  }
  const std::string space =
      sandbox->record.config.host_network ? "" : namespace_folder(sandbox_id) + "/net";
  auto socket = connect_inside(space, port);
  if (!socket.ok()) {
    return socket.error()
        .within(
            cat("failed to connect to localhost:", port, " inside namespace ", dibs::quoted(space)))
        .within("failed to execute portforward in network namespace " + dibs::quoted(space));
  }
  auto connection = make_connection(std::move(*socket));
  machine_.executor.post([connection, output = std::move(output)] {
    read_all(*connection, [&](std::string_view bytes) {
      if (output.data) output.data(bytes);
    });
    if (output.ended) output.ended(success());
  });
  return std::unique_ptr<PortStream>(std::make_unique<SocketStream>(connection));
}

}  // namespace dibs::node
