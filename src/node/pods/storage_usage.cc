#include "node/pods/storage_usage.h"

#include <charconv>
#include <filesystem>
#include <set>

#include "base/log.h"
#include "base/strings.h"
#include "node/pods/pod_spec.h"
#include "node/pods/volume_persistent.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

using json::Value;

// Given up after this: others wait meanwhile. Who has so many files is short of inodes first.
constexpr Duration kLongestWalk = std::chrono::minutes(2);

}  // namespace

std::uint64_t PodUsage::total() const {
  std::uint64_t sum = other;
  for (const auto& [name, used] : empty_dirs) sum += used;
  for (const auto& container : containers) sum += container.written + container.logs;
  return sum;
}

std::vector<std::uint64_t> folder_usage(const std::vector<std::string>& folders, UsageUnit unit) {
  std::vector<std::uint64_t> out(folders.size(), 0);
  runtime::ProcessOptions how;
  how.argv = {"nice", "-n", "19", "du", "--summarize", "--one-file-system", "--null"};
  how.argv.emplace_back(unit == UsageUnit::bytes ? "--block-size=1" : "--inodes");
  how.argv.emplace_back("--");
  std::map<std::string_view, std::size_t> places;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    if (folders[i].empty() || !places.emplace(folders[i], i).second) continue;
    how.argv.push_back(folders[i]);
  }
  if (places.empty()) return out;
  // A file that went while it looked is an error to du, none to us.
  const auto said = runtime::run(std::move(how), {}, kLongestWalk);
  if (!said) {
    log::warn("disk usage cannot be measured",
              {{"folder", folders.front()}, {"error", said.error().message()}});
    return out;
  }
  for (const auto entry : split(said->out, '\0')) {
    const auto tab = entry.find('\t');
    if (tab == std::string_view::npos) continue;
    const auto place = places.find(entry.substr(tab + 1));
    if (place == places.end()) continue;
    std::from_chars(entry.data(), entry.data() + tab, out[place->second]);
  }
  return out;
}

PodUsage measure_pod(const NodeFacts& facts, const std::string& log_root, const Value& pod,
                     const std::vector<ContainerStatus>& containers, ContainerRuntime& runtime,
                     UsageUnit unit) {
  PodUsage usage;
  const std::string uid(uid_of(pod));
  const std::string folder = pod_folder(facts, uid);
  const std::string volumes = folder + "/volumes";
  std::vector<std::string> folders;
  for (const Value& volume : pod["spec"]["volumes"].items()) {
    // What is in memory is bounded by its mount.
    if (!volume["emptyDir"].is_object() || volume["emptyDir"]["medium"].as_string() == "Memory") {
      continue;
    }
    usage.empty_dirs[volume["name"].str()] = 0;
  }
  for (const auto& [name, used] : usage.empty_dirs) {
    folders.push_back(cat(volumes, "/kubernetes.io~empty-dir/", name));
  }
  std::set<std::string> others = {folder + "/etc-hosts", folder + "/containers"};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(volumes, error)) {
    // What outlives the pod is not the node's storage, though it may lie on the same disk.
    if (!PersistentVolumes::is_folder_of_others(entry.path().filename().string())) {
      others.insert(entry.path().string());
    }
  }
  for (const auto& container : containers) {
    others.insert(runtime.written_folder(container.sandbox_id));
  }
  folders.insert(folders.end(), others.begin(), others.end());
  const std::string logs = cat(log_root, "/", namespace_of(pod), "_", name_of(pod), "_", uid, "/");
  std::map<std::string, std::size_t> places;  // of a container's name
  for (const auto& container : containers) {
    if (places.emplace(container.name, usage.containers.size()).second) {
      usage.containers.push_back({container.name});
      folders.push_back(log_root.empty() ? std::string() : logs + container.name);
    }
  }
  for (const auto& container : containers) folders.push_back(runtime.written_folder(container.id));

  const auto sizes = folder_usage(folders, unit);
  std::size_t at = 0;
  for (auto& [name, used] : usage.empty_dirs) used = sizes[at++];
  for (std::size_t i = 0; i < others.size(); ++i) usage.other += sizes[at++];
  for (auto& container : usage.containers) container.logs = sizes[at++];
  for (const auto& container : containers) {
    std::uint64_t& written = usage.containers[places[container.name]].written;
    written += sizes[at++];
    if (unit == UsageUnit::bytes) written += runtime.unlinked_bytes(container.id);
  }
  return usage;
}

}  // namespace dibs::node
