#pragma once
// A driver, as its author writes it.
//
// It says which devices there are and makes them ready for a claim. Everything else is this
// library's: registration with the node's agent (plugin.h), publishing (publisher.h), reading
// claims (claim.h), container edits as CDI files, remembering what is prepared
// (prepared_claims.h).
//
// devices() may be called at any time, from any thread; prepare() and unprepare() one at a time
// unless PluginOptions::serialize is off. All of them may block.
//
// A driver whose devices change keeps the Plugin of started(), and calls its publish() and
// health_changed() until stopping() returns, from a thread of its own.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cdi/spec.h"
#include "driver/claim.h"
#include "driver/pool.h"
#include "json/value.h"

namespace dibs::driver {

/// What a container gets that uses this device of the claim.
struct PreparedDevice {
  std::string request = {};  // as in AllocatedDevice; "gpu/alternative" is answered as "gpu"
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};
  /// Become a CDI device of the claim; none is made when there are no edits.
  cdi::ContainerEdits edits = {};
  /// What the claim's CDI file declares; "": the oldest that has all that is used.
  std::string cdi_version = {};
  /// CDI devices that the driver takes care of itself, before the one of `edits`.
  std::vector<std::string> cdi_ids = {};
  /// {"attributes": …, "networkData": …} for the device's metadata file, where those are on.
  json::Value metadata = {};
};

/// A PreparedDevice for this allocated one.
PreparedDevice prepared(const AllocatedDevice& device, cdi::ContainerEdits edits = {});
/// Edits that only set environment variables, "NAME=value" each.
cdi::ContainerEdits env_edits(std::vector<std::string> env);

enum class Health : std::uint8_t { unknown, healthy, unhealthy };

struct DeviceHealth {
  std::string pool = {};
  std::string device = {};
  Health health = Health::unknown;
  std::string message = {};
  /// When it was found out; not set: now.
  Time updated = {};
  /// After such a time without news the device counts as unknown; 0: the agent's default of 30 s.
  Duration timeout{0};
};

class Plugin;

class Driver {
 public:
  virtual ~Driver() = default;

  /// `plugin` runs: what watches the devices can begin.
  virtual void started([[maybe_unused]] Plugin& plugin) {}
  /// It ends: `plugin` must not be used any more once this returns. Calls of prepare() and
  /// unprepare() may still come.
  virtual void stopping() {}

  /// All there is now. Call Plugin::publish() when it changes. Error unavailable: that is not known
  /// yet, and what was published before stays.
  virtual Result<std::vector<Pool>> devices() = 0;

  /// Makes the claim's devices ready. Must be repeatable: it is called again when an answer got
  /// lost, after a restart too. An error keeps the pod waiting and stands in its events.
  virtual Result<std::vector<PreparedDevice>> prepare(const Claim& claim) = 0;

  /// Undoes it. Must succeed for a claim that is not prepared.
  virtual Result<> unprepare(const ClaimName& claim) = 0;

  /// Whether health() means something: then it is streamed to the node's agent.
  virtual bool reports_health() const { return false; }
  /// All devices. Call Plugin::health_changed() when it changes.
  virtual std::vector<DeviceHealth> health() { return {}; }
};

}  // namespace dibs::driver
