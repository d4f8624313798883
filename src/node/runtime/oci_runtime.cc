#include "node/runtime/oci_runtime.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/builtin_image.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_rootfs.h"
#include "node/runtime/oci_runtime_state.h"
#include "node/runtime/traces.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {

namespace fs = std::filesystem;

namespace {

std::string full_path(const std::string& folder) {
  std::error_code failed;
  return fs::weakly_canonical(fs::absolute(folder, failed), failed).string();
}

}  // namespace

std::string oci_run_folder(const std::string& root) {
  return cat(kRunHome, "/", digest_of(full_path(root)).substr(7, 8));
}

namespace {

/// Tries, in a child and in namespaces of its own, what a container needs of the kernel: a root
/// that is itself confined may not. "" when all of it works.
std::string refused_by_kernel() {
  const pid_t child = ::fork();
  if (child < 0) return "no process can be started";
  if (child == 0) {
    // Between fork and _exit only system calls: other threads may have held any lock.
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) ::_exit(1);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(2);
    if (::mount("none", "/run", "tmpfs", 0, nullptr) != 0) ::_exit(2);
    for (const char* folder : {"/run/lower", "/run/upper", "/run/work", "/run/merged"}) {
      ::mkdir(folder, 0700);
    }
    const char* overlay = "lowerdir=/run/lower,upperdir=/run/upper,workdir=/run/work";
    if (::mount("none", "/run/merged", "overlay", 0, overlay) != 0) ::_exit(3);
    ::_exit(0);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  if (code == 1) return "this machine does not let root make namespaces";
  if (code == 2) return "this machine does not let root mount";
  if (code == 3) return "this machine has no overlay file system";
  return "";
}

}  // namespace

std::string missing_for_oci(const std::string& program) {
  if (::geteuid() != 0) return "not running as root";
  if (program.empty()) return "neither runc nor crun is installed";
  if (runtime::find_program(program).empty()) return cat(program, " is not installed");
  if (runtime::find_program("conmon").empty()) return "conmon is not installed";
  if (runtime::find_program("nft").empty()) return "nft is not installed (Debian: nftables)";
  struct stat status = {};
  if (::stat("/sys/fs/cgroup", &status) != 0) return "there are no cgroups";
  const bool first = ::stat("/sys/fs/cgroup/memory", &status) == 0;
  if (::access(first ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup", W_OK) != 0) {
    return "cgroups are read-only here";
  }
  static const std::string refused = refused_by_kernel();
  if (!refused.empty()) return refused;
  // The kernel's hybrid form, with controllers on both sides, is more than crun handles.
  if (program.ends_with("crun")) {
    auto second = runtime::system_files().read("/sys/fs/cgroup/unified/cgroup.controllers");
    if (second.ok() && !trim(*second).empty()) {
      return "crun cannot work with this machine's mixture of cgroups v1 and v2";
    }
  }
  return "";
}

OciRuntime::OciRuntime(OciOptions options, runtime::Runtime& machine)
    : options_([&] {
        OciOptions all = std::move(options);
        if (all.run.empty()) all.run = oci_run_folder(all.root);
        if (all.program.empty()) all.program = "runc";
        all.program = runtime::find_program(all.program);
        if (all.monitor.empty()) all.monitor = runtime::find_program("conmon");
        if (all.cdi_directories.empty()) {
          all.cdi_directories = {cdi::kStaticDirectory, cdi::kDynamicDirectory};
        }
        all.network = network_of_folder(all.network);
        return all;
      }()),
      program_name_(options_.program.substr(options_.program.rfind('/') + 1)),
      boot_id_(options_.boot_id.empty() ? machine_boot_id() : options_.boot_id),
      machine_(machine),
      groups_(options_.cgroups),
      own_group_([this] {
        (void)make_private_folder(options_.root).ok();
        return own_group(full_path(options_.root));
      }()),
      images_(options_.images, options_.image_options),
      cdi_(options_.cdi_directories, cdi::host_node, options_.cdi_newest),
      network_(options_.network) {}

OciRuntime::~OciRuntime() {
  watcher_.reset();
  MutexLock lock(mutex_);
  closing_ = true;
  const auto streams = streams_;
  lock.unlock();
  for (const auto& [id, stop] : streams) stop();
  lock.lock();
  changed_.wait(lock, [this]() DIBS_REQUIRES(mutex_) { return streams_.empty(); });
  // Folders that nothing is in any more; rmdir keeps the others.
  bool is_empty = true;
  for (const char* folder : {"/exits", "/s", "/ns", "/oci"}) {
    const std::string path = options_.run + folder;
    is_empty = (::rmdir(path.c_str()) == 0 || errno == ENOENT) && is_empty;
  }
  if (is_empty) {
    std::error_code failed;
    fs::remove_all(options_.run, failed);
  }
  lock.unlock();
  remove_empty_groups();
}

Result<std::unique_ptr<OciRuntime>> OciRuntime::open(OciOptions options,
                                                     runtime::Runtime& machine) {
  std::unique_ptr<OciRuntime> opened(new OciRuntime(std::move(options), machine));
  // What is left of pods may be theirs to take away.
  DIBS_CHECK(opened->network_.link_plugins());
  remove_abandoned(fs::path(opened->options_.run).parent_path());
  DIBS_CHECK(opened->load());
  opened->warm_up();
  return opened;
}

void OciRuntime::warm_up() {
  const auto task = begin_stream([] {});
  machine_.executor.post([this, task] {
    (void)images_.stand_in("busybox").ok();
    (void)network_.prepare().ok();  // the first pod tells
    end_stream(task);
  });
}

RuntimeVersion OciRuntime::version() { return {"dibs-oci", "0.1.0"}; }

Result<> OciRuntime::ready() {
  if (const std::string missing = missing_for_oci(options_.program); !missing.empty()) {
    return Error::unavailable(missing);
  }
  return network_.ready();
}

std::string OciRuntime::sandbox_folder(const std::string& id) const {
  return cat(options_.root, "/sandboxes/", id);
}
std::string OciRuntime::container_folder(const std::string& id) const {
  return cat(options_.root, "/containers/", id);
}
std::string OciRuntime::namespace_folder(const std::string& sandbox_id) const {
  return cat(options_.run, "/ns/", sandbox_id.substr(0, 32));
}

std::vector<std::string> OciRuntime::runtime_command(const std::string& log) const {
  return {options_.program, "--root", options_.run + "/oci", "--log", log, "--log-format", "json"};
}

Result<std::string> OciRuntime::run_oci(const std::string& id, std::vector<std::string> arguments) {
  const std::string log = cat(options_.run, "/log-", id.substr(0, 16), "-", arguments[0]);
  std::vector<std::string> argv = runtime_command(log);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  auto output =
      runtime::run({.argv = std::move(argv),
                    .env =
                        std::vector<std::string>{
                            "GOMAXPROCS=1",
                            "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}},
                   {}, std::chrono::minutes(2));
  Result<std::string> result = Error::internal("");
  if (!output.ok()) {
    result = output.error();
  } else if (output->status.code == 0) {
    result = std::move(output->out);
  } else {
    result = Error::internal(logged_error(log, output->err));
  }
  ::unlink(log.c_str());
  return result;
}

std::string OciRuntime::logged_error(const std::string& log, std::string_view fallback) const {
  std::string message(trim(fallback));
  if (auto text = runtime::system_files().read(log); text.ok()) {
    for (const auto line : split(*text, '\n')) {
      const auto entry = json::parse(line);
      if (entry.ok() && (*entry)["level"].as_string() == "error") message = (*entry)["msg"].str();
    }
  }
  if (program_name_ != "crun") return message;
  // The two programs say the same in different words; users and events know those of runc.
  const auto quote = [](const std::string& text) {
    const auto from = text.find('`');
    const auto to = text.find('`', from + 1);
    return from == std::string::npos || to == std::string::npos
               ? std::string()
               : text.substr(from + 1, to - from - 1);
  };
  const std::string name = quote(message);
  if (!name.empty() && message.starts_with("executable file")) {
    return cat("runc create failed: unable to start container process: exec: ", dibs::quoted(name),
               name.find('/') == std::string::npos
                   ? std::string(": executable file not found in $PATH")
                   : cat(": stat ", name, ": no such file or directory"));
  }
  return message;
}

OciRuntime::SandboxPtr OciRuntime::find_sandbox(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : found->second;
}

OciRuntime::ContainerPtr OciRuntime::find_container(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(id);
  return found == containers_.end() ? nullptr : found->second;
}

std::vector<OciRuntime::ContainerPtr> OciRuntime::containers_of(const std::string& sandbox_id) {
  const MutexLock lock(mutex_);
  std::vector<ContainerPtr> list;
  for (const auto& [id, container] : containers_) {
    if (container->record.status.sandbox_id == sandbox_id) list.push_back(container);
  }
  return list;
}

std::string OciRuntime::new_id() {
  std::uint8_t bytes[32];
  machine_.random.fill(bytes);
  return hex_encode({reinterpret_cast<const char*>(bytes), sizeof bytes});
}

void OciRuntime::tell(RuntimeEvent::Kind kind, const std::string& sandbox_id,
                      const std::string& container_id, const std::string& pod_uid) {
  std::vector<std::function<void(const RuntimeEvent&)>> listeners;
  {
    const MutexLock lock(mutex_);
    listeners = listeners_;
  }
  if (listeners.empty()) return;
  machine_.executor.post([listeners = std::move(listeners),
                          event = RuntimeEvent{kind, sandbox_id, container_id, pod_uid}] {
    for (const auto& listener : listeners) listener(event);
  });
}

void OciRuntime::listen(std::function<void(const RuntimeEvent& event)> listener) {
  const MutexLock lock(mutex_);
  listeners_.push_back(std::move(listener));
}

// The newest state is the last to be written: it is taken only when it is this one's turn to write.
Result<> OciRuntime::save(const Sandbox& sandbox) {
  const MutexLock turn(saving_);
  MutexLock lock(mutex_);
  const std::string bytes = json::write(sandbox.record.to_value());
  lock.unlock();
  return replace_file(sandbox_folder(sandbox.record.status.id) + "/record.json", bytes);
}

Result<> OciRuntime::save(const Container& container) {
  const MutexLock turn(saving_);
  MutexLock lock(mutex_);
  const std::string bytes = json::write(container.record.to_value());
  lock.unlock();
  return replace_file(container_folder(container.record.status.id) + "/record.json", bytes);
}

Result<> OciRuntime::load() {
  for (const std::string& folder :
       {options_.root, options_.root + "/sandboxes", options_.root + "/containers", options_.run,
        options_.run + "/exits", options_.run + "/s", options_.run + "/ns",
        options_.run + "/oci"}) {
    DIBS_CHECK(make_private_folder(folder));
  }
  DIBS_TRY(open_, leave_trace({options_.run, full_path(options_.root), own_group_}));
  watcher_ = std::make_unique<ExitWatcher>(
      options_.run + "/exits", machine_.executor,
      [this](const std::string& id, bool lost) { note_exit(id, lost); });
  DIBS_CHECK(watcher_->start());
  DIBS_TRY(const auto sandboxes, runtime::system_files().list(options_.root + "/sandboxes"));
  for (const auto& id : sandboxes) recover_sandbox(id);
  DIBS_TRY(const auto containers, runtime::system_files().list(options_.root + "/containers"));
  for (const auto& id : containers) recover_container(id);
  for (const auto& id : sandboxes) {
    const SandboxPtr sandbox = find_sandbox(id);
    if (!sandbox || sandbox->record.phase != SandboxPhase::removing) continue;
    discard(*sandbox);
    const MutexLock lock(mutex_);
    sandboxes_.erase(id);
  }
  remove_unknown_groups();
  DIBS_TRY(const auto leftovers, runtime::system_files().list(options_.run));
  for (const auto& name : leftovers) {
    if (name.starts_with("x-") || name.starts_with("log-")) {
      ::unlink(cat(options_.run, '/', name).c_str());
    }
  }
  // Namespaces whose sandbox was never noted, or is gone.
  DIBS_TRY(const auto held, runtime::system_files().list(options_.run + "/ns"));
  for (const auto& name : held) {
    const bool is_used = std::any_of(sandboxes.begin(), sandboxes.end(), [&](const auto& id) {
      return id.starts_with(name) && find_sandbox(id);
    });
    if (is_used) continue;
    const std::string folder = cat(options_.run, "/ns/", name);
    remove_namespaces(folder);
    unmount(folder + "/shm");
    std::error_code failed;
    fs::remove_all(folder, failed);
  }
  return success();
}

void OciRuntime::recover_sandbox(const std::string& id) {
  const std::string folder = sandbox_folder(id);
  (void)make_private_folder(folder).ok();
  auto bytes = runtime::system_files().read(folder + "/record.json");
  auto read = bytes.ok() ? SandboxRecord::read(*bytes, id) : Result<SandboxRecord>(bytes.error());
  std::error_code failed;
  if (!read.ok()) {
    fs::remove_all(folder, failed);
    return;
  }
  auto sandbox = std::make_shared<Sandbox>();
  sandbox->record = std::move(*read);
  SandboxRecord& record = sandbox->record;
  const bool restarted = record.boot != boot_id_;
  const bool half_done =
      record.phase == SandboxPhase::creating || record.phase == SandboxPhase::removing;
  if (half_done) {
    // Taken down by load(), once its containers are.
    record.status.state = SandboxState::not_ready;
    record.status.ips.clear();
    record.phase = SandboxPhase::removing;
  } else if (restarted) {
    if (auto torn = tear_down(*sandbox); !torn.ok()) {
      log::warn("sandbox not cleaned up", {{"sandbox", id}, {"error", torn.error()}});
    }
    record.status.state = SandboxState::not_ready;
    record.status.ips.clear();
    record.phase = SandboxPhase::stopped;
    record.boot = boot_id_;
    (void)save(*sandbox).ok();
  }
  const MutexLock lock(mutex_);
  sandboxes_[id] = sandbox;
}

void OciRuntime::recover_container(const std::string& id) {
  const std::string folder = container_folder(id);
  (void)make_private_folder(folder).ok();
  for (const char* file : {"/config.json", "/record.json"}) {
    ::chmod((folder + file).c_str(), 0600);
  }
  auto bytes = runtime::system_files().read(folder + "/record.json");
  auto read =
      bytes.ok() ? ContainerRecord::read(*bytes, id) : Result<ContainerRecord>(bytes.error());
  auto container = std::make_shared<Container>();
  container->record.status.id = id;
  container->record.phase = ContainerPhase::removing;
  if (read.ok()) container->record = std::move(*read);
  ContainerRecord& record = container->record;
  const SandboxPtr sandbox = find_sandbox(record.status.sandbox_id);
  if (sandbox) container->pod_uid = sandbox->record.config.uid;
  const bool orphan = !sandbox || sandbox->record.phase == SandboxPhase::removing;
  if (record.phase == ContainerPhase::creating || record.phase == ContainerPhase::removing ||
      orphan) {
    (void)discard(*container).ok();
    return;
  }
  if (record.boot != boot_id_) {
    // On a machine that was really restarted there is nothing left to kill.
    for (const auto& process : {record.process, record.monitor}) {
      if (process.alive()) ::kill(static_cast<pid_t>(process.pid), SIGKILL);
    }
    if (record.phase == ContainerPhase::running || record.phase == ContainerPhase::starting) {
      record.phase = ContainerPhase::exited;
      record.status.state = ContainerState::exited;
      record.status.exit_code = 255;
      record.status.reason = "Unknown";
      record.status.message = "the machine was restarted";
      record.status.finished = machine_.clock.now();
    }
    record.boot = boot_id_;
    (void)unmake_rootfs(folder).ok();
    (void)save(*container).ok();
  }
  if (record.phase == ContainerPhase::starting) finish_start(*container);
  record.status.state = record.phase == ContainerPhase::running  ? ContainerState::running
                        : record.phase == ContainerPhase::exited ? ContainerState::exited
                                                                 : ContainerState::created;
  const bool runs = record.phase == ContainerPhase::running;
  {
    // Not before: from here on the watcher may note its end.
    const MutexLock lock(mutex_);
    containers_[id] = container;
  }
  if (runs) {
    watcher_->watch_monitor(id, static_cast<int>(record.monitor.pid));
    note_exit(id, !record.monitor.alive());
  }
}

Result<std::optional<ImageInfo>> OciRuntime::image_status(const std::string& image) {
  DIBS_TRY(auto found, images_.find(image));
  if (!found) return std::optional<ImageInfo>();
  return std::optional(std::move(found->info));
}

Result<ImageInfo> OciRuntime::pull_image(const std::string& image, const PullLogin& login) {
  auto pulled = images_.pull(image, login);
  if (pulled.ok()) return std::move(pulled->info);
  if (pulled.error().code() != Code::unavailable) return pulled.error();
  DIBS_TRY(auto found, images_.stand_in(image));
  if (!found) return pulled.error();
  found->info.stands_in_because = pulled.error().message();
  return std::move(found->info);
}

Result<std::vector<ImageInfo>> OciRuntime::list_images() {
  DIBS_TRY(auto images, images_.list());
  std::vector<ImageInfo> list;
  for (auto& image : images) list.push_back(std::move(image.info));
  return list;
}

Result<> OciRuntime::remove_image(const std::string& image) {
  auto removed = images_.remove(image);
  if (!removed.ok() && removed.error().code() == Code::not_found) return success();
  return removed;
}

}  // namespace dibs::node
