#include "drivers/nvidia/workshop.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/blocking.h"

namespace dibs::drivers::nvidia {
namespace {

/// The instance that an entry of the ledger is about, if it is there.
const nvml::MigInstance* find_instance(const std::vector<nvml::MigInstance>& there,
                                       const LedgerInstance& entry) {
  for (const auto& instance : there) {
    if (instance.profile != entry.profile || instance.placement != entry.placement) continue;
    if (entry.gpu_instance) {
      // NVML gives the number of one that is gone to the next one; without a compute instance,
      // which somebody may have taken out of it, there is no uuid.
      const bool same = instance.uuid.empty() || instance.uuid == entry.uuid;
      if (instance.gpu_instance == *entry.gpu_instance && same) return &instance;
      continue;
    }
    const bool was_there = std::find(entry.others.begin(), entry.others.end(),
                                     instance.gpu_instance) != entry.others.end();
    if (!was_there) return &instance;
  }
  return nullptr;
}

std::string claim_text(const driver::ClaimName& claim) {
  return cat(claim.name_space, "/", claim.name);
}

bool has(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool uses(const LedgerClaim& claim, const std::string& gpu) {
  return has(claim.gpus, gpu) ||
         std::any_of(claim.instances.begin(), claim.instances.end(),
                     [&](const LedgerInstance& instance) { return instance.gpu == gpu; });
}

}  // namespace

Workshop::Workshop(Parts parts) : parts_(std::move(parts)) {}

Workshop::Turn::Turn(Workshop& workshop) : workshop_(workshop) {
  const runtime::Blocking blocking;
  MutexLock lock(workshop.mutex_);
  workshop.free_.wait(lock, [&]() DIBS_REQUIRES(workshop.mutex_) { return !workshop.taken_; });
  workshop.taken_ = true;
}

Workshop::Turn::~Turn() {
  {
    const MutexLock lock(workshop_.mutex_);
    workshop_.taken_ = false;
  }
  workshop_.free_.notify_one();
}

std::unique_ptr<Workshop::Turn> Workshop::try_turn() {
  const MutexLock lock(mutex_);
  if (taken_) return nullptr;
  taken_ = true;
  return std::unique_ptr<Turn>(new Turn(*this, Turn::Adopted()));
}

std::int64_t Workshop::milliseconds_since(Duration begun) const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(parts_.clock.steady() - begun)
      .count();
}

Result<Ledger> Workshop::ledger() { return LedgerFile(parts_.files, parts_.ledger_path).read(); }

Result<> Workshop::write(const Ledger& ledger) {
  auto written = LedgerFile(parts_.files, parts_.ledger_path).write(ledger);
  if (written) return written;
  disk_failed_ = true;
  return written.error().within("unable to write the ledger of the GPUs");
}

std::set<unsigned> Workshop::own_instances(const Ledger& ledger, const Gpu& gpu) {
  std::set<unsigned> out;
  const auto add = [&](const LedgerInstance& entry) {
    if (entry.gpu != gpu.info.uuid) return;
    const auto* found = find_instance(gpu.instances, entry);
    if (found != nullptr) out.insert(found->gpu_instance);
  };
  for (const auto& claim : ledger.claims) {
    for (const auto& entry : claim.instances) add(entry);
  }
  for (const auto& entry : ledger.orphans) add(entry);
  return out;
}

Result<> Workshop::destroy(const LedgerInstance& entry) {
  auto there = parts_.library.mig_instances(entry.gpu);
  if (!there) return there.error();
  const auto* found = find_instance(*there, entry);
  if (found == nullptr) return success();
  const Duration begun = parts_.clock.steady();
  auto destroyed = parts_.library.destroy_mig(entry.gpu, found->gpu_instance);
  if (!destroyed) {
    return destroyed.error().within(cat("error deleting MIG device ", entry.device));
  }
  log::info("MIG instance destroyed", {{"device", entry.device},
                                       {"uuid", entry.uuid},
                                       {"milliseconds", milliseconds_since(begun)}});
  return success();
}

Result<> Workshop::take_back(Ledger& ledger, const std::string& uid) {
  LedgerClaim* claim = ledger.find(uid);
  if (claim == nullptr) return success();
  for (const auto& daemon : claim->daemons) {
    DIBS_CHECK(parts_.daemons.stop(daemon, driver_version_));
  }
  const auto unless_gone = [](Result<> done) -> Result<> {
    if (done || is_gone(done.error())) return success();
    return done;
  };
  for (const auto& gpu : claim->exclusive) {
    DIBS_CHECK(unless_gone(parts_.library.set_compute_mode(gpu, nvml::ComputeMode::normal)));
  }
  for (const auto& gpu : claim->sliced) {
    // A lost GPU has no time slices, and nvidia-smi no words of its own for that.
    const auto there = parts_.library.gpu(gpu);
    if (!there && is_gone(there.error())) continue;
    DIBS_CHECK(parts_.slices.set(gpu, 0, driver_version_));
  }
  for (const auto& instance : claim->instances) {
    auto destroyed = destroy(instance);
    if (destroyed) continue;
    if (!is_gone(destroyed.error())) return destroyed;
    log::warn("the GPU of a MIG instance is lost; the instance is destroyed if it comes back",
              {{"device", instance.device}, {"error", destroyed.error()}});
    ledger.orphans.push_back(instance);
  }
  ledger.erase(uid);
  DIBS_CHECK(write(ledger));
  try_to_restore_modes(ledger);
  return success();
}

Result<> Workshop::take_back_unfinished(Ledger& ledger) {
  std::vector<std::string> unfinished;
  for (const auto& claim : ledger.claims) {
    if (!claim.ready) unfinished.push_back(claim.id.uid);
  }
  for (const auto& uid : unfinished) {
    log::info("taking back what was made for a claim that was not finished", {{"claim", uid}});
    DIBS_CHECK(take_back(ledger, uid));
  }
  return destroy_orphans(ledger);
}

Result<> Workshop::destroy_orphans(Ledger& ledger) {
  const std::size_t before = ledger.orphans.size();
  std::erase_if(ledger.orphans, [&](const LedgerInstance& entry) {
    auto destroyed = destroy(entry);
    if (!destroyed && !is_gone(destroyed.error())) {
      log::warn("an instance of a GPU that was lost cannot be destroyed",
                {{"device", entry.device}, {"error", destroyed.error()}});
    }
    return destroyed.ok();
  });
  if (ledger.orphans.size() == before) return success();
  return write(ledger);
}

/// The first that cannot be put back, which is tried again later.
Result<> Workshop::restore_modes(Ledger& ledger) {
  bool changed = false;
  Result<> first = success();
  for (auto mode = ledger.modes.begin(); mode != ledger.modes.end();) {
    const auto& [gpu, before] = *mode;
    const bool used = std::any_of(ledger.claims.begin(), ledger.claims.end(),
                                  [&, uuid = gpu](const auto& claim) { return uses(claim, uuid); });
    const auto info = parts_.library.gpu(gpu);
    if (used || !info) {
      ++mode;
      continue;
    }
    const auto there = parts_.library.mig_instances(gpu);
    const bool empty = there && there->empty();
    // Where the mode is as it was, another one may be waiting for a reset.
    auto switched = info->mig_enabled == before ? parts_.library.set_mig_mode(gpu, before)
                    : empty                     ? set_mode(gpu, before)
                            : Result<>(Error::conflict(cat("others have instances on GPU ", gpu)));
    if (!switched) {
      if (first) first = switched.error().within("MIG mode is left as it is");
      ++mode;
      continue;
    }
    mode = ledger.modes.erase(mode);
    changed = true;
  }
  if (changed) DIBS_CHECK(write(ledger));
  return first;
}

/// Nobody waits for it: put_back_modes() tries again.
void Workshop::try_to_restore_modes(Ledger& ledger) {
  if (auto restored = restore_modes(ledger); !restored) {
    log::warn("not all is as it was on the GPUs yet", {{"error", restored.error()}});
  }
}

Result<> Workshop::put_back_modes() {
  disk_failed_ = false;
  DIBS_TRY(auto all, ledger());
  return all.modes.empty() ? success() : restore_modes(all);
}

Result<> Workshop::recover() {
  disk_failed_ = false;
  DIBS_TRY(driver_version_, parts_.library.driver_version());
  DIBS_TRY(auto all, ledger());
  DIBS_CHECK(take_back_unfinished(all));
  try_to_restore_modes(all);
  return success();
}

Result<bool> Workshop::is_intact(const LedgerClaim& claim, const Order& order) {
  std::size_t migs = 0;
  for (const auto& part : order.parts) {
    if (!part.is_mig()) {
      if (!has(claim.gpus, part.gpu_uuid)) return false;
    } else if (!part.is_found()) {
      ++migs;
    }
  }
  if (migs != claim.instances.size()) return false;
  for (const auto& entry : claim.instances) {
    DIBS_TRY(const auto there, parts_.library.mig_instances(entry.gpu));
    const auto* found = find_instance(there, entry);
    if (found == nullptr || found->uuid.empty()) return false;
  }
  return true;
}

/// The last line of defence: the scheduler, or somebody who wrote an allocation himself, may have
/// given out what is not free.
Result<> Workshop::check_free(const Ledger& ledger, const Order& order) {
  for (const auto& part : order.parts) {
    for (const auto& claim : ledger.claims) {
      const auto held = [&](std::string_view what) {
        return Error::conflict(cat("requested device ", part.name, ": ", what,
                                   " is still prepared for claim ", claim_text(claim.id), " (",
                                   claim.id.uid, ")"));
      };
      if (has(claim.gpus, part.gpu_uuid)) return held("the GPU");
      for (const auto& entry : claim.instances) {
        if (entry.gpu != part.gpu_uuid || part.is_found()) continue;
        if (!part.is_mig() || overlap(entry.placement, part.placement)) return held(entry.device);
      }
    }
  }
  return success();
}

Result<LedgerClaim> Workshop::intent(const Order& order) {
  LedgerClaim claim;
  claim.id = order.id;
  for (const auto& part : order.parts) {
    if (!part.is_mig()) {
      claim.gpus.push_back(part.gpu_uuid);
      continue;
    }
    if (part.is_found()) continue;
    LedgerInstance entry;
    entry.device = part.name;
    entry.gpu = part.gpu_uuid;
    entry.profile = part.profile->id;
    entry.placement = part.placement;
    DIBS_TRY(const auto there, parts_.library.mig_instances(part.gpu_uuid));
    for (const auto& instance : there) {
      entry.others.push_back(instance.gpu_instance);
      if (!overlap(instance.placement, part.placement)) continue;
      return Error::conflict(cat("requested device ", part.name, ": GPU instance ",
                                 instance.gpu_instance, " lies there, which this driver has not ",
                                 "made; `nvidia-smi mig -i ", part.gpu_uuid, " -dci -gi ",
                                 instance.gpu_instance, "` and `-dgi -gi ", instance.gpu_instance,
                                 "` destroy it"));
    }
    claim.instances.push_back(std::move(entry));
  }
  for (const auto& group : order.groups) {
    for (const std::size_t i : group.parts) {
      const Part& part = order.parts[i];
      if (part.is_mig()) continue;
      if (group.config.sharing == Sharing::time_slicing) claim.sliced.push_back(part.gpu_uuid);
      if (group.config.sharing == Sharing::mps) claim.exclusive.push_back(part.gpu_uuid);
    }
  }
  return claim;
}

Result<> Workshop::set_mode(const std::string& gpu, bool enabled) {
  const Duration begun = parts_.clock.steady();
  if (parts_.let_go) parts_.let_go();
  const auto switched = parts_.library.set_mig_mode(gpu, enabled);
  if (parts_.take_up) parts_.take_up();
  DIBS_CHECK(switched);
  log::info("MIG mode switched",
            {{"gpu", gpu}, {"enabled", enabled}, {"milliseconds", milliseconds_since(begun)}});
  return success();
}

/// On for MIG instances, off for a whole GPU.
Result<> Workshop::switch_mode(Ledger& ledger, const Part& part) {
  DIBS_TRY(const auto before, parts_.library.gpu(part.gpu_uuid));
  const bool wanted = part.is_mig();
  if (parts_.mig != MigMode::dynamic || part.is_found()) return success();
  const std::string what = cat("error ", wanted ? "enabling" : "disabling", " MIG mode for device ",
                               gpu_name(part.minor));
  if (before.mig_enabled == wanted) {
    if (!can_switch_mig(before)) return success();
    // Another one may be waiting for a reset, which would take it from under the pod: ours, of when
    // the last claim went and somebody had the GPU open.
    auto kept = parts_.library.set_mig_mode(part.gpu_uuid, wanted);
    if (!kept) return kept.error().within(what);
    return success();
  }
  if (!wanted) {
    DIBS_TRY(const auto there, parts_.library.mig_instances(part.gpu_uuid));
    if (!there.empty()) {
      return Error::conflict(
          cat("requested device ", part.name, ": there are MIG instances on the GPU"));
    }
  }
  if (ledger.modes.emplace(part.gpu_uuid, before.mig_enabled).second) DIBS_CHECK(write(ledger));
  auto switched = set_mode(part.gpu_uuid, wanted);
  if (!switched) return switched.error().within(what);
  DIBS_TRY(const auto after, parts_.library.gpu(part.gpu_uuid));
  if (after.mig_enabled != wanted) {
    return Error::conflict(cat(what,
                               ": it waits for a reset of the GPU (`nvidia-smi --gpu-reset -i ",
                               part.gpu_uuid, "`)"));
  }
  if (after.minor != part.minor) {
    return Error::unavailable(cat(what, ": the GPU's minor number is ", after.minor, " now"));
  }
  return success();
}

Result<> Workshop::make(Ledger& ledger, const Order& order) {
  const std::string uid = order.id.uid;
  std::size_t next = 0;
  for (const auto& part : order.parts) {
    DIBS_CHECK(switch_mode(ledger, part));
    if (!part.is_mig() || part.is_found()) continue;
    const Duration begun = parts_.clock.steady();
    auto made = parts_.library.create_mig(part.gpu_uuid, part.profile->id, part.placement);
    if (!made) return made.error().within(cat("error creating MIG device ", part.name));
    log::info(
        "MIG instance made",
        {{"device", part.name}, {"uuid", made->uuid}, {"milliseconds", milliseconds_since(begun)}});
    LedgerInstance& entry = ledger.find(uid)->instances[next++];
    entry.gpu_instance = made->gpu_instance;
    entry.compute_instance = made->compute_instance;
    entry.uuid = made->uuid;
    DIBS_CHECK(write(ledger));
  }
  return share(ledger, order);
}

Result<> Workshop::share(Ledger& ledger, const Order& order) {
  LedgerClaim& claim = *ledger.find(order.id.uid);
  const auto uuid_of = [&](const Part& part) {
    if (!part.is_mig()) return part.gpu_uuid;
    if (part.is_found()) return part.mig_uuid;
    const auto entry =
        std::find_if(claim.instances.begin(), claim.instances.end(),
                     [&](const LedgerInstance& one) { return one.device == part.name; });
    return entry->uuid;
  };
  for (const auto& group : order.groups) {
    if (group.config.sharing != Sharing::mps) continue;
    LedgerDaemon daemon;
    for (const std::size_t i : group.parts) daemon.devices.push_back(uuid_of(order.parts[i]));
    daemon.id = daemon_id(order.id.uid, daemon.devices);
    daemon.active_thread_percentage = group.config.mps.active_thread_percentage;
    DIBS_TRY(daemon.pinned_memory_limits, limits_of(group.config.mps, daemon.devices));
    claim.daemons.push_back(std::move(daemon));
  }
  if (!claim.daemons.empty()) DIBS_CHECK(write(ledger));
  for (const auto& group : order.groups) {
    if (group.config.sharing != Sharing::time_slicing) continue;
    for (const std::size_t i : group.parts) {
      const Part& part = order.parts[i];
      if (part.is_mig()) continue;
      auto mode = parts_.library.set_compute_mode(part.gpu_uuid, nvml::ComputeMode::normal);
      if (!mode) return mode.error().within("error setting compute mode");
      DIBS_CHECK(parts_.slices.set(part.gpu_uuid, group.config.interval_number(), driver_version_));
    }
  }
  for (const auto& gpu : claim.exclusive) {
    auto mode = parts_.library.set_compute_mode(gpu, nvml::ComputeMode::exclusive_process);
    if (!mode) return mode.error().within("error setting compute mode");
  }
  for (const auto& daemon : claim.daemons) {
    DIBS_CHECK(parts_.daemons.start(daemon, driver_version_));
  }
  return success();
}

Result<LedgerClaim> Workshop::prepare(const Order& order) {
  disk_failed_ = false;
  DIBS_TRY(driver_version_, parts_.library.driver_version());
  DIBS_TRY(auto all, ledger());
  DIBS_CHECK(take_back_unfinished(all));
  if (const LedgerClaim* before = all.find(order.id.uid); before != nullptr) {
    DIBS_TRY(const bool intact, is_intact(*before, order));
    if (intact) {
      for (const auto& daemon : before->daemons) {
        DIBS_CHECK(parts_.daemons.start(daemon, driver_version_));
      }
      return *before;
    }
    log::warn("what was prepared for a claim is gone; it is made again", {{"claim", order.id.uid}});
    DIBS_CHECK(take_back(all, order.id.uid));
  }
  DIBS_CHECK(check_free(all, order));
  DIBS_TRY(auto claim, intent(order));
  all.claims.push_back(std::move(claim));
  DIBS_CHECK(write(all));
  auto made = make(all, order);
  if (made) {
    all.find(order.id.uid)->ready = true;
    made = write(all);
  }
  if (!made) {
    if (!disk_failed_) {
      auto back = take_back(all, order.id.uid);
      if (!back) {
        log::warn("what was made for a claim cannot be taken back yet",
                  {{"claim", order.id.uid}, {"error", back.error()}});
      }
    }
    return made.error();
  }
  return *all.find(order.id.uid);
}

Result<std::vector<std::string>> Workshop::unprepare(const driver::ClaimName& claim) {
  disk_failed_ = false;
  std::vector<std::string> freed;
  DIBS_TRY(auto all, ledger());
  const LedgerClaim* before = all.find(claim.uid);
  if (before == nullptr) return freed;
  DIBS_TRY(driver_version_, parts_.library.driver_version());
  for (const auto& entry : before->instances) freed.push_back(entry.device);
  DIBS_CHECK(take_back(all, claim.uid));
  return freed;
}

Result<std::vector<LedgerDaemon>> Workshop::mps_daemons() {
  DIBS_TRY(const auto all, ledger());
  std::vector<LedgerDaemon> out;
  for (const auto& claim : all.claims) {
    if (claim.ready) out.insert(out.end(), claim.daemons.begin(), claim.daemons.end());
  }
  return out;
}

Result<> Workshop::start_daemons(const std::vector<LedgerDaemon>& ended) {
  if (ended.empty()) return success();
  DIBS_TRY(const auto there, mps_daemons());
  DIBS_TRY(const auto version, parts_.library.driver_version());
  Result<> first = success();
  for (const auto& daemon : there) {
    const bool has_ended = std::any_of(
        ended.begin(), ended.end(), [&](const LedgerDaemon& one) { return one.id == daemon.id; });
    if (!has_ended) continue;
    auto started = parts_.daemons.start(daemon, version);
    if (!started && first) first = started.error();
  }
  return first;
}

}  // namespace dibs::drivers::nvidia
