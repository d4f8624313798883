#include "node/plugins/health_monitor.h"

#include <map>
#include <mutex>

#include "base/log.h"
#include "client/gate.h"
#include "client/serial.h"
#include "proto/dra_health.pb.h"

namespace dibs::node {
namespace {

constexpr auto kRetry = std::chrono::seconds(5);
constexpr auto kExpire = std::chrono::seconds(5);

std::vector<HealthReport> decode(const dra_health::NodeWatchResourcesResponse& response) {
  std::vector<HealthReport> out;
  for (const auto& device : response.devices()) {
    HealthReport report;
    report.name = {device.device().pool_name(), device.device().device_name()};
    switch (device.health()) {
      case dra_health::HEALTHY:
        report.health = Health::healthy;
        break;
      case dra_health::UNHEALTHY:
        report.health = Health::unhealthy;
        break;
      default:
        break;
    }
    // More than a year is as good as for ever, and does not overflow.
    constexpr std::int64_t kYear = 365 * 24 * 3600;
    report.timeout =
        std::chrono::seconds(std::min<std::int64_t>(device.health_check_timeout_seconds(), kYear));
    report.message = device.message();
    out.push_back(std::move(report));
  }
  return out;
}

}  // namespace

struct HealthMonitor::State : std::enable_shared_from_this<State> {
  struct Watch {
    std::shared_ptr<DraPlugin> plugin;
    std::unique_ptr<rpc::Stream> stream;
    std::uint64_t attempt = 0;
    bool given_up = false;
  };

  State(runtime::Runtime& r, DeviceHealth& h, Changed c)
      : runtime(r),
        health(h),
        changed(std::move(c)),
        serial(std::make_shared<client::Serial>(r.executor)) {}

  /// Runs in order with everything else here, unless it has ended.
  void post(std::function<void(State&)> task) {
    serial->post([self = shared_from_this(), task = std::move(task)] {
      const client::GateEntry entry(self->gate);
      if (entry) task(*self);
    });
  }

  void open(DraPlugin* key) {
    const auto found = watches.find(key);
    if (found == watches.end() || found->second.stream || found->second.given_up) return;
    Watch& watch = found->second;
    const std::uint64_t attempt = ++watch.attempt;
    const std::weak_ptr<State> weak = weak_from_this();
    rpc::StreamHandlers handlers;
    handlers.message = [weak, key, attempt](std::string_view message) {
      if (const auto self = weak.lock()) {
        self->post([key, attempt, bytes = std::string(message)](State& state) {
          state.received(key, attempt, bytes);
        });
      }
    };
    handlers.ended = [weak, key, attempt](const rpc::Status& status) {
      if (const auto self = weak.lock()) {
        self->post([key, attempt, status](State& state) { state.ended(key, attempt, status); });
      }
    };
    const char* method = watch.plugin->spoken().health == HealthApi::v1
                             ? "/v1.DRAResourceHealth/NodeWatchResources"
                             : "/v1alpha1.DRAResourceHealth/NodeWatchResources";
    watch.stream = watch.plugin->channel().open_stream(method, "", std::move(handlers));
  }

  Watch* current(DraPlugin* key, std::uint64_t attempt) {
    const auto found = watches.find(key);
    return found != watches.end() && found->second.attempt == attempt ? &found->second : nullptr;
  }

  void received(DraPlugin* key, std::uint64_t attempt, const std::string& bytes) {
    Watch* watch = current(key, attempt);
    if (!watch) return;
    const std::string driver = watch->plugin->info().name;
    dra_health::NodeWatchResourcesResponse response;
    if (!response.ParseFromString(bytes)) {
      log::warn("a driver's health report cannot be decoded", {{"driver", driver}});
      return;
    }
    tell(driver, health.report(driver, decode(response)));
    if (expiring) return;
    expiring = true;
    later(kExpire, [](State& state) { state.expire(); });
  }

  void ended(DraPlugin* key, std::uint64_t attempt, const rpc::Status& status) {
    Watch* watch = current(key, attempt);
    if (!watch) return;
    watch->stream.reset();
    const std::string driver = watch->plugin->info().name;
    tell(driver, health.forget(driver));
    if (status.code == rpc::Code::unimplemented && watch->plugin->spoken().health_advertised) {
      watch->given_up = true;
      return;
    }
    log::debug("a driver's health stream ended", {{"driver", driver}, {"status", status.text()}});
    later(kRetry, [key](State& state) { state.open(key); });
  }

  void later(Duration delay, std::function<void(State&)> task) {
    const std::weak_ptr<State> weak = weak_from_this();
    runtime.timers.after(delay, [weak, task = std::move(task)] {
      if (const auto self = weak.lock()) self->post(task);
    });
  }

  void expire() {
    for (const auto& [driver, devices] : health.expire()) tell(driver, devices);
    if (health.empty()) {
      expiring = false;
      return;
    }
    later(kExpire, [](State& state) { state.expire(); });
  }

  void tell(const std::string& driver, const std::vector<DeviceName>& devices) {
    if (!devices.empty()) changed(driver, devices);
  }

  runtime::Runtime& runtime;
  DeviceHealth& health;
  const Changed changed;
  const std::shared_ptr<client::Serial> serial;
  client::Gate gate;
  std::map<DraPlugin*, Watch> watches;  // only tasks of `serial` use these two
  bool expiring = false;
};

HealthMonitor::HealthMonitor(runtime::Runtime& runtime, DeviceHealth& health, Changed changed)
    : state_(std::make_shared<State>(runtime, health, std::move(changed))) {}

HealthMonitor::~HealthMonitor() { stop(); }

void HealthMonitor::add(const std::shared_ptr<DraPlugin>& plugin) {
  if (plugin->spoken().health == HealthApi::none) return;
  state_->post([plugin](State& state) {
    state.watches[plugin.get()].plugin = plugin;
    state.open(plugin.get());
  });
}

void HealthMonitor::remove(const std::shared_ptr<DraPlugin>& plugin) {
  state_->post([plugin](State& state) {
    if (state.watches.erase(plugin.get()) == 0) return;
    const std::string driver = plugin->info().name;
    // Another instance of the driver keeps its word.
    for (const auto& [key, watch] : state.watches) {
      if (watch.plugin->info().name == driver) return;
    }
    state.tell(driver, state.health.forget(driver));
  });
}

void HealthMonitor::retry(const std::string& driver) {
  state_->post([driver](State& state) {
    for (auto& [key, watch] : state.watches) {
      if (watch.plugin->info().name == driver && watch.plugin->connected()) state.open(key);
    }
  });
}

void HealthMonitor::stop() {
  state_->gate.close();
  state_->watches.clear();
}

}  // namespace dibs::node
