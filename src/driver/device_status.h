#pragma once
// What a driver says of an allocated device in status.devices of its claim: conditions, data, the
// pod's interface.

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "client/client.h"
#include "driver/claim.h"
#include "json/value.h"

namespace dibs::driver {

/// The device's entry; made where it is missing.
json::Value& device_status(json::Value& claim, std::string_view driver, std::string_view pool,
                           std::string_view device, std::string_view share_id = {});

struct Condition {
  std::string type = {};
  bool holds = true;
  std::string reason = {};   // CamelCase
  std::string message = {};  // cut at the 32768 bytes that the API takes
};
/// Whether one of that type is there and holds.
bool has_condition(const json::Value& device, std::string_view type);
/// The time is that of the last change of `holds`.
void set_condition(json::Value& device, const Condition& condition, Time now);

/// Changes the status of a claim as it is on the server, and again when somebody else was faster.
/// Success too when the claim is gone, is another one of that name, or `change` changed nothing.
Result<> update_claim_status(client::Client& api, const ClaimName& claim,
                             const std::function<void(json::Value& claim)>& change);

}  // namespace dibs::driver
