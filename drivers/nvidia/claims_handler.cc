#include "drivers/nvidia/claims_handler.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "cdi/spec.h"
#include "json/parse.h"
#include "runtime/blocking.h"

namespace dibs::drivers::nvidia {
namespace {

using client::WorkOutcome;
using json::Value;

constexpr Duration kLookEvery = std::chrono::seconds(1);
constexpr unsigned kLooksPerStock = 10;
// A GPU that is failing may tell more errors than anybody wants to hear at once.
constexpr int kEventsPerLook = 64;

Value usage_value(const nvml::Utilization& use) {
  Value out = Value::object({{"memoryUsed", use.memory_used}, {"memory", use.memory_total}});
  if (use.gpu_percent) out.set("percent", *use.gpu_percent);
  return out;
}

}  // namespace

ClaimsHandler::ClaimsHandler(std::unique_ptr<nvml::Library> library, runtime::Files& files,
                             runtime::Files& machine, runtime::Runtime& runtime,
                             HandlerOptions options)
    : options_(std::move(options)),
      library_(std::move(library)),
      files_(files),
      machine_(machine),
      runtime_(runtime),
      health_(options_.harmless_xids),
      gpus_(options_.node_name, options_.mig),
      edits_(machine, options_.edits),
      daemons_(options_.run, files, machine, options_.roots, cat(options_.data_dir, "/mps")),
      workshop_({*library_, files, runtime.clock, cat(options_.data_dir, "/gpus.json"),
                 TimeSlices(options_.run, machine, options_.roots), daemons_, options_.mig,
                 [this] { give_up_events(); }, [this] { untold_ = watch_events() || untold_; }}),
      queue_(runtime, {}, [this](const std::string&) { return look(); }) {}

ClaimsHandler::~ClaimsHandler() { queue_.stop(); }

Result<> ClaimsHandler::begin() {
  const Workshop::Turn turn(workshop_);
  // In a rolling update the other instance may be at work on what looks unfinished; then it is
  // taken back before the first claim, when the claims' lock is held.
  if (!options_.may_have_predecessor) {
    if (auto recovered = workshop_.recover(); !recovered) {
      log::warn("what an earlier process left on the GPUs cannot be taken back yet",
                {{"error", recovered.error()}});
    }
  }
  DIBS_CHECK(count_gpus());
  look_at_rows();
  watch_events();
  return success();
}

void ClaimsHandler::started(driver::Plugin& plugin) {
  {
    const MutexLock lock(mutex_);
    plugin_ = &plugin;
  }
  queue_.add("look");
}

void ClaimsHandler::stopping() {
  queue_.stop();
  const MutexLock lock(mutex_);
  plugin_ = nullptr;
}

void ClaimsHandler::tell() {
  driver::Plugin* plugin = nullptr;
  {
    const MutexLock lock(mutex_);
    plugin = plugin_;
  }
  // stopping() waits for look(), and comes before the plugin goes.
  if (plugin == nullptr) return;
  if (auto published = plugin->publish(); !published) {
    log::warn("the GPUs cannot be published", {{"error", published.error()}});
  }
  plugin->health_changed();
}

WorkOutcome ClaimsHandler::look() {
  const runtime::Blocking blocking;
  bool changed = false;
  if (++looks_ % kLooksPerStock == 0) stock_is_due_ = true;
  DaemonsSeen daemons;
  if (stock_is_due_) daemons = see_daemons();
  {
    // While a claim is prepared it is not known yet whose a new instance is.
    const auto turn = workshop_.try_turn();
    if (turn == nullptr) return WorkOutcome::again_after(kLookEvery);
    changed = take_events();
    // Before they are watched again: one of them may have been lost just now.
    if (stock_is_due_.exchange(false)) changed = take_stock(daemons) || changed;
    changed = watch_events() || changed;
    changed = measure() || changed;
    changed = std::exchange(untold_, false) || changed;
  }
  if (changed) tell();
  return WorkOutcome::again_after(kLookEvery);
}

Result<bool> ClaimsHandler::count_gpus() {
  DIBS_TRY(auto inventory, take_inventory(*library_, machine_, options_.sysfs_root));
  tell_unread(inventory.unread);
  DIBS_TRY(const auto ledger, workshop_.ledger());
  return gpus_.update(std::move(inventory), ledger, health_, runtime_.clock.now());
}

/// A GPU that nobody could ever read is not published: only this tells why.
void ClaimsHandler::tell_unread(const std::vector<nvml::UnreadGpu>& gpus) {
  std::vector<std::string> now;
  for (const auto& gpu : gpus) now.push_back(gpu.error.message());
  if (now == unread_) return;
  for (const auto& why : now) log::warn("a GPU cannot be read", {{"error", why}});
  unread_ = std::move(now);
}

/// Claims do not wait meanwhile: a container may have a daemon too busy to answer.
ClaimsHandler::DaemonsSeen ClaimsHandler::see_daemons() {
  DaemonsSeen seen;
  Result<std::vector<LedgerDaemon>> there = std::vector<LedgerDaemon>();
  {
    const auto turn = workshop_.try_turn();
    if (turn != nullptr) there = workshop_.mps_daemons();
  }
  if (!there || there->empty()) return seen;
  const auto version = library_->driver_version();
  if (!version) return seen;
  for (const auto& daemon : *there) {
    const auto runs = daemons_.runs(daemon, *version);
    if (!runs) {
      seen.trouble = runs.error();
    } else if (!*runs) {
      seen.ended.push_back(daemon);
    }
  }
  return seen;
}

bool ClaimsHandler::take_stock(const DaemonsSeen& daemons) {
  auto counted = count_gpus();
  auto started = workshop_.start_daemons(daemons.ended);
  auto put_back = workshop_.put_back_modes();
  const std::string trouble = !counted           ? counted.error().message()
                              : !started         ? started.error().message()
                              : !daemons.trouble ? daemons.trouble.error().message()
                              : !put_back        ? put_back.error().message()
                                                 : std::string();
  if (trouble != trouble_) {
    if (!trouble.empty()) log::warn("trouble with the GPUs", {{"error", trouble}});
    trouble_ = trouble;
  }
  const bool rows = look_at_rows();
  return (counted && *counted) || rows;
}

bool ClaimsHandler::look_at_rows() {
  bool changed = false;
  for (const auto& uuid : gpus_.uuids(health_)) {
    // GPUs without such memory say that they do not know.
    const auto rows = library_->remapped_rows(uuid);
    if (rows && health_.set_rows(uuid, *rows, runtime_.clock.now())) {
      log::warn("rows of a GPU's memory",
                {{"gpu", uuid}, {"pending", rows->pending}, {"failed", rows->failed}});
      changed = true;
    }
  }
  return changed;
}

bool ClaimsHandler::watch_events() {
  auto wanted = gpus_.uuids(health_);
  if (wanted == watched_ && (events_ != nullptr || wanted.empty())) return false;
  const Time now = runtime_.clock.now();
  std::map<std::string, std::string> why;
  events_.reset();
  auto made = library_->watch(wanted);
  if (made) {
    events_ = std::move(made).value();
    for (const auto& [uuid, reason] : events_->unwatched()) why[uuid] = reason;
  } else {
    for (const auto& uuid : wanted) why[uuid] = made.error().message();
  }
  bool changed = false;
  for (const auto& uuid : wanted)
    changed = health_.set_unmonitored(uuid, why[uuid], now) || changed;
  watched_ = std::move(wanted);
  return changed;
}

void ClaimsHandler::give_up_events() {
  untold_ = take_events() || untold_;
  events_.reset();
  watched_.clear();
}

/// Containers cannot load the kernel's module for CUDA's memory, and without its device CUDA fails
/// there with an error that names nothing. After a boot nobody may have needed it yet.
void ClaimsHandler::load_uvm() {
  if (machine_.exists(below(options_.roots.dev, "/dev/nvidia-uvm"))) return;
  const std::string tool = find_tool(machine_, options_.roots, "nvidia-modprobe");
  const auto loaded = tool.empty() ? Result<std::string>(Error::not_found("no nvidia-modprobe"))
                                   : options_.run({{tool, "-u", "-c", "0"}});
  if (loaded) return;
  log::warn("/dev/nvidia-uvm is not there, without which CUDA does not start in containers",
            {{"error", loaded.error()}});
}

bool ClaimsHandler::take_events() {
  bool changed = false;
  for (int i = 0; i < kEventsPerLook && events_ != nullptr; ++i) {
    auto event = events_->wait(Duration(0));
    if (!event) {
      // The set is of no use any more where one of its GPUs is lost; which one, the next count
      // tells.
      log::warn("events of the GPUs", {{"error", event.error()}});
      events_.reset();
      watched_.clear();
      stock_is_due_ = true;
      break;
    }
    if (!*event) break;
    const nvml::Event& seen = **event;
    std::string device;
    if (seen.gpu_instance) {
      const auto there = library_->mig_instances(seen.gpu_uuid);
      if (there) {
        for (const auto& instance : *there) {
          if (instance.gpu_instance == *seen.gpu_instance) {
            device = gpus_.device_of(seen.gpu_uuid, instance);
          }
        }
      }
    }
    log::warn("a GPU reports an error",
              {{"gpu", seen.gpu_uuid},
               {"device", device},
               {"kind", seen.kind == nvml::EventKind::xid ? "xid" : "ecc"},
               {"xid", seen.data}});
    changed = health_.saw(seen, device, runtime_.clock.now()) || changed;
  }
  return changed;
}

bool ClaimsHandler::measure() {
  const Duration now = runtime_.clock.steady();
  if (options_.usage_every == Duration(0) || now < measured_) return false;
  measured_ = now + options_.usage_every;
  Value usage = Value::object();
  const auto ledger = workshop_.ledger();
  for (const auto& uuid : gpus_.uuids(health_)) {
    const auto info = library_->gpu(uuid);
    const auto use = library_->utilization(uuid);
    if (info && use) usage.set(gpu_name(info->minor), usage_value(*use));
  }
  if (ledger) {
    for (const auto& claim : ledger->claims) {
      for (const auto& entry : claim.instances) {
        const auto use = library_->mig_utilization(entry.uuid);
        if (use) usage.set(entry.device, usage_value(*use));
      }
    }
  }
  const MutexLock lock(mutex_);
  if (usage_ == usage) return false;
  usage_ = std::move(usage);
  return true;
}

Result<std::vector<driver::Pool>> ClaimsHandler::devices() {
  std::vector<driver::Pool> pools = {pool_of(gpus_.all(), health_)};
  const MutexLock lock(mutex_);
  // Also where it is empty: what an earlier driver has told goes.
  pools.front().annotations = Value::object({{kUsageAnnotation, json::write(usage_)}});
  return pools;
}

std::vector<driver::DeviceHealth> ClaimsHandler::health() {
  std::vector<driver::DeviceHealth> out;
  const SlicesInput all = gpus_.all();
  for (const auto& known : all.gpus) {
    for (const auto& part : known.parts) out.push_back(health_.health_of(all.pool, part));
  }
  return out;
}

Result<std::vector<ClaimsHandler::Chosen>> ClaimsHandler::choose(const driver::Claim& claim,
                                                                 Order& order) {
  DIBS_TRY(const auto configs, decode_configs(claim, kDriverName));
  order.id = claim.id;
  std::map<std::size_t, std::size_t> groups;  // by config
  std::vector<Chosen> out;
  for (const auto& device : claim.devices) {
    auto found = gpus_.find(device.device);
    if (!found) {
      DIBS_CHECK(count_gpus());
      found = gpus_.find(device.device);
    }
    if (!found) {
      return Error::not_found(cat("allocatable not found for device ", quoted(device.device)));
    }
    if (health_.is_lost(found->part.gpu_uuid)) {
      return Error::unavailable(
          cat("requested device ", device.device, ": GPU ", found->part.gpu_uuid, " is lost"));
    }
    DIBS_TRY(const auto config, config_of(configs, device, found->part.is_mig()));
    // Who only looks on changes nothing, and holds nothing.
    if (!device.admin_access) {
      order.parts.push_back(found->part);
      if (config) {
        const auto [group, is_new] = groups.emplace(*config, order.groups.size());
        if (is_new) order.groups.push_back({configs[*config].config, {}});
        order.groups[group->second].parts.push_back(order.parts.size() - 1);
      }
    }
    out.push_back({device, std::move(*found)});
  }
  return out;
}

Result<MigIds> ClaimsHandler::instance_of(const Chosen& chosen, const LedgerClaim& made) {
  const Part& part = chosen.found.part;
  for (const auto& entry : made.instances) {
    if (entry.device == part.name && entry.gpu_instance) {
      return MigIds{*entry.gpu_instance, entry.compute_instance};
    }
  }
  DIBS_TRY(const auto there, library_->mig_instances(part.gpu_uuid));
  for (const auto& instance : there) {
    const bool is_it = part.is_found() ? instance.uuid == part.mig_uuid
                                       : instance.profile == part.profile->id &&
                                             instance.placement == part.placement;
    if (is_it && instance.compute_instance != nvml::kNoInstance) {
      return MigIds{instance.gpu_instance, instance.compute_instance};
    }
  }
  return Error::not_found(cat("MIG device ", part.name, " is not there",
                              part.is_found() ? ": whoever made it has destroyed it" : ""));
}

Result<std::vector<driver::PreparedDevice>> ClaimsHandler::answer(
    const std::vector<Chosen>& chosen, const LedgerClaim& made, const cdi::ContainerEdits& common) {
  const SlicesInput all = gpus_.all();
  std::vector<driver::PreparedDevice> out;
  for (const Chosen& one : chosen) {
    const Part& part = one.found.part;
    cdi::ContainerEdits edits = common;
    std::string uuid = part.gpu_uuid;
    Value attributes = device_of(all, one.found.gpu, part).object()["attributes"];
    if (part.is_mig()) {
      DIBS_TRY(const MigIds ids, instance_of(one, made));
      DIBS_TRY(const auto own, edits_.mig(part.minor, ids));
      edits.append(own);
      uuid = part.mig_uuid;
      for (const auto& entry : made.instances) {
        if (entry.device == part.name) uuid = entry.uuid;
      }
      if (!uuid.empty()) attributes.set("uuid", Value::object({{"string", uuid}}));
    } else {
      DIBS_TRY(const auto own, edits_.gpu(part.minor));
      edits.append(own);
    }
    for (const auto& daemon : made.daemons) {
      const bool shares =
          std::find(daemon.devices.begin(), daemon.devices.end(), uuid) != daemon.devices.end();
      if (shares && !one.device.admin_access) edits.append(daemons_.edits(daemon));
    }
    out.push_back(driver::prepared(one.device, std::move(edits)));
    out.back().metadata = Value::object({{"attributes", std::move(attributes)}});
  }
  return out;
}

/// What was prepared once is not written again, as long as the file is there. Where an instance had
/// to be made anew, or the driver's libraries are others, it tells what is not true any more.
Result<> ClaimsHandler::check_cdi_file(const std::string& claim_uid,
                                       const std::vector<driver::PreparedDevice>& devices) {
  const std::string path =
      cat(options_.cdi_dir, "/",
          cdi::spec_file_name(cat("k8s.", kDriverName), options_.cdi_class, claim_uid));
  const auto text = files_.read(path);
  if (!text) return success();
  const auto spec = cdi::parse_spec(*text);
  const auto same = [&] {
    if (!spec || spec->devices.size() != devices.size()) return false;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if (cdi::to_value(spec->devices[i].edits) != cdi::to_value(devices[i].edits)) return false;
    }
    return true;
  };
  if (same()) return success();
  log::info("the CDI file of a prepared claim is made anew", {{"claim", claim_uid}});
  return files_.remove(path);
}

Result<std::vector<driver::PreparedDevice>> ClaimsHandler::prepare(const driver::Claim& claim) {
  const Workshop::Turn turn(workshop_);
  Order order;
  DIBS_TRY(const auto chosen, choose(claim, order));
  load_uvm();
  // Before anything is changed: without the driver's libraries nobody could use it.
  DIBS_TRY(const std::string version, library_->driver_version());
  DIBS_TRY(const auto common, edits_.common(version));
  LedgerClaim made;
  if (!order.parts.empty()) {
    auto prepared = workshop_.prepare(order);
    if (!prepared) {
      // What was in the way may be something that nobody knew of yet.
      if (prepared.error().code() == Code::conflict) stock_is_due_ = true;
      return prepared.error();
    }
    made = std::move(*prepared);
  }
  auto answered = answer(chosen, made, common);
  if (!answered) {
    // Nobody can use what was made, and nobody would unprepare what was never prepared.
    if (!claim.prepared && !order.parts.empty()) {
      if (auto back = workshop_.unprepare(claim.id); !back) {
        log::warn("what was made for a claim cannot be taken back yet",
                  {{"claim", claim.id.uid}, {"error", back.error()}});
      }
    }
    return answered;
  }
  if (claim.prepared) DIBS_CHECK(check_cdi_file(claim.id.uid, *answered));
  return answered;
}

Result<> ClaimsHandler::unprepare(const driver::ClaimName& claim) {
  const Workshop::Turn turn(workshop_);
  DIBS_TRY(const auto freed, workshop_.unprepare(claim));
  bool changed = false;
  for (const auto& device : freed) changed = health_.forget_device(device) || changed;
  if (changed) tell();
  return success();
}

}  // namespace dibs::drivers::nvidia
