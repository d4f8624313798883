#include "node/runtime/traces.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "base/strings.h"
#include "node/runtime/mounts.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwner = "/owner";
constexpr const char* kRunIn = "/run-in";

std::string read_or_empty(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The monitors of its containers: their command lines name its folder. They live in no control
/// group of the pods.
std::vector<pid_t> monitors(const std::string& run) {
  std::vector<pid_t> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator("/proc", failed)) {
    const long pid = std::atol(entry.path().filename().c_str());
    if (pid <= 1 || pid == ::getpid()) continue;
    const std::string words = read_or_empty(entry.path().string() + "/cmdline");
    const auto first = words.substr(0, words.find('\0'));
    if (!fs::path(first).filename().string().starts_with("conmon")) continue;
    if (words.find(cat(run, '/')) != std::string::npos) found.push_back(static_cast<pid_t>(pid));
  }
  return found;
}

/// Processes first, monitors after them: a monitor that is gone leaves its container to init.
Result<> end_processes(const Trace& trace, const Cgroups& groups) {
  if (!trace.group.empty()) DIBS_CHECK(groups.kill_and_remove(trace.group));
  constexpr int kLooks = 100;
  for (int look = 0; look < kLooks; ++look) {
    const auto left = monitors(trace.run);
    if (left.empty()) return success();
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::usleep(20'000);
  }
  return Error::internal(cat("monitors of containers in ", trace.run, " do not end"));
}

/// What a node mounts for its pods lies beside its containers.
std::string node_folder(const std::string& root) {
  const fs::path path(root);
  return path.filename() == "containers" ? path.parent_path().string() : root;
}

}  // namespace

Result<std::unique_ptr<runtime::FileLock>> leave_trace(const Trace& trace) {
  // The run's mark is written last: without the other one it would be an abandoned one's.
  DIBS_CHECK(runtime::system_files().write(trace.root + kRunIn, trace.run + "\n"));
  auto lock = runtime::system_files().lock(trace.run + "/lock");
  DIBS_CHECK(
      runtime::system_files().write(trace.run + kOwner, cat(trace.root, '\n', trace.group, '\n')));
  if (!lock.ok()) return std::unique_ptr<runtime::FileLock>();
  return std::move(lock).value();
}

std::vector<Trace> find_traces(const std::string& home) {
  std::vector<Trace> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(home, failed)) {
    const std::string run = entry.path().string();
    if (entry.path().filename().string().starts_with("net-")) continue;
    const std::string text = read_or_empty(run + kOwner);
    const auto lines = split(text, '\n');
    if (lines.size() < 2 || !lines[0].starts_with('/')) continue;
    found.push_back({run, std::string(lines[0]), std::string(lines[1])});
  }
  std::sort(found.begin(), found.end(),
            [](const Trace& a, const Trace& b) { return a.root < b.root; });
  return found;
}

bool is_abandoned(const Trace& trace) {
  std::error_code failed;
  if (fs::exists(trace.root + kRunIn, failed) || failed) return false;
  return runtime::system_files().lock(trace.run + "/lock").ok();
}

Result<> remove_trace(const Trace& trace, const Cgroups& groups) {
  Result<> result = end_processes(trace, groups);
  for (const std::string& folder : {trace.run, node_folder(trace.root)}) {
    if (auto unmounted = unmount_below(folder); !unmounted.ok() && result.ok()) result = unmounted;
  }
  if (!result.ok()) return result;
  std::error_code failed;
  fs::remove_all(trace.run, failed);
  if (failed) return Error::internal(cat("cannot remove ", trace.run, ": ", failed.message()));
  return success();
}

void remove_abandoned(const std::string& home) {
  for (const Trace& trace : find_traces(home)) {
    if (!is_abandoned(trace)) continue;
    if (const auto removed = remove_trace(trace); !removed.ok()) {
      log::warn("what a deleted node left cannot be removed",
                {{"folder", trace.root}, {"error", removed.error()}});
    }
  }
}

}  // namespace dibs::node
