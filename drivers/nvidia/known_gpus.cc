#include "drivers/nvidia/known_gpus.h"

#include <algorithm>

#include "base/log.h"
#include "drivers/nvidia/workshop.h"

namespace dibs::drivers::nvidia {
namespace {

bool same(const SlicesInput& a, const SlicesInput& b) {
  // What is published without health, which is told apart.
  const Health none;
  const auto left = driver::slices_of(pool_of(a, none));
  const auto right = driver::slices_of(pool_of(b, none));
  return left && right && *left == *right;
}

}  // namespace

KnownGpus::KnownGpus(std::string pool, MigMode mode) : mode_(mode) {
  const MutexLock lock(mutex_);
  all_.pool = std::move(pool);
}

bool KnownGpus::update(Inventory inventory, const Ledger& ledger, Health& health, Time now) {
  SlicesInput made;
  made.driver_version = std::move(inventory.driver_version);
  made.cuda_version = std::move(inventory.cuda_version);
  std::set<std::string> uuids;
  std::set<unsigned> minors;
  for (auto& gpu : inventory.gpus) {
    uuids.insert(gpu.info.uuid);
    minors.insert(gpu.info.minor);
    KnownGpu known;
    known.parts = parts_of(gpu, mode_, Workshop::own_instances(ledger, gpu));
    known.gpu = std::move(gpu);
    made.gpus.push_back(std::move(known));
  }
  const SlicesInput before = all();
  made.pool = before.pool;
  bool changed = false;
  for (const auto& uuid : uuids) {
    if (!health.set_lost(uuid, false, now)) continue;
    log::info("a GPU is back", {{"gpu", uuid}});
    changed = true;
  }
  for (const auto& known : before.gpus) {
    const auto& info = known.gpu.info;
    if (uuids.contains(info.uuid) || minors.contains(info.minor)) continue;
    made.gpus.push_back(known);
    const bool is_there = std::any_of(
        inventory.unread.begin(), inventory.unread.end(), [&](const nvml::UnreadGpu& unread) {
          const bool same =
              unread.uuid.empty() ? unread.index == info.index : unread.uuid == info.uuid;
          return same && !is_gone(unread.error);
        });
    if (is_there) continue;
    if (!health.set_lost(info.uuid, true, now)) continue;
    log::error("a GPU is lost", {{"gpu", info.uuid}, {"minor", info.minor}});
    changed = true;
  }
  std::sort(made.gpus.begin(), made.gpus.end(), [](const KnownGpu& a, const KnownGpu& b) {
    return a.gpu.info.minor < b.gpu.info.minor;
  });
  changed = changed || !same(before, made);
  const MutexLock lock(mutex_);
  all_ = std::move(made);
  return changed;
}

SlicesInput KnownGpus::all() const {
  const MutexLock lock(mutex_);
  return all_;
}

std::optional<KnownGpus::Found> KnownGpus::find(const std::string& device) const {
  const MutexLock lock(mutex_);
  for (const auto& known : all_.gpus) {
    for (const auto& part : known.parts) {
      if (part.name == device) return Found{part, known};
    }
  }
  return {};
}

std::string KnownGpus::device_of(const std::string& gpu_uuid,
                                 const nvml::MigInstance& instance) const {
  const MutexLock lock(mutex_);
  for (const auto& known : all_.gpus) {
    if (known.gpu.info.uuid != gpu_uuid) continue;
    for (const auto& part : known.parts) {
      if (part.is_mig() && part.profile->id == instance.profile &&
          part.placement == instance.placement) {
        return part.name;
      }
    }
  }
  return "";
}

std::vector<std::string> KnownGpus::uuids(const Health& health) const {
  std::vector<std::string> out;
  for (const auto& known : all().gpus) {
    if (!health.is_lost(known.gpu.info.uuid)) out.push_back(known.gpu.info.uuid);
  }
  return out;
}

}  // namespace dibs::drivers::nvidia
