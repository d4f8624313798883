// Containers of the oci runtime: made, started, ended, removed.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/oci_config.h"
#include "node/runtime/oci_rootfs.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

// How long a killed process may take to go.
constexpr Duration kKillLimit = std::chrono::seconds(10);

namespace fs = std::filesystem;
using json::Value;

std::string text_of(const std::string& path) {
  auto text = runtime::system_files().read(path);
  return text.ok() ? std::string(trim(*text)) : "";
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

Time modified(const std::string& path, Time otherwise) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return otherwise;
  return {status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

// What the monitor said through its pipe: {"pid": 12} or {"pid": -1, "message": "…"}.
struct Said {
  std::int64_t pid = -1;
  std::string message = {};
};

Said read_word(int fd) {
  std::string text;
  char buffer[4096];
  // Until the end of the line: the monitor keeps the pipe open. A hook that hangs ends the wait.
  struct pollfd ready = {fd, POLLIN, 0};
  while (text.find('\n') == std::string::npos) {
    if (::poll(&ready, 1, 120'000) == 0) return {-1, "no answer within two minutes"};
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  const auto value = json::parse(trim(text));
  if (!value.ok()) return {-1, std::string(trim(text))};
  const Value& pid = value->contains("pid") ? (*value)["pid"] : (*value)["data"];
  return {pid.as_int(-1), (*value)["message"].str()};
}

}  // namespace

Result<std::string> OciRuntime::create_container(const std::string& sandbox_id,
                                                 const SandboxConfig& sandbox_config,
                                                 const ContainerConfig& config) {
  const SandboxPtr sandbox = find_sandbox(sandbox_id);
  if (!sandbox) {
    return Error::not_found(
        cat("failed to find sandbox id ", dibs::quoted(sandbox_id), ": not found"));
  }
  const MutexLock busy(sandbox->busy);
  if (sandbox->record.phase != SandboxPhase::ready) {
    return Error::conflict(cat("sandbox ", dibs::quoted(sandbox_id), " is not running"));
  }
  DIBS_CHECK(keep_namespaces(*sandbox));
  auto container = std::make_shared<Container>();
  container->pod_uid = sandbox->record.config.uid;
  ContainerRecord& record = container->record;
  record.boot = boot_id_;
  ContainerStatus& status = record.status;
  status.id = new_id();
  status.sandbox_id = sandbox_id;
  status.name = config.name;
  status.attempt = config.attempt;
  status.created = machine_.clock.now();
  status.labels = config.labels;
  status.annotations = config.annotations;
  DIBS_CHECK(make_private_folder(container_folder(status.id)));
  DIBS_CHECK(save(*container));
  if (auto filled = fill_bundle(*container, sandbox->record, sandbox_config, config);
      !filled.ok()) {
    (void)discard(*container).ok();
    return filled.error();
  }
  record.phase = ContainerPhase::created;
  status.state = ContainerState::created;
  DIBS_CHECK(save(*container));
  {
    const MutexLock lock(mutex_);
    containers_[status.id] = container;
  }
  tell(RuntimeEvent::Kind::created, sandbox_id, status.id, container->pod_uid);
  return status.id;
}

Result<> OciRuntime::start_container(const std::string& id) {
  const ContainerPtr container = find_container(id);
  if (!container) {
    return Error::not_found(
        cat("an error occurred when try to find container ", dibs::quoted(id), ": not found"));
  }
  const MutexLock busy(container->busy);
  if (container->record.phase == ContainerPhase::running) return success();
  if (container->record.phase != ContainerPhase::created) {
    return Error::conflict(cat("container ", dibs::quoted(id), " is not in created state"));
  }
  {
    const MutexLock lock(mutex_);
    container->record.phase = ContainerPhase::starting;
  }
  DIBS_CHECK(save(*container));
  if (auto started = launch(*container); !started.ok()) {
    fail_start(*container, started.error());
    return started;
  }
  tell(RuntimeEvent::Kind::started, container->record.status.sandbox_id, id, container->pod_uid);
  // It may have ended before it was noted as running.
  note_exit(id, false);
  return success();
}

Result<> OciRuntime::launch(Container& container) {
  const ContainerRecord& record = container.record;
  const std::string& id = record.status.id;
  const std::string folder = container_folder(id);
  const std::string log = folder + "/oci.log";
  DIBS_TRY(runtime::Pipe words, runtime::make_pipe());
  std::vector<std::string> argv = {options_.monitor,
                                   "--api-version",
                                   "1",
                                   "--cid",
                                   id,
                                   "--cuuid",
                                   id,
                                   "--name",
                                   id,
                                   "--runtime",
                                   options_.program,
                                   "--bundle",
                                   folder,
                                   "--persist-dir",
                                   folder,
                                   "--container-pidfile",
                                   folder + "/pid",
                                   "--conmon-pidfile",
                                   folder + "/monitor",
                                   "--exit-dir",
                                   options_.run + "/exits",
                                   "--socket-dir-path",
                                   options_.run + "/s",
                                   "--log-level",
                                   "error",
                                   "--no-sync-log",
                                   "--log-size-max",
                                   std::to_string(options_.log_bound),
                                   "--log-path",
                                   record.status.log_path.empty()
                                       ? std::string("k8s-file:/dev/null")
                                       : "k8s-file:" + record.status.log_path};
  const auto command = runtime_command(log);
  for (std::size_t i = 1; i < command.size(); ++i) {
    argv.insert(argv.end(), {"--runtime-arg", command[i]});
  }
  if (record.tty) argv.push_back("--terminal");
  if (record.stdin_open) {
    argv.push_back("--stdin");
    if (!record.stdin_once) argv.push_back("--leave-stdin-open");
  }
  DIBS_TRY(auto monitor,
           runtime::Process::start(
               {.argv = std::move(argv),
                .env =
                    std::vector<std::string>{
                        "_OCI_SYNCPIPE=3",
                        "GOMAXPROCS=1",  // quicker to start, where runc shares the machine
                        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                .directory = folder,  // where it leaves word of a lack of memory
                .descriptors = {{words.write_end.get(), 3}},
                .new_session = true}));
  words.write_end.reset();
  const Said said = read_word(words.read_end.get());
  const auto left = monitor->wait(std::chrono::minutes(1));
  if (said.pid <= 0) {
    const std::string fallback = said.message.empty()
                                     ? cat("the monitor ended with status ", left ? left->code : -1)
                                     : said.message;
    return Error::internal(
        cat("failed to create containerd task: failed to create shim task: OCI runtime create "
            "failed: ",
            logged_error(log, fallback)));
  }
  {
    const MutexLock lock(mutex_);
    container.record.process = ProcessMark::of(said.pid);
    container.record.monitor = ProcessMark::of(std::atoll(text_of(folder + "/monitor").c_str()));
  }
  const Time started_at = machine_.clock.now();
  if (auto started = release(id); !started.ok()) {
    // Too short a life to be seen is none of the runtime's errors.
    if (!exists(cat(options_.run, "/exits/", id))) {
      return started.error().within("failed to start containerd task");
    }
  }
  {
    const MutexLock lock(mutex_);
    container.record.phase = ContainerPhase::running;
    container.record.status.state = ContainerState::running;
    container.record.status.started = started_at;
  }
  watcher_->watch_monitor(id, static_cast<int>(container.record.monitor.pid));
  return save(container);
}

// Lets a created container go on to its command. runc's own way is a pipe that the container's
// first process writes to before that: reading it here saves the start of another program.
Result<> OciRuntime::release(const std::string& id) {
  const std::string path = cat(options_.run, "/oci/", id, "/exec.fifo");
  const runtime::Fd fifo(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (program_name_ == "runc" && fifo.ok()) {
    struct pollfd ready = {fifo.get(), POLLIN, 0};
    char byte = 0;
    if (::poll(&ready, 1, 10'000) > 0 && ::read(fifo.get(), &byte, 1) == 1) {
      ::unlink(path.c_str());
      return success();
    }
  }
  DIBS_CHECK(run_oci(id, {"start", id}));
  return success();
}

void OciRuntime::fail_start(Container& container, const Error& error) {
  const std::string id = container.record.status.id;
  const auto monitor =
      ProcessMark::of(std::atoll(text_of(container_folder(id) + "/monitor").c_str()));
  for (const auto& process : {container.record.process, monitor}) {
    if (process.alive()) ::kill(static_cast<pid_t>(process.pid), SIGKILL);
  }
  if (exists(cat(options_.run, "/oci/", id))) (void)run_oci(id, {"delete", "--force", id}).ok();
  ::unlink(cat(options_.run, "/exits/", id).c_str());
  {
    const MutexLock lock(mutex_);
    ContainerStatus& status = container.record.status;
    container.record.phase = ContainerPhase::exited;
    status.state = ContainerState::exited;
    status.exit_code = 128;
    status.reason = "StartError";
    status.message = error.message();
    status.started = {};
    status.finished = machine_.clock.now();
  }
  (void)save(container).ok();
  changed_.notify_all();
  tell(RuntimeEvent::Kind::stopped, container.record.status.sandbox_id, id, container.pod_uid);
}

// Of a start that an agent did not live to see the end of.
void OciRuntime::finish_start(Container& container) {
  ContainerRecord& record = container.record;
  const std::string id = record.status.id;
  const std::string folder = container_folder(id);
  const auto monitor = ProcessMark::of(std::atoll(text_of(folder + "/monitor").c_str()));
  // The monitor may still be at it.
  for (int i = 0; i < 100 && monitor.alive() && !exists(folder + "/pid"); ++i) ::usleep(20'000);
  const auto process = ProcessMark::of(std::atoll(text_of(folder + "/pid").c_str()));
  const bool ended = exists(cat(options_.run, "/exits/", id));
  if (!ended && !(monitor.alive() && process.alive())) {
    // Nothing runs: as if the start had never been asked for.
    if (process.alive()) ::kill(static_cast<pid_t>(process.pid), SIGKILL);
    if (exists(cat(options_.run, "/oci/", id))) (void)run_oci(id, {"delete", "--force", id}).ok();
    ::unlink((folder + "/pid").c_str());
    ::unlink((folder + "/monitor").c_str());
    record.phase = ContainerPhase::created;
    (void)save(container).ok();
    return;
  }
  record.process = process;
  record.monitor = monitor;
  if (!ended) (void)release(id).ok();  // an error when it runs already
  record.phase = ContainerPhase::running;
  record.status.started = modified(folder + "/pid", machine_.clock.now());
  (void)save(container).ok();
}

void OciRuntime::note_exit(const std::string& id, bool lost) {
  const ContainerPtr container = find_container(id);
  if (!container) return;
  const std::string folder = container_folder(id);
  const std::string exit_file = cat(options_.run, "/exits/", id);
  const std::string code = text_of(exit_file);
  if (code.empty() && !lost) return;
  // Files have the time of the last tick, which may be older.
  const Time ended = modified(exit_file, machine_.clock.now());
  const bool out_of_memory = exists(folder + "/oom");
  {
    const MutexLock lock(mutex_);
    ContainerRecord& record = container->record;
    const bool never_ran = lost && record.phase == ContainerPhase::created;
    if (record.phase != ContainerPhase::running && !never_ran) return;
    ContainerStatus& status = record.status;
    record.phase = ContainerPhase::exited;
    status.state = ContainerState::exited;
    status.finished = std::max(ended, status.started);
    if (code.empty()) {
      // Without its monitor nobody sees how it ends: it ends now.
      if (record.process.alive()) ::kill(static_cast<pid_t>(record.process.pid), SIGKILL);
      status.exit_code = 137;
      status.message = never_ran ? "the container was stopped before it was started"
                                 : "the container's monitor was lost";
    } else {
      status.exit_code = std::atoi(code.c_str());
    }
    status.reason = out_of_memory ? "OOMKilled" : status.exit_code == 0 ? "Completed" : "Error";
  }
  (void)save(*container).ok();
  changed_.notify_all();
  tell(RuntimeEvent::Kind::stopped, container->record.status.sandbox_id, id, container->pod_uid);
  tell_ended(id, success());
}

bool OciRuntime::has_ended(const ContainerPtr& container) {
  const auto phase = [&] {
    const MutexLock lock(mutex_);
    return container->record.phase;
  };
  // Not under `busy`, which a start may hold: a container that starts is running soon.
  if (phase() == ContainerPhase::starting) const MutexLock busy(container->busy);
  if (phase() == ContainerPhase::created) note_exit(container->record.status.id, true);
  return phase() != ContainerPhase::running;
}

void OciRuntime::signal_container(const Container& container, int signal) {
  const MutexLock lock(mutex_);
  const ProcessMark& process = container.record.process;
  if (container.record.phase == ContainerPhase::running && process.alive())
    ::kill(static_cast<pid_t>(process.pid), signal);
}

void OciRuntime::stop_container(const std::string& id, Duration grace,
                                std::function<void(Result<>)> done) {
  const ContainerPtr container = find_container(id);
  if (!container || has_ended(container)) return done(success());
  {
    const MutexLock lock(mutex_);
    stopping_.emplace(id, std::move(done));
  }
  // It may have ended in between, with nobody to tell.
  if (has_ended(container)) return tell_ended(id, success());
  if (grace <= Duration::zero()) {
    signal_container(*container, SIGKILL);
    return give_up_later(container);
  }
  const int signal = signal_number(container->record.stop_signal);
  signal_container(*container, signal == 0 ? SIGTERM : signal);
  later(grace, [this, container] {
    if (has_ended(container)) return;
    signal_container(*container, SIGKILL);
    give_up_later(container);
  });
}

void OciRuntime::give_up_later(const ContainerPtr& container) {
  later(kKillLimit, [this, container] {
    if (!has_ended(container)) tell_ended(container->record.status.id, lost_or_stays(*container));
  });
}

Result<> OciRuntime::lost_or_stays(const Container& container) {
  const std::string id = container.record.status.id;
  const ProcessMark process = [&] {
    const MutexLock lock(mutex_);
    return container.record.process;
  }();
  if (process.alive()) {
    return Error::internal(
        cat("container ", dibs::quoted(id), " does not end: its process ", process.pid, " stays"));
  }
  note_exit(id, true);
  return success();
}

void OciRuntime::tell_ended(const std::string& id, const Result<>& outcome) {
  std::vector<std::function<void(Result<>)>> waiting;
  {
    const MutexLock lock(mutex_);
    const auto [first, last] = stopping_.equal_range(id);
    for (auto one = first; one != last; ++one) waiting.push_back(std::move(one->second));
    stopping_.erase(first, last);
  }
  for (const auto& done : waiting) done(outcome);
}

void OciRuntime::later(Duration delay, std::function<void()> task) {
  const MutexLock lock(mutex_);
  if (closing_) return;
  const std::uint64_t number = ++last_stream_;
  const auto timer = machine_.timers.after(delay, [this, number, task = std::move(task)] {
    task();
    end_stream(number);
  });
  streams_.emplace(number, [this, number, timer] {
    if (machine_.timers.cancel(timer)) end_stream(number);
  });
}

Result<> OciRuntime::kill_container(const Container& container) {
  signal_container(container, SIGKILL);
  {
    MutexLock lock(mutex_);
    const auto ended = [&] { return container.record.phase != ContainerPhase::running; };
    if (changed_.wait_for(lock, kKillLimit, ended)) return success();
  }
  return lost_or_stays(container);
}

// All that is left of it on the machine; may be repeated.
Result<> OciRuntime::discard(Container& container) {
  const std::string id = container.record.status.id;
  const std::string folder = container_folder(id);
  for (const auto& process : {container.record.process, container.record.monitor}) {
    if (process.alive()) ::kill(static_cast<pid_t>(process.pid), SIGKILL);
  }
  if (exists(cat(options_.run, "/oci/", id))) {
    auto deleted = run_oci(id, {"delete", id});
    if (!deleted.ok()) deleted = run_oci(id, {"delete", "--force", id});
    if (!deleted.ok()) return deleted.error();
  }
  DIBS_CHECK(unmake_rootfs(folder));
  ::unlink(cat(options_.run, "/exits/", id).c_str());
  ::unlink(cat(options_.run, "/s/", id).c_str());
  std::error_code failed;
  fs::remove_all(folder, failed);
  if (failed) return Error::internal(cat("remove ", folder, ": ", failed.message()));
  return success();
}

Result<> OciRuntime::remove_container(const std::string& id) {
  const ContainerPtr container = find_container(id);
  if (!container) return success();
  const MutexLock busy(container->busy);
  DIBS_CHECK(kill_container(*container));
  {
    const MutexLock lock(mutex_);
    if (!containers_.contains(id)) return success();
    container->record.phase = ContainerPhase::removing;
  }
  DIBS_CHECK(save(*container));
  DIBS_CHECK(discard(*container));
  {
    const MutexLock lock(mutex_);
    containers_.erase(id);
  }
  tell(RuntimeEvent::Kind::removed, container->record.status.sandbox_id, id, container->pod_uid);
  return success();
}

// The monitor listens at a pipe: "2 0 0" makes it close its log and open it anew.
Result<> OciRuntime::reopen_log(const std::string& id) {
  DIBS_TRY(const ContainerPtr container, find_running(id, "failed to reopen the log: "));
  const std::string control = container_folder(id) + "/ctl";
  const runtime::Fd pipe(::open(control.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  constexpr std::string_view kReopen = "2 0 0\n";
  if (!pipe.ok() || ::write(pipe.get(), kReopen.data(), kReopen.size()) < 0) {
    return Error::internal(cat("the monitor of container ", dibs::quoted(id),
                               " does not listen: ", std::strerror(errno)));
  }
  const std::string& log = container->record.status.log_path;
  for (int i = 0; i < 200 && !exists(log); ++i) ::usleep(10'000);
  if (exists(log)) return success();
  return Error::timeout(cat("the monitor of container ", dibs::quoted(id), " opens no new log"));
}

Result<ContainerStatus> OciRuntime::container_status(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(id);
  if (found == containers_.end()) {
    return Error::not_found(
        cat("an error occurred when try to find container ", dibs::quoted(id), ": not found"));
  }
  return found->second->record.status;
}

Result<std::vector<ContainerStatus>> OciRuntime::list_containers() {
  const MutexLock lock(mutex_);
  std::vector<ContainerStatus> list;
  for (const auto& [id, container] : containers_) list.push_back(container->record.status);
  return list;
}

}  // namespace dibs::node
