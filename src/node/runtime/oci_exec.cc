// Processes beside a container's own.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "net/fd_stream.h"
#include "node/runtime/oci_config.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

using net::FdStream;
using runtime::Fd;

std::int64_t read_pid(const std::string& path) {
  auto text = runtime::system_files().read(path);
  return text.ok() ? std::atoll(text->c_str()) : 0;
}

// A command in a container: the OCI runtime's process, and the one that it started inside. It ends
// when the process has, and what it wrote until then was handed on.
class Exec : public net::EventLoop::Source, public std::enable_shared_from_this<Exec> {
 public:
  using Outcome = std::function<Result<int>(const std::string& log, runtime::ExitStatus)>;

  /// The runtime's files begin with `prefix`.
  Exec(std::shared_ptr<net::EventLoop> loop, runtime::Timers& timers, const std::string& prefix,
       bool tty, ProcessOutput output)
      : log(prefix + ".log"),
        pid_file(prefix + ".pid"),
        process_file(prefix + ".json"),
        loop_(std::move(loop)),
        timers_(timers),
        tty_(tty),
        output_(std::move(output)) {}
  ~Exec() override {
    for (const auto& file : {log, pid_file, process_file}) ::unlink(file.c_str());
  }

  const std::string log;
  const std::string pid_file;
  const std::string process_file;

  void begin(std::unique_ptr<runtime::Process> process, Outcome outcome,
             std::function<void()> over) {
    process_ = std::move(process);
    outcome_ = std::move(outcome);
    over_ = std::move(over);
    // A terminal gets a descriptor of its own, since reading and writing end at different times.
    Fd in =
        tty_ ? Fd(::fcntl(process_->out().get(), F_DUPFD_CLOEXEC, 0)) : std::move(process_->in());
    if (in.ok()) {
      in_ = FdStream::open(loop_, in.release(), {.drained = output_.drained});
    }
    streams_[0] = read(0, process_->out());
    streams_[1] = read(1, process_->err());
    loop_->post([self = shared_from_this()] {
      self->self_ = self;
      self->loop_->add(self->process_->exit_fd(), self.get());
    });
  }

  void write(std::string_view bytes) {
    if (in_) in_->write(bytes);
  }
  std::size_t queued() const { return in_ ? in_->queued() : 0; }
  void close() {
    if (!in_) return;
    if (tty_) {
      // A terminal has no end of input but the character for it.
      in_->write("\x04");
    } else {
      in_->finish();
    }
  }
  void hold(bool held) {
    for (const auto& stream : streams_) {
      if (stream) stream->hold(held);
    }
  }
  void resize(TerminalSize size) {
    if (tty_) process_->resize(size.height, size.width);
  }
  /// Nobody is there any more who would take its output.
  void abandon() {
    unheard_ = true;
    hold(false);
    kill_inside();
  }

 private:
  // The runtime's process only waits for the other one, which would go on without it.
  void kill_inside() {
    if (ended_) return;
    if (const auto pid = read_pid(pid_file); pid > 0) ::kill(static_cast<pid_t>(pid), SIGKILL);
    process_->kill(SIGKILL);
  }

  std::shared_ptr<FdStream> read(int which, Fd& from) {
    if (!from.ok()) return nullptr;
    ++open_;
    FdStream::Handlers handlers;
    handlers.data = [self = shared_from_this(), which](std::string_view bytes) {
      self->take(which, bytes);
    };
    handlers.ended = [self = shared_from_this()](bool) {
      --self->open_;
      self->finish();
    };
    return FdStream::open(loop_, from.release(), std::move(handlers));
  }

  // Until the command runs, what comes is the runtime's own complaint, and its log has it too.
  void take(int which, std::string_view bytes) {
    if (running_) return hand_on(which, bytes);
    early_[which].append(bytes);
    look();
  }

  void look() {
    if (running_ || ended_ || (early_[0].empty() && early_[1].empty())) return;
    if (read_pid(pid_file) > 0) return pass_early();
    timers_.after(std::chrono::milliseconds(10), [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self) self->loop_->post([self] { self->look(); });
    });
  }

  void pass_early() {
    running_ = true;
    for (const int which : {0, 1}) {
      if (!early_[which].empty()) hand_on(which, std::exchange(early_[which], {}));
    }
  }

  void hand_on(int which, std::string_view bytes) {
    const auto& to = which == 0 ? output_.out : output_.err;
    if (to && !unheard_) to(bytes);
  }

  void on_ready(net::EventLoop::Ready ready) override {
    if (!ready.in || !self_) return;
    loop_->remove(process_->exit_fd());
    loop_->retire(std::move(self_));
    exited_ = true;
    // What is in the pipes already; others may hold them open for ever.
    for (const auto& stream : streams_) {
      if (stream) stream->end_of_input();
    }
    finish();
  }

  void finish() {
    if (!exited_ || open_ > 0 || ended_) return;
    ended_ = true;
    const Result<int> result = outcome_(log, *process_->wait());
    if (result.ok()) pass_early();
    if (output_.ended) output_.ended(result);
    for (const auto& stream : {streams_[0], streams_[1], in_}) {
      if (stream) stream->close();
    }
    over_();
  }

  const std::shared_ptr<net::EventLoop> loop_;
  runtime::Timers& timers_;
  const bool tty_;
  const ProcessOutput output_;
  // Unchanged once begun.
  std::unique_ptr<runtime::Process> process_;
  Outcome outcome_;
  std::function<void()> over_;
  std::shared_ptr<FdStream> in_;
  std::shared_ptr<FdStream> streams_[2];
  std::atomic<bool> ended_ = false;
  std::atomic<bool> unheard_ = false;
  // On the loop's thread.
  std::atomic<int> open_ = 0;
  bool running_ = false;
  bool exited_ = false;
  std::string early_[2];
  std::shared_ptr<Exec> self_;
};

class ExecInput : public ProcessInput {
 public:
  explicit ExecInput(std::shared_ptr<Exec> exec) : exec_(std::move(exec)) {}
  ~ExecInput() override { exec_->abandon(); }
  void write(std::string_view bytes) override { exec_->write(bytes); }
  std::size_t queued() const override { return exec_->queued(); }
  void close() override { exec_->close(); }
  void hold(bool held) override { exec_->hold(held); }
  void abandon() override { exec_->abandon(); }
  void resize(TerminalSize size) override { exec_->resize(size); }

 private:
  std::shared_ptr<Exec> exec_;
};

}  // namespace

Result<std::unique_ptr<ProcessInput>> OciRuntime::exec(const std::string& id,
                                                       const ExecConfig& config,
                                                       ProcessOutput output) {
  DIBS_TRY(const ContainerPtr container, find_running(id, "failed to exec in container: "));
  DIBS_TRY(const std::string bytes,
           runtime::system_files().read(container_folder(id) + "/config.json"));
  DIBS_TRY(const json::Value oci, json::parse(bytes));
  const std::string exec_id = new_id();
  const auto exec = std::make_shared<Exec>(loop_.loop(), machine_.timers,
                                           cat(options_.run, "/x-", exec_id.substr(0, 24)),
                                           config.tty, std::move(output));
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
  const auto outcome = [this, exec_id](const std::string& log,
                                       runtime::ExitStatus status) -> Result<int> {
    if (status.code == 0) return 0;
    // The same number can be the command's own; an error of the runtime is in its log.
    std::string message = logged_error(log, "");
    if (message.empty()) return status.code;
    constexpr std::string_view kCreate = "runc create failed: ";
    if (message.starts_with(kCreate)) message = "exec failed: " + message.substr(kCreate.size());
    return Error::internal(cat("failed to exec in container: failed to start exec ",
                               dibs::quoted(exec_id), ": OCI runtime exec failed: ", message));
  };
  const auto stream = begin_stream([exec] { exec->abandon(); });
  exec->begin(std::move(*started), outcome, [this, stream] { end_stream(stream); });
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

}  // namespace dibs::node
