#include "drivers/nvidia/sharing.h"

#include "base/log.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace dibs::drivers::nvidia {
namespace {

// As containers of MPS's own documentation have it.
constexpr const char* kPipesInside = "/tmp/nvidia-mps";
// The control pipe is a socket, whose path has room for 107 characters: below the driver's folder,
// with a claim's uid in it, it would be longer. So programs of MPS see that folder here, in a
// namespace of mounts of their own.
constexpr const char* kPipesOutside = "/mnt";
constexpr std::size_t kIdDigits = 5;
// For the answer of a daemon that may have long been running, and of one that has just been started
// or is about to end.
constexpr Duration kAnswer = std::chrono::seconds(2);
constexpr Duration kSlowAnswer = std::chrono::seconds(20);

/// Where a program of the driver finds its libraries; "" where the loader knows.
std::string library_path(runtime::Files& machine, const Roots& roots,
                         const std::string& driver_version) {
  if (below(roots.driver, "/") == "/") return "";
  return join(library_folders(machine, roots, driver_version), ":");
}

/// `script` with these arguments. What it mounts nobody else sees, and it holds nothing that others
/// unmount. The folders of libraries are one of the arguments, since the machine's own programs are
/// not to use those of another root.
std::vector<std::string> in_own_mounts(const std::string& script,
                                       const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {"unshare", "--mount", "--propagation", "slave",
                                   "sh",      "-c",      script,          "sh"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

}  // namespace

TimeSlices::TimeSlices(RunProgram run, runtime::Files& machine, Roots roots)
    : run_(std::move(run)), machine_(machine), roots_(std::move(roots)) {}

Result<> TimeSlices::set(const std::string& gpu_uuid, int interval,
                         const std::string& driver_version) const {
  const std::string smi = find_tool(machine_, roots_, "nvidia-smi");
  if (smi.empty()) {
    return Error::not_found(cat("nvidia-smi is in no folder of programs below ", roots_.driver,
                                ": time slices are set by it"));
  }
  Program program;
  program.argv = {smi, "compute-policy", "-i", gpu_uuid, "--set-timeslice", cat(interval)};
  if (const auto path = library_path(machine_, roots_, driver_version); !path.empty()) {
    program.env = {cat("LD_LIBRARY_PATH=", path)};
  }
  auto said = run_(program);
  if (!said) return said.error().within("error setting time slice");
  return success();
}

std::string daemon_id(const std::string& claim_uid, const std::vector<std::string>& uuids) {
  return cat(claim_uid, "-", sha256_hex(join(uuids, ",")).substr(0, kIdDigits));
}

MpsDaemons::MpsDaemons(RunProgram run, runtime::Files& files, runtime::Files& machine, Roots roots,
                       std::string folder)
    : run_(std::move(run)),
      files_(files),
      machine_(machine),
      roots_(std::move(roots)),
      folder_(std::move(folder)) {}

std::string MpsDaemons::folder_of(const LedgerDaemon& daemon) const {
  return cat(folder_, "/", daemon.id);
}

std::vector<std::string> MpsDaemons::environment(const LedgerDaemon& daemon) const {
  return {cat("CUDA_VISIBLE_DEVICES=", join(daemon.devices, ",")),
          cat("CUDA_MPS_PIPE_DIRECTORY=", kPipesOutside),
          cat("CUDA_MPS_LOG_DIRECTORY=", folder_of(daemon), "/log")};
}

Result<std::string> MpsDaemons::control(const LedgerDaemon& daemon) const {
  std::string found = find_tool(machine_, roots_, "nvidia-cuda-mps-control");
  if (!found.empty()) return found;
  return Error::not_found(cat("nvidia-cuda-mps-control is in no folder of programs below ",
                              roots_.driver, ": MPS daemon ", daemon.id, " cannot be started"));
}

Result<std::string> MpsDaemons::tell(const LedgerDaemon& daemon, const std::string& driver_version,
                                     const std::string& command, Duration patience) const {
  DIBS_TRY(const std::string program, control(daemon));
  const std::string script = cat("mount --bind \"$1\" ", kPipesOutside,
                                 " && exec env ${2:+\"LD_LIBRARY_PATH=$2\"} \"$3\"");
  return run_({in_own_mounts(script, {cat(folder_of(daemon), "/pipe"),
                                      library_path(machine_, roots_, driver_version), program}),
               environment(daemon), command + "\n", patience});
}

Result<bool> MpsDaemons::runs(const LedgerDaemon& daemon, const std::string& driver_version) const {
  if (!files_.exists(cat(folder_of(daemon), "/pipe"))) return false;
  const auto told = tell(daemon, driver_version, "get_server_list", kAnswer);
  if (!told && told.error().code() == Code::timeout) {
    return Error(Code::timeout,
                 cat("MPS control daemon ", daemon.id, " does not answer; its log is ",
                     folder_of(daemon), "/log/control.log"));
  }
  return told.ok();
}

Result<> MpsDaemons::start(const LedgerDaemon& daemon, const std::string& driver_version) const {
  DIBS_TRY(const std::string program, control(daemon));
  const std::string folder = folder_of(daemon);
  // Beside one that does not answer another would get nowhere.
  DIBS_TRY(const bool running, runs(daemon, driver_version));
  if (running) return success();
  for (const char* part : {"pipe", "log", "shm"}) {
    DIBS_CHECK(files_.make_dirs(cat(folder, "/", part), 0755));
  }
  const std::string shared = cat(folder, "/shm");
  if (!run_({{"mountpoint", "-q", shared}})) {
    auto mounted = run_({{"mount", "-t", "tmpfs", "-o", "rw,nosuid,nodev,noexec,relatime,mode=1777",
                          "shm", shared}});
    if (!mounted) return mounted.error().within(cat("MPS daemon ", daemon.id));
  }
  // Whatever lies there, links above all, the new one would write through. The folder itself stays:
  // containers have it mounted.
  auto cleared = run_({{"find", cat(folder, "/pipe"), "-xdev", "-mindepth", "1", "-delete"}});
  if (!cleared) return cleared.error().within(cat("MPS daemon ", daemon.id));
  // It shares memory with its clients below /dev/shm, theirs and its own: in a namespace of mounts
  // of its own that is the folder which they get. It starts servers from PATH, and what it says
  // goes to a file, since it would hold a pipe of ours as long as it lives.
  const std::string begin =
      cat("mount --bind \"$1\" /dev/shm && mount --bind \"$2\" ", kPipesOutside,
          " && { env PATH=\"${5%/*}:$PATH\" ${4:+\"LD_LIBRARY_PATH=$4\"} \"$5\" -d </dev/null "
          ">\"$3\" 2>&1 || { cat \"$3\" >&2; exit 1; }; }");
  auto started =
      run_({in_own_mounts(begin, {shared, cat(folder, "/pipe"), cat(folder, "/log/start.log"),
                                  library_path(machine_, roots_, driver_version), program}),
            environment(daemon)});
  if (!started) return started.error().within(cat("error starting MPS control daemon ", daemon.id));
  std::vector<std::string> settings;
  if (daemon.active_thread_percentage) {
    settings.push_back(
        cat("set_default_active_thread_percentage ", *daemon.active_thread_percentage));
  }
  for (const auto& [uuid, limit] : daemon.pinned_memory_limits) {
    settings.push_back(cat("set_default_device_pinned_mem_limit ", uuid, " ", limit));
  }
  for (const auto& setting : settings) {
    auto told = tell(daemon, driver_version, setting, kSlowAnswer);
    if (!told) return told.error().within(cat("MPS control daemon ", daemon.id, ": ", setting));
  }
  if (!tell(daemon, driver_version, "get_server_list", kSlowAnswer)) {
    return Error::unavailable(cat("MPS control daemon ", daemon.id,
                                  " is not yet ready; its log is ", folder, "/log/control.log"));
  }
  log::info("MPS control daemon started", {{"daemon", daemon.id}});
  return success();
}

Result<> MpsDaemons::stop(const LedgerDaemon& daemon, const std::string& driver_version) const {
  const std::string folder = folder_of(daemon);
  if (!files_.exists(folder)) return success();
  if (tell(daemon, driver_version, "get_server_list", kSlowAnswer)) {
    auto told = tell(daemon, driver_version, "quit -t 10", kSlowAnswer);
    if (!told) return told.error().within(cat("error stopping MPS control daemon ", daemon.id));
  }
  const std::string shared = cat(folder, "/shm");
  if (run_({{"mountpoint", "-q", shared}})) {
    auto gone = run_({{"umount", shared}});
    if (!gone) return gone.error().within(cat("MPS daemon ", daemon.id));
  }
  auto removed = run_({{"rm", "-r", "--one-file-system", "--", folder}});
  if (!removed) return removed.error().within(cat("MPS daemon ", daemon.id));
  log::info("MPS control daemon stopped", {{"daemon", daemon.id}});
  return success();
}

cdi::ContainerEdits MpsDaemons::edits(const LedgerDaemon& daemon) const {
  cdi::ContainerEdits edits;
  edits.env = {cat("CUDA_MPS_PIPE_DIRECTORY=", kPipesInside)};
  edits.mounts.push_back(
      {cat(folder_of(daemon), "/shm"), "/dev/shm", {"rw", "nosuid", "nodev", "bind"}});
  edits.mounts.push_back(
      {cat(folder_of(daemon), "/pipe"), kPipesInside, {"ro", "nosuid", "nodev", "noexec", "bind"}});
  return edits;
}

}  // namespace dibs::drivers::nvidia
