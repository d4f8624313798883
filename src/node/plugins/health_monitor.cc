#include "node/plugins/health_monitor.h"

#include <algorithm>

#include "base/log.h"
#include "proto/dra_health.pb.h"

namespace dibs::node {
namespace {

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
    // More than a year is as good as for ever, and does not overflow; nor may what is negative.
    constexpr std::int64_t kYear = 365 * 24 * 3600;
    report.timeout = std::chrono::seconds(
        std::clamp<std::int64_t>(device.health_check_timeout_seconds(), 0, kYear));
    report.message = device.message();
    out.push_back(std::move(report));
  }
  return out;
}

}  // namespace

HealthMonitor::HealthMonitor(runtime::Runtime& runtime, DeviceHealth& health, Changed changed)
    : health_(health), changed_(std::move(changed)), streams_(runtime, handlers()) {}

PluginStreams::Handlers HealthMonitor::handlers() {
  PluginStreams::Handlers out;
  out.method = [](const DraPlugin& plugin) {
    return plugin.spoken().health == HealthApi::v1
               ? "/v1.DRAResourceHealth/NodeWatchResources"
               : "/v1alpha1.DRAResourceHealth/NodeWatchResources";
  };
  out.message = [this](const DraPlugin& plugin, const std::string& bytes) {
    received(plugin.info().name, bytes);
  };
  out.ended = [this](const DraPlugin& plugin, const rpc::Status& status) {
    const std::string& driver = plugin.info().name;
    tell(driver, health_.forget(driver));
    if (status.code == rpc::Code::unimplemented && plugin.spoken().health_advertised) return false;
    log::debug("a driver's health stream ended", {{"driver", driver}, {"status", status.text()}});
    return true;
  };
  // Another instance of the driver keeps its word.
  out.removed = [this](const DraPlugin& plugin, bool last) {
    if (last) tell(plugin.info().name, health_.forget(plugin.info().name));
  };
  return out;
}

void HealthMonitor::add(const std::shared_ptr<DraPlugin>& plugin) {
  if (plugin->spoken().health != HealthApi::none) streams_.add(plugin);
}

void HealthMonitor::received(const std::string& driver, const std::string& bytes) {
  dra_health::NodeWatchResourcesResponse response;
  if (!response.ParseFromString(bytes)) {
    log::warn("a driver's health report cannot be decoded", {{"driver", driver}});
    return;
  }
  tell(driver, health_.report(driver, decode(response)));
  if (!std::exchange(expiring_, true)) expire_later();
}

void HealthMonitor::expire_later() {
  streams_.later(kExpire, [this] {
    for (const auto& [driver, devices] : health_.expire()) tell(driver, devices);
    expiring_ = !health_.empty();
    if (expiring_) expire_later();
  });
}

void HealthMonitor::tell(const std::string& driver, const std::vector<DeviceName>& devices) {
  if (!devices.empty()) changed_(driver, devices);
}

}  // namespace dibs::node
