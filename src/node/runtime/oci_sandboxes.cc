// Sandboxes of the oci runtime.
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"
#include "node/runtime/builtin_image.h"
#include "node/runtime/oci_config.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using json::Value;

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), 0644);
}

std::string resolv_conf(const SandboxConfig& config) {
  if (config.dns_servers.empty() && config.dns_searches.empty() && config.dns_options.empty()) {
    auto host = runtime::system_files().read("/etc/resolv.conf");
    return host.ok() ? *host : "";
  }
  std::string text;
  if (!config.dns_searches.empty()) append(text, "search ", join(config.dns_searches, " "), "\n");
  for (const auto& server : config.dns_servers) append(text, "nameserver ", server, "\n");
  if (!config.dns_options.empty()) append(text, "options ", join(config.dns_options, " "), "\n");
  return text;
}

}  // namespace

Result<std::string> OciRuntime::run_sandbox(const SandboxConfig& config) {
  auto sandbox = std::make_shared<Sandbox>();
  SandboxRecord& record = sandbox->record;
  record.config = config;
  record.boot = boot_id_;
  SandboxStatus& status = record.status;
  status.id = new_id();
  status.name = config.name;
  status.name_space = config.name_space;
  status.uid = config.uid;
  status.attempt = config.attempt;
  status.created = machine_.clock.now();
  status.labels = config.labels;
  status.annotations = config.annotations;
  DIBS_CHECK(make_private_folder(sandbox_folder(status.id)));
  DIBS_CHECK(save(*sandbox));
  if (auto made = set_up_sandbox(*sandbox, config); !made.ok()) {
    discard(*sandbox);
    return made.error();
  }
  record.phase = SandboxPhase::ready;
  status.state = SandboxState::ready;
  DIBS_CHECK(save(*sandbox));
  {
    const MutexLock lock(mutex_);
    sandboxes_[status.id] = sandbox;
  }
  tell(RuntimeEvent::Kind::started, status.id, "", config.uid);
  return status.id;
}

Result<> OciRuntime::set_up_sandbox(Sandbox& sandbox, const SandboxConfig& config) {
  const std::string id = sandbox.record.status.id;
  const std::string folder = sandbox_folder(id);
  const std::string spaces = namespace_folder(id);
  write_text(folder + "/resolv.conf", resolv_conf(config));
  if (!config.hostname.empty()) write_text(folder + "/hostname", config.hostname + "\n");
  if (!config.log_directory.empty()) {
    DIBS_CHECK(runtime::system_files().make_dirs(config.log_directory, 0755));
  }
  if (auto grouped = make_group(config); !grouped.ok()) {
    return grouped.error().within(
        cat("failed to make control group for sandbox ", dibs::quoted(id)));
  }
  // With the host's network goes the host's name.
  const NamespaceOptions options{.network = !config.host_network,
                                 .ipc = !config.host_ipc,
                                 .uts = !config.host_network,
                                 .hostname = config.hostname};
  if (auto made = make_namespaces(spaces, options); !made.ok()) {
    return made.error().within(cat("failed to create namespaces for sandbox ", dibs::quoted(id)));
  }
  if (!config.host_ipc) DIBS_CHECK(mount_shm(spaces + "/shm"));
  if (!config.host_network) {
    auto plan = network_.plan(config);
    if (!plan.ok()) {
      return plan.error().within(cat("failed to setup network for sandbox ", dibs::quoted(id)));
    }
    sandbox.record.cni = std::move(*plan);
    DIBS_CHECK(save(sandbox));
    DIBS_TRY(NetworkResult network, network_.add(id, spaces + "/net", config, sandbox.record.cni));
    sandbox.record.status.ips = std::move(network.ips);
    sandbox.record.status.network_status = std::move(network.status);
    sandbox.record.cni = std::move(network.cni);
  }
  // After the network: some are an interface's.
  if (auto set = set_sysctls(spaces, config.sysctls); !set.ok()) {
    return set.error().within(cat("failed to set up sandbox ", dibs::quoted(id)));
  }
  if (config.share_pid && !config.host_pid) DIBS_CHECK(start_pause(sandbox));
  return success();
}

Result<> OciRuntime::start_pause(Sandbox& sandbox) {
  const std::string id = sandbox.record.status.id;
  DIBS_TRY(const auto layer, make_builtin_layer(options_.images + "/layers"));
  if (!layer) {
    return Error::unavailable(
        "a shared process namespace needs the built-in image (install busybox-static)");
  }
  const std::string bundle = sandbox_folder(id) + "/pause";
  DIBS_CHECK(make_private_folder(bundle));
  const Value config = build_pause_config(cat(options_.images, "/layers/", *layer),
                                          cat(group_of(sandbox.record.config), '/', id));
  DIBS_CHECK(replace_file(bundle + "/config.json", json::write(config)));
  DIBS_TRY(auto ran, run_oci(id, {"run", "--detach", "--bundle", bundle, "--pid-file",
                                  bundle + "/pid", "pause-" + id}));
  DIBS_TRY(const std::string text, runtime::system_files().read(bundle + "/pid"));
  sandbox.record.pause = ProcessMark::of(std::atoll(text.c_str()));
  DIBS_CHECK(save(sandbox));
  return hold_namespace(sandbox.record.pause.pid, "pid", namespace_folder(id) + "/pid");
}

Result<> OciRuntime::keep_namespaces(Sandbox& sandbox) {
  const SandboxConfig& config = sandbox.record.config;
  const std::string id = sandbox.record.status.id;
  const std::string spaces = namespace_folder(id);
  const struct {
    const char* kind;
    bool own;
  } kinds[] = {{"net", !config.host_network},
               {"ipc", !config.host_ipc},
               {"uts", !config.host_network},
               {"pid", config.share_pid && !config.host_pid}};
  std::vector<std::string> lost;
  for (const auto& [kind, own] : kinds) {
    if (own && !is_namespace(cat(spaces, '/', kind))) lost.emplace_back(kind);
  }
  if (!config.host_ipc && !is_mount_point(spaces + "/shm")) DIBS_CHECK(mount_shm(spaces + "/shm"));
  if (lost.empty()) return success();
  log::warn("a sandbox has lost its namespaces", {{"sandbox", id}, {"lost", join(lost, ", ")}});
  for (const auto& container : containers_of(id)) {
    MutexLock lock(mutex_);
    const ProcessMark process = container->record.process;
    const bool runs = container->record.phase == ContainerPhase::running && process.alive();
    lock.unlock();
    if (!runs) continue;
    for (const auto& kind : lost) {
      DIBS_CHECK(hold_namespace(process.pid, kind.c_str(), cat(spaces, '/', kind)));
    }
    // Its number may have become another process's meanwhile.
    if (process.alive()) return success();
    for (const auto& kind : lost) unmount(cat(spaces, '/', kind));
  }
  {
    const MutexLock lock(mutex_);
    sandbox.record.status.state = SandboxState::not_ready;
  }
  tell(RuntimeEvent::Kind::stopped, id, "", config.uid);
  return Error::conflict(cat("sandbox ", dibs::quoted(id), " has lost its namespaces"));
}

// One that was never ready. What cannot be taken down now is tried again by the next agent.
void OciRuntime::discard(Sandbox& sandbox) {
  const std::string& id = sandbox.record.status.id;
  if (auto torn = tear_down(sandbox); !torn.ok()) {
    log::warn("sandbox not cleaned up", {{"sandbox", id}, {"error", torn.error()}});
    sandbox.record.phase = SandboxPhase::removing;
    sandbox.record.boot = boot_id_;
    (void)save(sandbox).ok();
    return;
  }
  std::error_code failed;
  fs::remove_all(sandbox_folder(id), failed);
}

// Everything but the folder; may be repeated.
Result<> OciRuntime::tear_down(Sandbox& sandbox) {
  const std::string id = sandbox.record.status.id;
  const SandboxConfig& config = sandbox.record.config;
  const std::string spaces = namespace_folder(id);
  Result<> network = success();
  if (!config.host_network && sandbox.record.phase != SandboxPhase::stopped) {
    const bool held = is_namespace(spaces + "/net");
    network = network_.remove(id, held ? spaces + "/net" : "", config, sandbox.record.cni);
    if (network.ok()) sandbox.record.cni = Value();
  }
  if (config.share_pid) {
    if (sandbox.record.pause.alive()) {
      ::kill(static_cast<pid_t>(sandbox.record.pause.pid), SIGKILL);
    }
    std::error_code failed;
    if (fs::exists(cat(options_.run, "/oci/pause-", id), failed)) {
      (void)run_oci(id, {"delete", "--force", "pause-" + id}).ok();
    }
    sandbox.record.pause = {};
  }
  // What left its container's first process behind ends here.
  if (auto removed = remove_group(sandbox); !removed.ok()) {
    log::warn("control group not removed", {{"sandbox", id}, {"error", removed.error()}});
  }
  remove_namespaces(spaces);
  unmount(spaces + "/shm");
  std::error_code failed;
  fs::remove_all(spaces, failed);
  return network;
}

Result<> OciRuntime::stop_sandbox(const std::string& id) {
  const SandboxPtr sandbox = find_sandbox(id);
  if (!sandbox) return success();
  const MutexLock busy(sandbox->busy);
  for (const auto& container : containers_of(id)) {
    if (!has_ended(container)) DIBS_CHECK(kill_container(*container));
  }
  if (sandbox->record.phase == SandboxPhase::stopped) return success();
  DIBS_CHECK(tear_down(*sandbox));
  {
    const MutexLock lock(mutex_);
    sandbox->record.phase = SandboxPhase::stopped;
    sandbox->record.status.state = SandboxState::not_ready;
    sandbox->record.status.ips.clear();
  }
  DIBS_CHECK(save(*sandbox));
  SandboxConfig gone = sandbox->record.config;
  gone.limits = {};
  weigh_classes(gone);
  tell(RuntimeEvent::Kind::stopped, id, "", sandbox->record.config.uid);
  return success();
}

Result<> OciRuntime::remove_sandbox(const std::string& id) {
  const SandboxPtr sandbox = find_sandbox(id);
  if (!sandbox) return success();
  DIBS_CHECK(stop_sandbox(id));
  for (const auto& container : containers_of(id)) {
    DIBS_CHECK(remove_container(container->record.status.id));
  }
  const MutexLock busy(sandbox->busy);
  {
    const MutexLock lock(mutex_);
    if (sandboxes_.erase(id) == 0) return success();
  }
  std::error_code failed;
  fs::remove_all(sandbox_folder(id), failed);
  tell(RuntimeEvent::Kind::removed, id, "", sandbox->record.config.uid);
  return success();
}

Result<SandboxStatus> OciRuntime::sandbox_status(const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) {
    return Error::not_found(cat("sandbox ", dibs::quoted(id), " is not found"));
  }
  return found->second->record.status;
}

Result<std::vector<SandboxStatus>> OciRuntime::list_sandboxes() {
  const MutexLock lock(mutex_);
  std::vector<SandboxStatus> list;
  for (const auto& [id, sandbox] : sandboxes_) list.push_back(sandbox->record.status);
  return list;
}

}  // namespace dibs::node
