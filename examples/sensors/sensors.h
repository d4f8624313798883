#pragma once
// A driver whose devices come, go and fall ill: every file in a folder is a sensor, and what it
// holds is how it is.
//
//     echo healthy > sensors/door             a sensor named "door"
//     echo unhealthy: no answer > sensors/door
//     rm sensors/door
//
// An unhealthy sensor gets a taint, and pods that have it show it in their status. A container that
// gets one finds the file at /sensors/NAME and its unit in the environment. A claim may ask for
// one:
//     config: [{opaque: {driver: sensors.example.com, parameters: {unit: fahrenheit}}}]
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "base/mutex.h"
#include "driver/driver.h"
#include "driver/plugin.h"

namespace sensors {

namespace driver = dibs::driver;
using dibs::Error;
using dibs::Result;

inline constexpr const char* kName = "sensors.example.com";

struct Settings {
  std::string folder = "/var/lib/sensors";
  std::string effect = "NoSchedule";  // of the taint of an unhealthy one
  dibs::Duration look_every = std::chrono::seconds(1);
};

/// What is wrong with each sensor; "" when nothing is.
using State = std::map<std::string, std::string>;

/// Errors: the folder cannot be read.
Result<State> read_folder(const std::string& folder);

class Sensors : public driver::Driver {
 public:
  Sensors(std::string node, Settings settings)
      : node_(std::move(node)), settings_(std::move(settings)) {}

  void started(driver::Plugin& plugin) override;
  void stopping() override;

  Result<std::vector<driver::Pool>> devices() override;
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override;
  Result<> unprepare(const driver::ClaimName& claim) override;

  bool reports_health() const override { return true; }
  std::vector<driver::DeviceHealth> health() override;

 private:
  void watch(driver::Plugin& plugin);

  const std::string node_;
  const Settings settings_;
  std::thread watcher_;
  dibs::Mutex mutex_;
  dibs::CondVar ends_;
  bool ending_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace sensors
