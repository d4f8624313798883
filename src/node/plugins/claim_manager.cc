#include "node/plugins/claim_manager.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "cdi/annotations.h"

namespace dibs::node {
namespace {

using json::Value;

/// Longer than the drivers of a claim should take one after another.
constexpr auto kLongestWait = std::chrono::minutes(5);

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";

using client::namespace_of;
using client::uid_of;

std::string key_of(const ClaimInfo& info) { return client::key_of(info.name_space, info.name); }

/// The part of an annotation's key behind the slash.
constexpr std::size_t kLongestKey = 63;

/// Kubelets refuse a driver whose name makes the key too long. The ids reach the container anyway,
/// so it only has no annotation here.
void annotate(const ClaimInfo& info, const std::string& driver, const DriverState& state,
              std::map<std::string, std::string>& annotations) {
  const std::string key = cat(driver, "_", info.uid);
  std::string ids;
  for (const auto& device : state.devices) {
    for (const auto& id : device.cdi_ids) append(ids, ids.empty() ? "" : ",", id);
  }
  if (ids.empty() || key.size() > kLongestKey) return;
  annotations[cat(cdi::kAnnotationPrefix, key)] = std::move(ids);
}

/// What a driver is told of a claim; of the classic model once per handle.
std::vector<ClaimRef> refs_of(const ClaimInfo& info, const std::string& driver) {
  ClaimRef ref{info.name_space, info.uid, info.name, info.classic, {}, {}, {}};
  if (!info.classic) return {ref};
  if (const auto state = info.drivers.find(driver); state != info.drivers.end()) {
    for (const auto& device : state->second.devices) {
      ref.prepared_ids.insert(ref.prepared_ids.end(), device.cdi_ids.begin(), device.cdi_ids.end());
    }
  }
  std::vector<ClaimRef> out;
  for (const auto& handle : info.handles) {
    if (handle.driver != driver) continue;
    ref.handle = handle.data;
    ref.structured = handle.structured;
    out.push_back(ref);
  }
  return out;
}

/// What stands before the error of a call that failed as a whole.
std::string call_failed(std::string_view method, NodeRelease release) {
  return release.classic() ? cat(method, " failed") : std::string(method);
}

/// What the answers of a driver must have: an entry for each claim and no other, without errors.
template <typename Answers, typename ErrorOf>
Result<> check_answers(std::string_view method, const std::vector<ClaimRef>& claims,
                       const Answers& answers, bool classic_words, const ErrorOf& error_of) {
  std::map<std::string, const ClaimRef*> by_uid;
  for (const auto& claim : claims) by_uid[claim.uid] = &claim;
  for (const auto& [uid, answer] : answers) {
    if (by_uid.count(uid) == 0) {
      return Error::internal(cat(method, " returned result for unknown claim UID ", uid));
    }
  }
  for (const auto& [uid, answer] : answers) {
    const std::string& error = error_of(answer);
    if (error.empty()) continue;
    const ClaimRef& claim = *by_uid.at(uid);
    if (classic_words) {
      return Error::internal(
          cat(method, " failed for claim ", claim.name_space, "/", claim.name, ": ", error));
    }
    return Error::internal(cat(method, " failed for ResourceClaim ", claim.name, ": ", error));
  }
  if (answers.size() < by_uid.size()) {
    const std::size_t missing = by_uid.size() - answers.size();
    return Error::internal(classic_words ? cat(method, " left out ", missing, " claims")
                                         : cat(method, " skipped ", missing, " ResourceClaims"));
  }
  return success();
}

}  // namespace

ClaimManager::ClaimManager(ClaimManagerOptions options, client::Client& api, runtime::Clock& clock,
                           DriverPlugins& plugins, ClaimCache& cache, DeviceHealth& health,
                           PluginMetrics& metrics)
    : options_(options),
      api_(api),
      clock_(clock),
      plugins_(plugins),
      cache_(cache),
      health_(health),
      metrics_(metrics),
      turns_(kLongestWait) {
  count();
}

Result<> ClaimManager::prepare(const Value& pod) {
  const Duration begin = clock_.steady();
  auto prepared = prepare_all(pod);
  metrics_.operation("PrepareResources", !prepared.ok(), clock_.steady() - begin);
  count();
  if (prepared || options_.release.classic()) return prepared;
  return prepared.error().within("prepare dynamic resources");
}

Result<> ClaimManager::unprepare(const Value& pod) {
  const Duration begin = clock_.steady();
  auto unprepared = unprepare_uid(std::string(uid_of(pod)));
  metrics_.operation("UnprepareResources", !unprepared.ok(), clock_.steady() - begin);
  count();
  if (unprepared || options_.release.classic()) return unprepared;
  return unprepared.error().within("unprepare dynamic resources");
}

Result<Value> ClaimManager::read_claim(const Value& pod, const std::string& name) {
  const client::Gvr claims = {"resource.k8s.io", std::string(options_.release.resource_version()),
                              "resourceclaims"};
  auto claim = api_.get(claims, namespace_of(pod), name);
  if (!claim && options_.release.classic()) {
    return claim.error().within(
        cat("failed to fetch ResourceClaim ", name, " referenced by pod ", client::name_of(pod)));
  }
  if (!claim) return claim.error().within(cat("fetch ResourceClaim ", name));
  return claim;
}

Result<ClaimInfo> ClaimManager::load(const Value& pod, const PodClaim& wanted) {
  DIBS_TRY(const Value claim, read_claim(pod, wanted.claim));
  DIBS_CHECK(check_claim(pod, wanted, claim, options_.release));
  ClaimInfo info = info_of(claim);
  if (!wanted.prepared) return info;
  for (const auto& [driver, state] : info.drivers) {
    if (!state.skip.empty() && !options_.optional_operations) {
      return Error::invalid(cat("ResourceClaim ", info.name,
                                ": DRAOptionalNodeOperations feature gate is disabled on kubelet"));
    }
  }
  DIBS_CHECK(need_plugins(info));
  return info;
}

Result<> ClaimManager::need_plugins(const ClaimInfo& info) {
  for (const auto& [driver, state] : info.drivers) {
    if (state.skips(kPrepare)) continue;
    DIBS_TRY(const auto plugin, plugins_.pick(driver));
  }
  return success();
}

void ClaimManager::add_to(std::vector<Batch>& batches, const ClaimInfo& info,
                          const std::string& driver) {
  const auto refs = refs_of(info, driver);
  for (auto& batch : batches) {
    if (batch.driver != driver || batch.claims[0].classic != info.classic) continue;
    batch.claims.insert(batch.claims.end(), refs.begin(), refs.end());
    return;
  }
  if (!refs.empty()) batches.push_back({driver, refs});
}

/// Nobody else may prepare under this claim's name now.
Result<> ClaimManager::check_entry(const ClaimInfo& info) const {
  const auto found = cache_.entries.find(key_of(info));
  if (found == cache_.entries.end()) return success();
  if (found->second.uid != info.uid) {
    return Error::conflict(cat("old ResourceClaim with same name ", info.name,
                               " and different UID ", found->second.uid,
                               " still exists (previous pod force-deleted?!)"));
  }
  if (found->second.unpreparing) {
    return Error::conflict(cat("ResourceClaim ", info.name, " is being unprepared"));
  }
  return success();
}

/// Notes the pod with its claims; what is not prepared yet goes into batches.
Result<std::vector<ClaimManager::Batch>> ClaimManager::note(const std::string& pod_uid,
                                                            const std::vector<ClaimInfo>& infos,
                                                            Turns& turns) {
  const MutexLock lock(cache_.mutex);
  for (const auto& info : infos) DIBS_CHECK(check_entry(info));
  std::vector<Batch> batches;
  for (const auto& info : infos) {
    const auto [found, fresh] = cache_.entries.emplace(key_of(info), info);
    ClaimInfo& entry = found->second;
    bool changed = entry.pods.insert(pod_uid).second || fresh;
    if (!entry.prepared) {
      for (const auto& [driver, state] : info.drivers) {
        // A driver that was not in an older allocation of the claim.
        changed = entry.drivers.emplace(driver, state).second || changed;
        if (state.skips(kPrepare)) {
          metrics_.skipped_prepare(driver);
          continue;
        }
        add_to(batches, info, driver);
      }
    }
    if (changed) cache_.changed();
  }
  // Whoever wants to join a claim that is prepared need not wait for the others of this pod.
  std::erase_if(turns, [this](const ClaimTurns::Turn& turn) DIBS_REQUIRES(cache_.mutex) {
    return cache_.entries.at(turn.claim()).prepared;
  });
  return batches;
}

/// The claims that the pod may use and that its drivers hear of, each once.
Result<std::vector<ClaimInfo>> ClaimManager::load_all(const Value& pod) {
  std::vector<ClaimInfo> infos;
  if (!options_.enabled) return infos;
  const auto wanted = claims_of(pod, options_.release);
  if (!wanted) {
    return options_.release.classic() ? wanted.error().within("prepare resource claim")
                                      : wanted.error();
  }
  for (const auto& claim : *wanted) {
    DIBS_TRY(auto info, load(pod, claim));
    const bool known = std::any_of(infos.begin(), infos.end(),
                                   [&](const ClaimInfo& other) { return other.name == info.name; });
    if (claim.prepared && !known) infos.push_back(std::move(info));
  }
  return infos;
}

Result<> ClaimManager::prepare_all(const Value& pod) {
  DIBS_TRY(const auto infos, load_all(pod));
  if (infos.empty()) return success();
  std::vector<std::string> keys;
  for (const auto& info : infos) keys.push_back(key_of(info));

  const std::string uid(uid_of(pod));
  DIBS_TRY(Turns turns, turns_.take(keys, uid));
  DIBS_TRY(const auto batches, note(uid, infos, turns));
  DIBS_CHECK(checkpoint());
  for (const auto& batch : batches) DIBS_CHECK(prepare_batch(batch));
  if (turns.empty()) return success();
  {
    const MutexLock lock(cache_.mutex);
    for (const auto& turn : turns) cache_.entries[turn.claim()].prepared = true;
    cache_.changed();
  }
  return checkpoint();
}

Result<> ClaimManager::checkpoint() {
  auto written = cache_.persist();
  if (written) return written;
  return written.error().within("failed to checkpoint claimInfo state");
}

Result<> ClaimManager::prepare_batch(const Batch& batch) {
  DIBS_TRY(const auto plugin, plugins_.pick(batch.driver));
  {
    // Else the devices of an attempt that failed would stay beside those of the next.
    const MutexLock lock(cache_.mutex);
    for (const auto& claim : batch.claims) {
      cache_.entries[client::key_of(claim.name_space, claim.name)]
          .drivers[batch.driver]
          .devices.clear();
    }
  }
  auto answers = plugin->prepare(batch.claims);
  if (!answers) return answers.error().within(call_failed(kPrepare, options_.release));
  DIBS_CHECK(check_answers(
      kPrepare, batch.claims, *answers, batch.claims[0].classic,
      [](const PrepareAnswer& answer) -> const std::string& { return answer.error; }));
  const MutexLock lock(cache_.mutex);
  for (const auto& claim : batch.claims) {
    auto& devices =
        cache_.entries[client::key_of(claim.name_space, claim.name)].drivers[batch.driver].devices;
    devices = answers->at(claim.uid).devices;
    for (auto& device : devices) device.driver = batch.driver;
  }
  return success();
}

std::vector<std::string> ClaimManager::claims_noted_for(const std::string& pod_uid) {
  const MutexLock lock(cache_.mutex);
  std::vector<std::string> keys;
  for (const auto& [key, entry] : cache_.entries) {
    if (entry.pods.count(pod_uid) != 0) keys.push_back(key);
  }
  return keys;
}

/// Takes the pod from its claims; those that it is the last pod of keep their turn and go into
/// batches.
std::vector<ClaimManager::Batch> ClaimManager::take_leave(const std::string& pod_uid,
                                                          Turns& turns) {
  std::vector<Batch> batches;
  const MutexLock lock(cache_.mutex);
  std::erase_if(turns, [&](const ClaimTurns::Turn& turn) DIBS_REQUIRES(cache_.mutex) {
    const auto found = cache_.entries.find(turn.claim());
    if (found == cache_.entries.end() || found->second.pods.count(pod_uid) == 0) return true;
    ClaimInfo& entry = found->second;
    if (entry.pods.size() > 1) {
      entry.pods.erase(pod_uid);
      cache_.changed();
      return true;
    }
    entry.unpreparing = true;
    for (const auto& [driver, state] : entry.drivers) {
      if (state.skips(kUnprepare)) {
        metrics_.skipped_unprepare(driver);
        continue;
      }
      add_to(batches, entry, driver);
    }
    return false;
  });
  return batches;
}

Result<> ClaimManager::unprepare_uid(const std::string& pod_uid) {
  DIBS_TRY(Turns turns, turns_.take(claims_noted_for(pod_uid), pod_uid));
  for (const auto& batch : take_leave(pod_uid, turns)) DIBS_CHECK(unprepare_batch(batch));
  if (!turns.empty()) {
    const MutexLock lock(cache_.mutex);
    for (const auto& turn : turns) cache_.entries.erase(turn.claim());
    cache_.changed();
  }
  return cache_.persist();
}

Result<> ClaimManager::unprepare_batch(const Batch& batch) {
  DIBS_TRY(const auto plugin, plugins_.pick(batch.driver));
  auto answers = plugin->unprepare(batch.claims);
  if (!answers) return answers.error().within(call_failed(kUnprepare, options_.release));
  return check_answers(kUnprepare, batch.claims, *answers, batch.claims[0].classic,
                       [](const std::string& error) -> const std::string& { return error; });
}

void ClaimManager::count() {
  if (!metrics_.enabled()) return;
  std::map<std::string, std::size_t> counts;
  for (const auto& driver : plugins_.drivers()) counts[driver] = 0;
  std::size_t all = 0;
  {
    const MutexLock lock(cache_.mutex);
    for (const auto& [key, entry] : cache_.entries) {
      ++all;
      for (const auto& [driver, state] : entry.drivers) ++counts[driver];
    }
  }
  metrics_.claims_in_use("<any>", all);
  for (const auto& [driver, n] : counts) metrics_.claims_in_use(driver, n);
}

Result<ContainerDevices> ClaimManager::devices_of(const Value& pod, std::string_view container) {
  ContainerDevices out;
  if (!options_.enabled) return out;
  const bool classic = options_.release.classic();
  const MutexLock lock(cache_.mutex);
  for (const auto& use : uses_of(pod, container_of(pod, container), options_.release)) {
    const auto found = cache_.entries.find(client::key_of(namespace_of(pod), use.claim));
    if (found == cache_.entries.end()) {
      if (classic) {
        return Error::internal(cat("unable to get resource for namespace: ", namespace_of(pod),
                                   ", claim: ", use.claim));
      }
      return Error::internal(cat("internal error: unable to get claim info for ResourceClaim ",
                                 use.claim, " in namespace ", namespace_of(pod)));
    }
    for (const auto& [driver, state] : found->second.drivers) {
      for (const auto& device : state.devices) {
        if (!selects(use, device)) continue;
        out.cdi_ids.insert(out.cdi_ids.end(), device.cdi_ids.begin(), device.cdi_ids.end());
      }
      if (classic) annotate(found->second, driver, state, out.annotations);
    }
  }
  return out;
}

bool ClaimManager::holds(std::string_view pod_uid) {
  const std::string uid(pod_uid);
  const MutexLock lock(cache_.mutex);
  return std::any_of(cache_.entries.begin(), cache_.entries.end(),
                     [&](const auto& entry) { return entry.second.pods.count(uid) != 0; });
}

Value ClaimManager::health_of(const Value& pod, std::string_view container) {
  if (!options_.health) return {};
  // Only regular containers have the field.
  const Value* spec = nullptr;
  for (const auto& candidate : pod["spec"]["containers"].items()) {
    if (candidate["name"].as_string() == container) spec = &candidate;
  }
  if (!spec) return {};
  Value out;
  for (const auto& use : uses_of(pod, *spec, options_.release)) {
    if (use.pod_claim.empty()) continue;
    const auto info = find(namespace_of(pod), use.claim);
    if (!info) continue;
    Value resources = health_.describe(*info, use, options_.health_message);
    if (resources.empty()) continue;
    out.push(Value::object(
        {{"name", use.request.empty() ? cat("claim:", use.pod_claim)
                                      : cat("claim:", use.pod_claim, "/", use.request)},
         {"resources", resources}}));
  }
  return out;
}

void ClaimManager::on_health_change(std::function<void(const std::string& pod_uid)> changed) {
  const MutexLock lock(listener_mutex_);
  health_listener_ = std::move(changed);
}

void ClaimManager::health_changed(const std::string& driver,
                                  const std::vector<DeviceName>& devices) {
  std::function<void(const std::string&)> listener;
  {
    const MutexLock lock(listener_mutex_);
    listener = health_listener_;
  }
  if (!listener) return;
  std::set<std::string> pods;
  {
    const MutexLock lock(cache_.mutex);
    for (const auto& [key, entry] : cache_.entries) {
      const auto state = entry.drivers.find(driver);
      if (state == entry.drivers.end()) continue;
      const bool touched = std::any_of(
          state->second.devices.begin(), state->second.devices.end(), [&](const auto& device) {
            return std::find(devices.begin(), devices.end(),
                             DeviceName{device.pool, device.device}) != devices.end();
          });
      if (touched) pods.insert(entry.pods.begin(), entry.pods.end());
    }
  }
  for (const auto& pod : pods) listener(pod);
}

bool ClaimManager::release_gone(
    const std::function<std::optional<std::set<std::string>>()>& active) {
  std::set<std::string> noted;
  {
    const MutexLock lock(cache_.mutex);
    for (const auto& [key, entry] : cache_.entries) {
      noted.insert(entry.pods.begin(), entry.pods.end());
    }
  }
  // Asked after the look at the cache: a pod that starts meanwhile is not among those noted.
  const auto alive = active();
  if (!alive) return false;
  bool all = true;
  for (const auto& pod : noted) {
    if (alive->count(pod) != 0) continue;
    auto released = unprepare_uid(pod);
    count();
    if (released) continue;
    all = false;
    log::warn("claims of a pod that is gone cannot be unprepared yet",
              {{"pod", pod}, {"error", released.error()}});
  }
  return all;
}

std::optional<ClaimInfo> ClaimManager::find(std::string_view name_space, std::string_view claim) {
  const MutexLock lock(cache_.mutex);
  const auto found = cache_.entries.find(client::key_of(name_space, claim));
  if (found == cache_.entries.end()) return std::nullopt;
  return found->second;
}

}  // namespace dibs::node
