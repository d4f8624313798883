#include "node/pods/storage_cache.h"

#include "node/pods/pod_spec.h"

namespace dibs::node {
namespace {

constexpr Duration kFresh = std::chrono::minutes(1);
constexpr Duration kForgotten = std::chrono::minutes(10);

}  // namespace

StorageCache::StorageCache(runtime::Runtime& runtime, ContainerRuntime& containers,
                           const NodeFacts& facts, std::string log_root)
    : runtime_(runtime), containers_(containers), facts_(facts), log_root_(std::move(log_root)) {}

PodUsage StorageCache::of(const json::Value& pod) {
  const std::string uid(uid_of(pod));
  const MutexLock turn(measuring_);
  const Duration now = runtime_.clock.steady();
  {
    const MutexLock lock(mutex_);
    std::erase_if(entries_, [&](const auto& item) { return now - item.second.at > kForgotten; });
    const auto found = entries_.find(uid);
    if (found != entries_.end() && now - found->second.at < kFresh) return found->second.usage;
  }
  std::vector<ContainerStatus> own;
  if (auto all = containers_.list_containers()) {
    std::map<std::string, bool> sandboxes;
    if (auto known = containers_.list_sandboxes()) {
      for (const auto& sandbox : *known) sandboxes[sandbox.id] = sandbox.uid == uid;
    }
    for (auto& one : *all) {
      if (sandboxes[one.sandbox_id]) own.push_back(std::move(one));
    }
  }
  PodUsage usage = measure_pod(facts_, log_root_, pod, own, containers_, UsageUnit::bytes);
  const MutexLock lock(mutex_);
  entries_[uid] = {now, usage};
  return usage;
}

}  // namespace dibs::node
