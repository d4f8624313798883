#pragma once
// How the devices of a node are, as their drivers last said.
//
// A report counts until its timeout (30 s unless the driver says otherwise); after that the device
// is Unknown and forgotten. When a driver's stream ends nothing of it is known any more. Kept in
// <root>/dra_health_state, so that a restart of the agent does not blink; a broken file is ignored.
//
// Thread-safe.

#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "json/value.h"
#include "node/plugins/claim_cache.h"
#include "node/plugins/claim_rules.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct DeviceName {
  std::string pool = {};
  std::string device = {};
  friend auto operator<=>(const DeviceName&, const DeviceName&) = default;
};

enum class Health : std::uint8_t { unknown, healthy, unhealthy };

struct HealthReport {
  DeviceName name = {};
  Health health = Health::unknown;
  Duration timeout{0};  // not positive: the default
  std::string message = {};
};

class DeviceHealth {
 public:
  /// Reads the file. All must outlive it.
  DeviceHealth(std::string path, runtime::Files& files, runtime::Clock& clock);

  /// Devices whose health, message or timeout is now another.
  std::vector<DeviceName> report(const std::string& driver,
                                 const std::vector<HealthReport>& reports);
  /// Devices that timed out, by driver.
  std::map<std::string, std::vector<DeviceName>> expire();
  /// Of a driver whose stream ended: what was known.
  std::vector<DeviceName> forget(const std::string& driver);

  bool empty() const;

  struct Known {
    Health health = Health::unknown;
    std::string message = {};
  };
  Known of(const std::string& driver, const DeviceName& name) const;

  /// status.containerStatuses[].allocatedResourcesStatus[].resources of what a container uses.
  json::Value describe(const ClaimInfo& claim, const ContainerUse& use, bool messages) const;

 private:
  struct Entry {
    Health health = Health::unknown;
    Time updated = {};
    Duration timeout{0};
    std::string message = {};
  };
  bool fresh(const Entry& entry) const;
  void read();
  /// The file's new content.
  std::string text() const DIBS_REQUIRES(mutex_);
  void write(const std::string& text);

  const std::string path_;
  runtime::Files& files_;
  runtime::Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::string, std::map<DeviceName, Entry>> drivers_ DIBS_GUARDED_BY(mutex_);
  Mutex write_mutex_;  // one write of the file at a time
};

}  // namespace dibs::node
