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

ClaimName claim_name(const json::Value& claim);

/// An error (invalid) where a part is none that an API server gives: files are named after them.
Result<> check_name(const ClaimName& claim);

/// A result of the allocation that belongs to this driver.
struct AllocatedDevice {
  std::string request = {};  // "gpu", or "gpu/alternative"; of a classic claim: as `device`
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};  // "": the device is not shared
  bool admin_access = false;
  /// Amounts taken of a shared device, by capacity name; null when there are none.
  json::Value consumed = {};
};

/// What the allocation of a classic claim (resource.k8s.io/v1alpha2) tells this driver: its own
/// words, or those of the scheduler, who named instances.
struct Handle {
  std::string data = {};
  json::Value structured = {};  // a StructuredResourceHandle; null: `data` counts
};

struct Claim {
  ClaimName id = {};
  json::Value object = {};  // resource.k8s.io/v1, or v1alpha2 of a classic claim
  /// Of a classic claim: the instances that the scheduler chose, each in a pool named as the node.
  std::vector<AllocatedDevice> devices = {};
  /// Of a classic claim only, and at least one then.
  std::vector<Handle> handles = {};
  /// Some device of the claim, of whatever driver, is there for administration only.
  bool admin_access = false;
  /// Prepared earlier: the driver is asked again for what it answered then, and changes nothing.
  bool prepared = false;
};

/// Errors (invalid) in upstream's words: "claim ns/name not allocated"; and as check_name()'s, also
/// for the names of requests.
Result<Claim> read_claim(json::Value object, std::string_view driver);

/// Whether a claim is of the classic model: it names a ResourceClass.
bool is_classic(const json::Value& claim);
/// The handles of an allocated classic claim that are this driver's. An allocation without any is
/// one empty handle for the driver that made it.
std::vector<Handle> handles_of(const json::Value& claim, std::string_view driver);

/// Opaque parameters meant for a driver.
struct Config {
  std::vector<std::string> requests = {};  // empty: all
  json::Value parameters = {};
};

/// The configs of this driver, weakest first: those of the class, then those of the claim. Of a
/// classic claim: what its parameters had for the vendor.
Result<std::vector<Config>> configs_of(const Claim& claim, std::string_view driver);
/// The one that counts for a request, which must be named as a whole; null when none does.
const Config* config_for(const std::vector<Config>& configs, std::string_view request);

}  // namespace dibs::driver
