#include "node/plugins/driver_plugins.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/semver.h"
#include "base/strings.h"

namespace dibs::node {

DriverPlugins::DriverPlugins(NodeRelease release, Connect connect, runtime::Runtime& runtime,
                             SliceWiper& wiper, PluginMetrics& metrics)
    : release_(release),
      connect_(std::move(connect)),
      runtime_(runtime),
      wiper_(wiper),
      metrics_(metrics),
      serial_(std::make_shared<client::Serial>(runtime.executor)),
      gate_(std::make_shared<client::Gate>()) {}

DriverPlugins::~DriverPlugins() { stop(); }

Result<> DriverPlugins::validate(const PluginInfo& info) {
  if (info.name.empty()) return Error::invalid("DRA driver name is empty");
  auto spoken = negotiate(info.versions, release_);
  if (spoken) return success();
  return spoken.error().within(cat("invalid supported gRPC versions of DRA driver plugin ",
                                   info.name, " at endpoint ", info.endpoint));
}

Result<> DriverPlugins::add(const PluginInfo& info) {
  DIBS_TRY(auto spoken, negotiate(info.versions, release_));
  auto plugin =
      std::make_shared<DraPlugin>(info, spoken, connect_(info.endpoint), runtime_.clock, metrics_);
  {
    const MutexLock lock(mutex_);
    auto& instances = drivers_[info.name];
    if (release_.exact && release_.minor <= 32 && !instances.empty()) {
      // One plugin a driver: a newer version takes over.
      const auto before = SemanticVersion::parse(instances.back()->spoken().semver);
      const auto now = SemanticVersion::parse(spoken.semver);
      if (release_.minor <= 31 && before && now && *now <= *before) {
        return Error::already_exists(
            cat("Another plugin with the same name is already registered with a higher supported "
                "version: ",
                instances.back()->spoken().semver));
      }
      instances.clear();
    }
    for (const auto& instance : instances) {
      if (instance->info().endpoint == info.endpoint) {
        return Error::already_exists(cat("endpoint ", info.endpoint,
                                         " already registered for DRA driver plugin ", info.name));
      }
    }
    instances.push_back(plugin);
  }
  plugin->watch([serial = serial_, gate = gate_, this, driver = info.name] {
    serial->post([gate, this, driver] {
      const client::GateEntry entry(*gate);
      if (entry) changed(driver);
    });
  });
  if (on_added) on_added(plugin);
  changed(info.name);
  return success();
}

void DriverPlugins::remove(const PluginInfo& info) {
  std::shared_ptr<DraPlugin> removed;
  {
    const MutexLock lock(mutex_);
    const auto found = drivers_.find(info.name);
    if (found == drivers_.end()) return;
    auto& instances = found->second;
    const auto instance = std::find_if(instances.begin(), instances.end(), [&](const auto& plugin) {
      return plugin->info().endpoint == info.endpoint;
    });
    if (instance == instances.end()) return;
    removed = *instance;
    instances.erase(instance);
    if (instances.empty()) drivers_.erase(found);
  }
  if (on_removed) on_removed(removed);
  changed(info.name);
}

Result<std::shared_ptr<DraPlugin>> DriverPlugins::pick(const std::string& driver) const {
  if (driver.empty()) return Error::invalid("DRA driver name is empty");
  const MutexLock lock(mutex_);
  const auto found = drivers_.find(driver);
  if (found == drivers_.end() || found->second.empty()) {
    if (release_.classic()) {
      return Error::not_found(cat("failed to get DRA Plugin client for plugin name ", driver,
                                  release_.minor <= 27 ? ", err=" : ": ", "plugin name ", driver,
                                  " not found in the list of registered DRA plugins"));
    }
    return Error::not_found(cat("DRA driver ", driver, " is not registered"));
  }
  const auto& instances = found->second;
  for (auto instance = instances.rbegin(); instance != instances.rend(); ++instance) {
    if ((*instance)->connected()) return *instance;
  }
  return instances.back();
}

bool DriverPlugins::usable(const std::string& driver) const {
  const MutexLock lock(mutex_);
  const auto found = drivers_.find(driver);
  if (found == drivers_.end()) return false;
  // Up to 1.33 only registration counted.
  if (release_.minor <= 33) return true;
  return std::any_of(found->second.begin(), found->second.end(),
                     [](const auto& plugin) { return plugin->connected(); });
}

std::vector<std::string> DriverPlugins::drivers() const {
  const MutexLock lock(mutex_);
  std::vector<std::string> out;
  for (const auto& [driver, instances] : drivers_) out.push_back(driver);
  return out;
}

void DriverPlugins::changed(const std::string& driver) {
  if (usable(driver)) {
    wiper_.cancel(driver);
  } else {
    wiper_.schedule(driver);
  }
  if (on_change) on_change(driver);
}

void DriverPlugins::cancel_calls() {
  const MutexLock lock(mutex_);
  for (const auto& [driver, instances] : drivers_) {
    for (const auto& plugin : instances) plugin->channel().cancel_calls();
  }
}

void DriverPlugins::stop() {
  gate_->close();
  std::map<std::string, std::vector<std::shared_ptr<DraPlugin>>> dropped;
  {
    const MutexLock lock(mutex_);
    dropped.swap(drivers_);
  }
}

}  // namespace dibs::node
