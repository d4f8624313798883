// Control groups of the oci runtime's pods, laid out as the kubelet's cgroupfs driver does it:
//
//     /dibs/<of this node>/kubepods/pod<uid>/<container>             Guaranteed
//                                  /burstable/pod<uid>/<container>
//                                  /besteffort/pod<uid>/<container>
//
// Nodes of one machine, and of several clusters on it, have a folder each: what is found there
// without a record is this node's to remove.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "node/runtime/oci_runtime_state.h"
#include "runtime/files.h"

namespace dibs::node {
namespace {

constexpr const char* kPods = "/kubepods";
constexpr const char* kBurstable = "/burstable";
constexpr const char* kBestEffort = "/besteffort";
constexpr std::int64_t kFewestShares = 2;

/// Lines of /proc/<pid>/net/dev behind its two lines of headings.
std::vector<InterfaceUsage> read_interfaces(std::istream& text) {
  std::vector<InterfaceUsage> out;
  std::string line;
  std::getline(text, line);
  std::getline(text, line);
  while (std::getline(text, line)) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    InterfaceUsage one;
    one.name = trim(std::string_view(line).substr(0, colon));
    std::istringstream numbers(line.substr(colon + 1));
    std::uint64_t skipped = 0;
    numbers >> one.received_bytes >> one.received_packets >> one.received_errors >>
        one.received_dropped;
    for (int i = 0; i < 4; ++i) numbers >> skipped;
    numbers >> one.sent_bytes >> one.sent_packets >> one.sent_errors >> one.sent_dropped;
    if (numbers && one.name != "lo") out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

// By the folder itself, not by its path alone: nodes in mount namespaces of their own may call
// different folders the same.
std::string own_group(const std::string& root) {
  struct stat folder = {};
  (void)::stat(root.c_str(), &folder);
  return cat("/dibs/", digest_of(cat(root, ' ', folder.st_dev, ' ', folder.st_ino)).substr(7, 8));
}

std::string OciRuntime::group_of(const SandboxConfig& config) const {
  return cat(own_group_, kPods, '/', config.group.empty() ? cat("pod", config.uid) : config.group);
}

Result<> OciRuntime::make_group(const SandboxConfig& config) {
  const std::string group = group_of(config);
  DIBS_CHECK(groups_.make(group));
  DIBS_CHECK(groups_.limit(group, config.limits));
  weigh_classes(config);
  return success();
}

// Burstable pods weigh together what they ask for together; those that ask for nothing, nothing.
void OciRuntime::weigh_classes(const SandboxConfig& changed) {
  const auto is_burstable = [](const SandboxConfig& config) {
    return cat('/', config.group).starts_with(cat(kBurstable, '/'));
  };
  ContainerLimits limits;
  limits.cpu_shares = kFewestShares;
  const std::string pods = own_group_ + kPods;
  if (changed.group.starts_with("besteffort/")) {
    (void)groups_.limit(pods + kBestEffort, limits).ok();
    return;
  }
  if (!is_burstable(changed)) return;
  const MutexLock turn(weighing_);
  std::map<std::string, std::int64_t> shares;  // by uid: an old sandbox counts no second time
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, sandbox] : sandboxes_) {
      const SandboxConfig& config = sandbox->record.config;
      if (is_burstable(config) && sandbox->record.phase == SandboxPhase::ready) {
        shares[config.uid] = config.limits.cpu_shares;
      }
    }
  }
  if (changed.limits.cpu_shares > 0) shares[changed.uid] = changed.limits.cpu_shares;
  for (const auto& [uid, one] : shares) limits.cpu_shares += one;
  limits.cpu_shares = std::min<std::int64_t>(limits.cpu_shares, 262144);
  (void)groups_.limit(pods + kBurstable, limits).ok();
}

// Not where another sandbox of the pod has taken it over.
Result<> OciRuntime::remove_group(const Sandbox& sandbox) {
  const SandboxConfig& config = sandbox.record.config;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, other] : sandboxes_) {
      if (other->record.config.uid == config.uid && other->record.phase == SandboxPhase::ready &&
          id != sandbox.record.status.id) {
        return success();
      }
    }
  }
  return groups_.kill_and_remove(group_of(config));
}

void OciRuntime::remove_unknown_groups() {
  std::set<std::string> known;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, sandbox] : sandboxes_) {
      if (sandbox->record.phase == SandboxPhase::ready)
        known.insert(group_of(sandbox->record.config));
    }
  }
  for (const char* level : {"", kBurstable, kBestEffort}) {
    const std::string above = cat(own_group_, kPods, level);
    for (const auto& name : groups_.children(above)) {
      const std::string group = cat(above, '/', name);
      if (!name.starts_with("pod") || known.contains(group)) continue;
      if (auto removed = groups_.kill_and_remove(group); !removed.ok()) {
        log::warn("control group not cleaned up", {{"group", group}, {"error", removed.error()}});
      }
    }
  }
}

void OciRuntime::remove_empty_groups() {
  const std::string pods = own_group_ + kPods;
  for (const std::string& group : {pods + kBurstable, pods + kBestEffort, pods, own_group_}) {
    groups_.remove_if_empty(group);
  }
}

Result<> OciRuntime::update_container(const std::string& id, const ContainerLimits& limits,
                                      const Labels& annotations) {
  DIBS_TRY(const ContainerPtr container, find_running(id, "failed to update the container: "));
  const SandboxPtr sandbox = find_sandbox(container->record.status.sandbox_id);
  if (!sandbox) return Error::not_found(cat("sandbox of container ", dibs::quoted(id)));
  DIBS_CHECK(groups_.limit(cat(group_of(sandbox->record.config), '/', id), limits));
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, value] : annotations) container->record.status.annotations[key] = value;
  }
  return save(*container);
}

Result<> OciRuntime::update_sandbox(const std::string& id, const ContainerLimits& limits,
                                    const Labels& annotations) {
  const SandboxPtr sandbox = find_sandbox(id);
  if (!sandbox) return Error::not_found(cat("sandbox ", dibs::quoted(id), " is not found"));
  const MutexLock busy(sandbox->busy);
  SandboxRecord& record = sandbox->record;
  if (record.phase != SandboxPhase::ready) {
    return Error::conflict(cat("sandbox ", dibs::quoted(id), " is not running"));
  }
  DIBS_CHECK(groups_.limit(group_of(record.config), limits));
  {
    const MutexLock lock(mutex_);
    record.config.limits = limits;
    for (const auto& [key, value] : annotations) {
      record.config.annotations[key] = value;
      record.status.annotations[key] = value;
    }
  }
  weigh_classes(record.config);
  return save(*sandbox);
}

std::string OciRuntime::group_of(const std::string& id) {
  if (const SandboxPtr sandbox = find_sandbox(id)) return group_of(sandbox->record.config);
  const ContainerPtr container = find_container(id);
  if (!container) return "";
  const SandboxPtr sandbox = find_sandbox(container->record.status.sandbox_id);
  return sandbox ? cat(group_of(sandbox->record.config), '/', id) : "";
}

std::optional<Usage> OciRuntime::usage(const std::string& id) {
  const std::string group = group_of(id);
  if (group.empty()) return std::nullopt;
  return groups_.usage(group);
}

std::vector<InterfaceUsage> OciRuntime::interfaces(const std::string& sandbox_id) {
  const SandboxPtr sandbox = find_sandbox(sandbox_id);
  if (!sandbox || sandbox->record.config.host_network) return {};
  for (const auto& container : containers_of(sandbox_id)) {
    const ProcessMark process = [&] {
      const MutexLock lock(mutex_);
      return container->record.process;
    }();
    if (!process.alive()) continue;
    std::ifstream text(cat("/proc/", process.pid, "/net/dev"));
    return read_interfaces(text);
  }
  return {};
}

}  // namespace dibs::node
