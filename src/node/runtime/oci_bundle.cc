// The bundle of a container of the oci runtime: its rootfs, its mounts and its config.json, made of
// what the pod asks for, what the image says and what this machine has.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/mutex.h"
#include "base/strings.h"
#include "cdi/annotations.h"
#include "json/parse.h"
#include "node/runtime/oci_config.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_rootfs.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

// The bounding set of this process.
std::uint64_t own_capabilities() {
  static const std::uint64_t all = [] {
    std::ifstream status("/proc/self/status");
    std::string key, value;
    while (status >> key >> value) {
      if (key == "CapBnd:") return std::stoull(value, nullptr, 16);
      status.ignore(1 << 20, '\n');
    }
    return ~0ull;
  }();
  return all;
}

// Without the right to, nobody may make himself less likely to be killed.
std::int64_t allowed_oom_score(std::int64_t wanted) {
  constexpr std::uint64_t kSysResource = 1ull << 24;
  if ((own_capabilities() & kSysResource) != 0) return wanted;
  std::int64_t own = 0;
  std::ifstream("/proc/self/oom_score_adj") >> own;
  return std::max(wanted, own);
}

std::vector<std::string> device_nodes() {
  std::vector<std::string> paths;
  std::error_code failed;
  for (fs::recursive_directory_iterator at("/dev", failed), end; at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (at.depth() == 0 && (name == "pts" || name == "shm" || name == "fd" || name == "mqueue")) {
      at.disable_recursion_pending();
      continue;
    }
    if (name == "console" || name == "ptmx") continue;
    const auto type = at->symlink_status(failed).type();
    if (type == fs::file_type::character || type == fs::file_type::block) {
      paths.push_back(at->path().string());
    }
  }
  return paths;
}

std::string machine_name() {
  utsname names{};
  ::uname(&names);
  return names.machine;
}

// Heat tells what others on the machine compute.
std::vector<std::string> throttle_folders() {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/cpu", failed)) {
    const std::string path = (entry.path() / "thermal_throttle").string();
    if (fs::exists(path, failed)) paths.push_back(path);
  }
  return paths;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

}  // namespace

Result<> OciRuntime::fill_bundle(Container& container, const SandboxRecord& sandbox,
                                 const SandboxConfig& sandbox_config,
                                 const ContainerConfig& wanted) {
  ContainerConfig config = wanted;
  config.limits.oom_score_adj = allowed_oom_score(config.limits.oom_score_adj);
  ContainerRecord& record = container.record;
  ContainerStatus& status = record.status;
  const std::string folder = container_folder(status.id);
  DIBS_TRY(const auto image, images_.find(config.image));
  if (!image) return Error::not_found(cat("image ", dibs::quoted(config.image), ": not found"));
  status.image = image->name;
  status.image_id = image->image_id;
  if (!config.log_path.empty()) {
    status.log_path = cat(sandbox_config.log_directory, '/', config.log_path);
    DIBS_CHECK(runtime::system_files().make_dirs(
        status.log_path.substr(0, status.log_path.rfind('/')), 0755));
  }
  record.tty = config.tty;
  record.stdin_open = config.stdin_open;
  record.stdin_once = config.stdin_once;
  record.stop_signal =
      config.stop_signal.empty() ? image->config["config"]["StopSignal"].str() : config.stop_signal;

  DIBS_TRY(const std::string root, make_rootfs(folder, image->layers));
  const std::string context =
      cat("failed to generate container ", dibs::quoted(status.id), " spec");
  auto user = resolve_user(config.security, image->config["config"]["User"].as_string(),
                           read_inside(root, "/etc/passwd"), read_inside(root, "/etc/group"));
  if (!user.ok()) return user.error().within(context);
  for (std::size_t i = 0; i < config.mounts.size(); ++i) {
    Mount& mount = config.mounts[i];
    if (!mount.image.empty()) {
      DIBS_TRY(mount.host_path, mount_image_at(folder, i, mount));
      continue;
    }
    if (exists(mount.host_path)) continue;
    auto made = runtime::system_files().make_dirs(mount.host_path, 0755);
    if (!made.ok())
      return made.error().within(cat("failed to mkdir ", dibs::quoted(mount.host_path)));
  }
  const std::string spaces = namespace_folder(sandbox.status.id);
  const std::string files = sandbox_folder(sandbox.status.id);
  const auto held = [&](const char* kind) {
    const std::string path = cat(spaces, '/', kind);
    return exists(path) ? path : std::string();
  };
  OciConfigInput input{.sandbox = sandbox_config, .container = config, .image = image->config};
  input.user = std::move(*user);
  input.root = root;
  input.cgroup = cat(group_of(sandbox.config), '/', status.id);
  input.network_namespace = held("net");
  input.ipc_namespace = held("ipc");
  input.uts_namespace = held("uts");
  input.pid_namespace = held("pid");
  if (!config.target_id.empty() && !sandbox.config.host_pid && input.pid_namespace.empty()) {
    input.pid_namespace = cat(spaces, "/pid-", status.id.substr(0, 16));
    DIBS_CHECK(join_processes(config.target_id, sandbox.status.id, input.pid_namespace));
  }
  input.resolv_conf = files + "/resolv.conf";
  if (exists(files + "/hostname")) input.hostname_file = files + "/hostname";
  input.shm = sandbox.config.host_ipc ? "/dev/shm" : spaces + "/shm";
  input.cgroup_v2 = groups_.unified();
  input.all_capabilities = own_capabilities();
  if (config.security.privileged) input.host_devices = device_nodes();
  input.machine = machine_name();
  input.masked = throttle_folders();
  if (config.security.seccomp.starts_with('/')) {
    auto profile = runtime::system_files().read(config.security.seccomp);
    if (!profile.ok()) {
      return profile.error()
          .within(cat("cannot load seccomp profile ", dibs::quoted(config.security.seccomp)))
          .within(context);
    }
    input.seccomp_profile = std::move(*profile);
  }
  auto built = build_oci_config(input);
  if (!built.ok()) return built.error().within("failed to generate spec").within(context);
  DIBS_TRY(const auto devices, cdi::with_annotated_devices(config.cdi_devices, config.annotations));
  if (auto injected = cdi_.inject(devices, *built); !injected.ok()) {
    return injected.error().within("CDI device injection failed");
  }
  finish_oci_config(*built, input.user.home, options_.host_path);
  return replace_file(folder + "/config.json", json::write(*built));
}

Result<std::string> OciRuntime::mount_image_at(const std::string& folder, std::size_t index,
                                               const Mount& mount) {
  const std::string context = cat("failed to mount image volume ", dibs::quoted(mount.image));
  auto image = images_.find(mount.image);
  if (!image.ok()) return image.error().within(context);
  if (!*image) return Error::not_found(cat(context, ": there is no such image"));
  auto mounted = mount_image(folder, index, (*image)->layers, mount.image_path);
  if (!mounted.ok()) return mounted.error().within(context);
  return mounted;
}

Result<> OciRuntime::join_processes(const std::string& id, const std::string& sandbox_id,
                                    const std::string& path) {
  DIBS_TRY(const ContainerPtr target, find_running(id, "cannot join the target container: "));
  MutexLock lock(mutex_);
  const ProcessMark process = target->record.process;
  const bool same = target->record.status.sandbox_id == sandbox_id;
  lock.unlock();
  if (!same) return Error::invalid("the target container is in another sandbox");
  DIBS_CHECK(hold_namespace(process.pid, "pid", path));
  // Its number may have become another process's meanwhile.
  if (process.alive()) return success();
  unmount(path);
  return Error::conflict("the target container has ended");
}

}  // namespace dibs::node
