#pragma once
// What scheduler and controllers count alike of the ResourceClaims that they make.

#include "base/metrics.h"
#include "json/value.h"

namespace dibs::client {

class ClaimsCreated {
 public:
  explicit ClaimsCreated(metrics::Registry& registry);
  /// `claim`: as it was sent. `made`: the server took it.
  void count(const json::Value& claim, bool made);

 private:
  metrics::CounterFamily total_;  // status, admin_access, owner_api_group, owner_api_kind
};

/// "true" where a request of the claim is for administrators, else "false".
const char* admin_access_of(const json::Value& claim);

}  // namespace dibs::client
