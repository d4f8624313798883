#include "node/plugins/device_health.h"

#include <algorithm>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr auto kDefaultTimeout = std::chrono::seconds(30);
/// As good as for ever, and times do not overflow.
constexpr auto kLongestTimeout = std::chrono::hours(365 * 24);
constexpr std::size_t kMaxMessage = 1024;
constexpr std::size_t kMaxDevices = 16384;

std::string_view name_of(Health health) {
  switch (health) {
    case Health::healthy:
      return "Healthy";
    case Health::unhealthy:
      return "Unhealthy";
    case Health::unknown:
      break;
  }
  return "Unknown";
}

Health health_named(std::string_view name) {
  if (name == "Healthy") return Health::healthy;
  return name == "Unhealthy" ? Health::unhealthy : Health::unknown;
}

/// Between two characters: half of one is no text, and no status could have it.
std::string cut(const std::string& message) {
  if (message.size() <= kMaxMessage) return message;
  std::size_t end = kMaxMessage - 3;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xC0U) == 0x80U) --end;
  return message.substr(0, end) + "...";
}

/// No device has a slash in its name, and the file tells it from its pool by the last one.
bool is_possible(const DeviceName& name) { return name.device.find('/') == std::string::npos; }

/// Whether an id of CDI ends with the device's name, as a word.
bool names(std::string_view id, std::string_view device) {
  if (!id.ends_with(device) || id.size() == device.size()) return id == device;
  const char before = id[id.size() - device.size() - 1];
  return before == '=' || before == '/' || before == '-';
}

/// Kubernetes calls a device by its first id, and drivers put first what all their devices have in
/// common: of one that is ill the id must say which it is.
std::string id_of(const std::string& driver, const PreparedDevice& device, Health health) {
  const auto& ids = device.cdi_ids;
  if (ids.empty()) return cat(driver, "/", device.pool, "/", device.device);
  if (health != Health::unhealthy) return ids.front();
  const auto named = std::find_if(ids.begin(), ids.end(),
                                  [&](const std::string& id) { return names(id, device.device); });
  return named == ids.end() ? ids.front() : *named;
}

}  // namespace

DeviceHealth::DeviceHealth(std::string path, runtime::Files& files, runtime::Clock& clock)
    : path_(std::move(path)), files_(files), clock_(clock) {
  read();
}

bool DeviceHealth::fresh(const Entry& entry) const {
  // The time may be any, where somebody wrote into the file; the timeout is not.
  return clock_.now() - entry.timeout <= entry.updated;
}

std::vector<DeviceName> DeviceHealth::report(const std::string& driver,
                                             const std::vector<HealthReport>& reports) {
  std::vector<DeviceName> changed;
  std::string content;
  {
    const MutexLock lock(mutex_);
    auto& devices = drivers_[driver];
    for (const auto& report : reports) {
      if (!is_possible(report.name)) continue;
      Entry now{report.health, clock_.now(),
                report.timeout > Duration(0) ? std::min<Duration>(report.timeout, kLongestTimeout)
                                             : Duration(kDefaultTimeout),
                cut(report.message)};
      const auto found = devices.find(report.name);
      if (found == devices.end()) {
        if (devices.size() >= kMaxDevices) continue;
        devices[report.name] = std::move(now);
        changed.push_back(report.name);
        continue;
      }
      Entry& entry = found->second;
      if (entry.health != now.health || entry.message != now.message ||
          entry.timeout != now.timeout) {
        changed.push_back(report.name);
      }
      entry = std::move(now);
    }
    if (!changed.empty()) content = text();
  }
  if (!changed.empty()) write(content);
  return changed;
}

std::map<std::string, std::vector<DeviceName>> DeviceHealth::expire() {
  std::map<std::string, std::vector<DeviceName>> gone;
  std::string content;
  {
    const MutexLock lock(mutex_);
    for (auto& [driver, devices] : drivers_) {
      for (auto entry = devices.begin(); entry != devices.end();) {
        if (fresh(entry->second)) {
          ++entry;
          continue;
        }
        gone[driver].push_back(entry->first);
        entry = devices.erase(entry);
      }
    }
    if (!gone.empty()) content = text();
  }
  if (!gone.empty()) write(content);
  return gone;
}

std::vector<DeviceName> DeviceHealth::forget(const std::string& driver) {
  std::vector<DeviceName> gone;
  std::string content;
  {
    const MutexLock lock(mutex_);
    const auto found = drivers_.find(driver);
    if (found == drivers_.end()) return gone;
    for (const auto& [name, entry] : found->second) gone.push_back(name);
    drivers_.erase(found);
    if (!gone.empty()) content = text();
  }
  if (!gone.empty()) write(content);
  return gone;
}

bool DeviceHealth::empty() const {
  const MutexLock lock(mutex_);
  return std::all_of(drivers_.begin(), drivers_.end(),
                     [](const auto& driver) { return driver.second.empty(); });
}

DeviceHealth::Known DeviceHealth::of(const std::string& driver, const DeviceName& name) const {
  const MutexLock lock(mutex_);
  const auto devices = drivers_.find(driver);
  if (devices == drivers_.end()) return {};
  const auto entry = devices->second.find(name);
  if (entry == devices->second.end() || !fresh(entry->second)) return {};
  return {entry->second.health, entry->second.message};
}

Value DeviceHealth::describe(const ClaimInfo& claim, const ContainerUse& use, bool messages) const {
  struct Row {
    std::string id;
    Known known;
  };
  const auto bad = [](Health health) {
    return health == Health::unhealthy ? 2 : health == Health::unknown ? 1 : 0;
  };
  std::vector<Row> rows;
  for (const auto& [driver, state] : claim.drivers) {
    for (const auto& device : state.devices) {
      if (!selects(use, device)) continue;
      Known known = of(driver, {device.pool, device.device});
      const std::string id = id_of(driver, device, known.health);
      const auto same =
          std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.id == id; });
      if (same == rows.end()) {
        rows.push_back({id, std::move(known)});
      } else if (bad(known.health) > bad(same->known.health)) {
        same->known = std::move(known);
      }
    }
  }
  Value out;
  for (const auto& row : rows) {
    Value resource = Value::object({{"resourceID", row.id}, {"health", name_of(row.known.health)}});
    if (messages && !row.known.message.empty()) resource.set("message", row.known.message);
    out.push(resource);
  }
  return out;
}

void DeviceHealth::read() {
  const auto content = files_.read(path_);
  if (!content) return;
  const auto parsed = json::parse(*content);
  if (!parsed) {
    log::warn("the file of device health is ignored", {{"path", path_}, {"error", parsed.error()}});
    return;
  }
  const MutexLock lock(mutex_);
  for (const auto& [driver, value] : parsed->members()) {
    auto& devices = drivers_[std::string(driver)];
    for (const auto& [key, device] : value["Devices"].members()) {
      Entry entry;
      entry.health = health_named(device["Health"].as_string());
      if (const auto time = parse_rfc3339(device["LastUpdated"].as_string())) {
        entry.updated = *time;
      }
      entry.timeout = std::clamp(Duration(device["HealthCheckTimeout"].as_int()), Duration(0),
                                 Duration(kLongestTimeout));
      entry.message = cut(device["Message"].str());
      DeviceName name{device["PoolName"].str(), device["DeviceName"].str()};
      if (is_possible(name)) devices[std::move(name)] = std::move(entry);
    }
  }
}

std::string DeviceHealth::text() const {
  Value out = Value::object();
  for (const auto& [driver, devices] : drivers_) {
    Value list = Value::object();
    for (const auto& [name, entry] : devices) {
      list.set(cat(name.pool, "/", name.device),
               Value::object({{"PoolName", name.pool},
                              {"DeviceName", name.device},
                              {"Health", name_of(entry.health)},
                              {"LastUpdated", format_rfc3339_micro(entry.updated)},
                              {"HealthCheckTimeout", entry.timeout.count()},
                              {"Message", entry.message}}));
    }
    out.set(driver, Value::object({{"Devices", list}}));
  }
  return json::write(out, true);
}

void DeviceHealth::write(const std::string& content) {
  const MutexLock lock(write_mutex_);
  if (auto written = files_.write(path_, content); !written) {
    log::warn("device health is not kept", {{"path", path_}, {"error", written.error()}});
  }
}

}  // namespace dibs::node
