#include "driver/fault_injection.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "runtime/blocking.h"

namespace dibs::driver {
namespace {

using client::WorkOutcome;
using json::Value;

const client::Gvr kNodes = {"", "v1", "nodes"};
const client::Gvr kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

/// How long devices wait for their node to be read.
constexpr Duration kPatience = std::chrono::seconds(5);

// What the queue works on.
constexpr const char* kTell = "tell";
constexpr const char* kGiveUp = "give up";

}  // namespace

FaultInjection::FaultInjection(Driver& inner, client::Client& api, runtime::Runtime& runtime,
                               std::string driver_name, std::string node_name)
    : inner_(inner),
      api_(api),
      runtime_(runtime),
      driver_name_(std::move(driver_name)),
      annotation_(faults_annotation(driver_name_)),
      node_name_(std::move(node_name)),
      queue_(runtime, {}, [this](const std::string& what) { return work(what); }) {}

FaultInjection::~FaultInjection() { stop(); }

void FaultInjection::begin(std::function<void()> changed) {
  tell_ = std::move(changed);
  client::InformerOptions watch;
  watch.gvr = kNodes;
  watch.field_selector = cat("metadata.name=", node_name_);
  informer_ = std::make_unique<client::Informer>(api_, runtime_, std::move(watch));
  client::InformerHandlers handlers;
  handlers.added = [this](const Value& node, bool) { see(node); };
  handlers.updated = [this](const Value&, const Value& node) { see(node); };
  handlers.removed = [this](const Value&) { see(Value()); };
  informer_->add_handler(std::move(handlers));
  informer_->start();
  queue_.add_after(kGiveUp, kPatience);
}

void FaultInjection::end_waiting() {
  const MutexLock lock(mutex_);
  hurries_ = true;
  changed_.notify_all();
}

void FaultInjection::stop() {
  end_waiting();
  queue_.stop();
  if (informer_) informer_->stop();
}

WorkOutcome FaultInjection::work(const std::string& what) {
  if (what == kGiveUp) {
    const MutexLock lock(mutex_);
    if (known_) return WorkOutcome::done();
    known_ = true;
    log::warn("devices are published without faults: the node cannot be watched",
              {{"driver", driver_name_}, {"node", node_name_}});
  }
  tell_();
  return WorkOutcome::done();
}

void FaultInjection::see(const Value& node) {
  std::string text = node["metadata"]["annotations"][annotation_].str();
  {
    const MutexLock lock(mutex_);
    if (watches_ && text == text_) return;
    auto parsed = parse_faults(text);
    if (!parsed) {
      // Whoever wrote it sees that it is not taken.
      log::warn("faults of devices cannot be read",
                {{"node", node_name_}, {"annotation", annotation_}, {"error", parsed.error()}});
      if (watches_) return;
      text.clear();
    }
    const bool any = parsed && !parsed->empty();
    if (any || !faults_.empty()) {
      log::info("faults of devices taken", {{"driver", driver_name_}, {"faults", text}});
    }
    known_ = true;
    watches_ = true;
    text_ = std::move(text);
    faults_ = parsed ? std::move(parsed).value() : Faults();
    changed_.notify_all();
  }
  queue_.add(kTell);
}

Faults FaultInjection::faults() const {
  const MutexLock lock(mutex_);
  return faults_;
}

Result<std::vector<Pool>> FaultInjection::devices() {
  Faults faults;
  std::optional<std::string> taken;
  {
    const MutexLock lock(mutex_);
    if (!known_) return Error::unavailable(cat("node ", node_name_, " is not read yet"));
    faults = faults_;
    if (watches_) taken = text_;
  }
  DIBS_TRY(auto pools, inner_.devices());
  for (auto& pool : pools) {
    pool = with_faults(pool, faults, driver_name_);
    if (!taken) continue;
    if (!pool.annotations.is_object()) pool.annotations = Value::object();
    pool.annotations.set(kFaultsTaken, *taken);
  }
  return pools;
}

Duration FaultInjection::slowest(const std::vector<AllocatedDevice>& devices,
                                 Duration SlowFault::*which) const {
  Duration longest(0);
  for (const auto& device : devices) {
    const auto found = faults_.find(fault_key(device.pool, device.device));
    if (found == faults_.end() || !found->second.slow) continue;
    longest = std::max(longest, (*found->second.slow).*which);
  }
  return longest;
}

/// As long as the slowest device takes, which may change meanwhile.
Result<> FaultInjection::linger(const std::vector<AllocatedDevice>& devices,
                                Duration SlowFault::*which) {
  const Duration begin = runtime_.clock.steady();
  MutexLock lock(mutex_);
  for (;;) {
    const Duration left = slowest(devices, which) - (runtime_.clock.steady() - begin);
    if (left <= Duration(0)) return success();
    if (hurries_) return Error::unavailable("a device is slow, and the driver ends");
    const runtime::Blocking blocking;
    if (!changed_.wait_for(lock, left)) return success();
  }
}

Result<std::vector<PreparedDevice>> FaultInjection::prepare(const Claim& claim) {
  if (!claim.prepared) DIBS_CHECK(linger(claim.devices, &SlowFault::prepare));
  const Faults set = faults();
  for (const auto& device : claim.devices) {
    const auto found = set.find(fault_key(device.pool, device.device));
    if (found == set.end() || !found->second.vanish) continue;
    return Error::unavailable(cat("device ", device.device, " of pool ", device.pool, " is gone"));
  }
  return inner_.prepare(claim);
}

Result<> FaultInjection::unprepare(const ClaimName& claim) {
  const Faults set = faults();
  const bool any = std::any_of(set.begin(), set.end(), [](const auto& device) {
    return device.second.slow && device.second.slow->unprepare > Duration(0);
  });
  if (any) {
    // A claim that is gone has no devices that could be slow.
    auto object = api_.get(kClaims, claim.name_space, claim.name);
    auto read = object ? read_claim(std::move(object).value(), driver_name_) : object.error();
    if (read && read->id.uid == claim.uid) {
      DIBS_CHECK(linger(read->devices, &SlowFault::unprepare));
    }
  }
  return inner_.unprepare(claim);
}

std::vector<DeviceHealth> FaultInjection::health() {
  const Faults set = faults();
  std::vector<DeviceHealth> out = inner_.health();
  if (const auto pools = inner_.devices(); pools && !inner_.reports_health()) {
    // What nobody watches is unknown, and known to be well only where a fault of it has ended.
    const MutexLock lock(mutex_);
    for (const auto& pool : *pools) {
      for (const auto& slice : pool.slices) {
        for (const auto& device : slice.devices) {
          DeviceHealth health;
          health.pool = pool.name;
          health.device = device.object()["name"].str();
          const std::string key = fault_key(health.pool, health.device);
          const auto found = set.find(key);
          if (found != set.end() && (found->second.fail || found->second.vanish)) {
            failed_.insert(key);
          }
          if (failed_.contains(key)) health.health = Health::healthy;
          out.push_back(std::move(health));
        }
      }
    }
  }
  for (auto& health : out) {
    const auto found = set.find(fault_key(health.pool, health.device));
    if (found == set.end()) continue;
    const DeviceFaults& device = found->second;
    if (!device.fail && !device.vanish) continue;
    health.health = Health::unhealthy;
    health.updated = {};
    health.message = device.fail ? device.fail->reason : "the device is gone";
  }
  return out;
}

}  // namespace dibs::driver
