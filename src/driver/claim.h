#pragma once
// A ResourceClaim as a driver sees it: which of its devices were allocated, and with what
// configuration.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/value.h"

namespace dibs::driver {

/// All that is known of a claim when it is unprepared: the object may be gone.
struct ClaimName {
  std::string name_space = {};
  std::string name = {};
  std::string uid = {};
};

/// A result of the allocation that belongs to this driver.
struct AllocatedDevice {
  std::string request = {};  // "gpu", or "gpu/alternative"
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};  // "": the device is not shared
  bool admin_access = false;
  /// Amounts taken of a shared device, by capacity name; null when there are none.
  json::Value consumed = {};
};

struct Claim {
  ClaimName id = {};
  json::Value object = {};  // resource.k8s.io/v1
  std::vector<AllocatedDevice> devices = {};
  /// Some device of the claim, of whatever driver, is there for administration only.
  bool admin_access = false;
  /// Prepared earlier: the driver is asked again for what it answered then, and changes nothing.
  bool prepared = false;
};

/// Errors (invalid) in upstream's words: "claim ns/name not allocated".
Result<Claim> read_claim(json::Value object, std::string_view driver);

/// Opaque parameters meant for a driver.
struct Config {
  std::vector<std::string> requests = {};  // empty: all
  json::Value parameters = {};
};

/// The configs of this driver, weakest first: those of the class, then those of the claim.
Result<std::vector<Config>> configs_of(const Claim& claim, std::string_view driver);
/// The one that counts for a request, which must be named as a whole; null when none does.
const Config* config_for(const std::vector<Config>& configs, std::string_view request);

}  // namespace dibs::driver
