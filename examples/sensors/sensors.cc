#include "sensors.h"

#include <algorithm>
#include <fstream>

#include "base/log.h"

namespace sensors {
namespace {

namespace fs = std::filesystem;

/// Of the names of devices; other files are none.
bool is_name(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), allowed);
}

/// "healthy" and an empty file are well; "unhealthy: WHY", or anything else, is not.
std::string trouble_in(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  if (line.empty() || line == "healthy") return "";
  const std::string before = "unhealthy: ";
  return line.starts_with(before) ? line.substr(before.size()) : line;
}

/// The unit that the claim asks for. A word that nobody knows is an error: the pod would run with
/// something else than it wanted.
Result<std::string> unit_of(const std::vector<driver::Config>& configs,
                            const std::string& request) {
  const auto* config = driver::config_for(configs, request);
  if (config == nullptr) return "celsius";
  for (const auto& [name, value] : config->parameters.members()) {
    if (name != "unit") return Error::invalid("unknown parameter: " + std::string(name));
  }
  const auto unit = std::string(config->parameters["unit"].as_string());
  if (unit == "celsius" || unit == "fahrenheit") return unit;
  return Error::invalid("parameter unit: must be celsius or fahrenheit");
}

}  // namespace

Result<State> read_folder(const std::string& folder) {
  State state;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    if (entry.is_regular_file(failed) && is_name(name)) state[name] = trouble_in(entry.path());
  }
  if (failed) return Error::unavailable(folder + ": " + failed.message());
  return state;
}

void Sensors::started(driver::Plugin& plugin) {
  watcher_ = std::thread([this, &plugin] { watch(plugin); });
}

void Sensors::stopping() {
  {
    const dibs::MutexLock lock(mutex_);
    ending_ = true;
  }
  ends_.notify_all();
  watcher_.join();
}

void Sensors::watch(driver::Plugin& plugin) {
  auto last = read_folder(settings_.folder);
  dibs::MutexLock lock(mutex_);
  while (!ends_.wait_for(lock, settings_.look_every,
                         [this]() DIBS_REQUIRES(mutex_) { return ending_; })) {
    auto now = read_folder(settings_.folder);
    if (!now || (last && *now == *last)) continue;
    last = std::move(now);
    if (auto published = plugin.publish(); !published) {
      dibs::log::warn("cannot publish the sensors", {{"error", published.error()}});
    }
    plugin.health_changed();
  }
}

Result<std::vector<driver::Pool>> Sensors::devices() {
  auto state = read_folder(settings_.folder);
  // What was published before stays until the folder can be read again.
  if (!state) return state.error();
  std::vector<driver::Device> devices;
  for (const auto& [name, trouble] : *state) {
    driver::Device device(name);
    device.attribute("kind", "thermometer");
    if (!trouble.empty()) device.taint("sensors.example.com/unhealthy", settings_.effect);
    devices.push_back(std::move(device));
  }
  return std::vector<driver::Pool>{driver::make_pool(node_, std::move(devices))};
}

std::vector<driver::DeviceHealth> Sensors::health() {
  std::vector<driver::DeviceHealth> out;
  const auto state = read_folder(settings_.folder);
  if (!state) return out;
  for (const auto& [name, trouble] : *state) {
    const auto health = trouble.empty() ? driver::Health::healthy : driver::Health::unhealthy;
    out.push_back({node_, name, health, trouble});
  }
  return out;
}

Result<std::vector<driver::PreparedDevice>> Sensors::prepare(const driver::Claim& claim) {
  const auto configs = driver::configs_of(claim, kName);
  if (!configs) return configs.error();
  std::vector<driver::PreparedDevice> out;
  for (const auto& device : claim.devices) {
    auto unit = unit_of(*configs, device.request);
    if (!unit) return unit.error();
    const fs::path file = fs::absolute(fs::path(settings_.folder) / device.device);
    // It may have gone after it was allocated, but a pod that has it already is answered as before.
    if (!is_name(device.device) || (!claim.prepared && !fs::exists(file))) {
      return Error::not_found("sensor " + device.device + " is gone");
    }
    auto edits = driver::env_edits({"SENSOR=" + device.device, "SENSOR_UNIT=" + *unit});
    edits.mounts.push_back({file, "/sensors/" + device.device, {"ro", "bind"}});
    out.push_back(driver::prepared(device, std::move(edits)));
  }
  return out;
}

Result<> Sensors::unprepare(const driver::ClaimName&) { return dibs::success(); }

}  // namespace sensors
