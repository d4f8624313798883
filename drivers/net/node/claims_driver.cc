#include "drivers/net/node/claims_driver.h"

#include "base/strings.h"

namespace dibs::drivers::net {

using driver::PreparedDevice;

ClaimsDriver::ClaimsDriver(client::Client& api, ClaimsDriverOptions options)
    : api_(api), options_(std::move(options)) {}

Result<std::vector<driver::Pool>> ClaimsDriver::devices() { return std::vector<driver::Pool>(); }

Result<std::vector<PreparedDevice>> ClaimsDriver::prepare(const driver::Claim& claim) {
  std::vector<PreparedDevice> out;
  for (const auto& device : claim.devices) out.push_back(driver::prepared(device));
  if (out.empty()) out.emplace_back();
  out.front().edits = driver::env_edits({cat("DRA_CLAIM_UID=", claim.id.uid)});
  out.front().cdi_version = "0.6.0";
  return out;
}

Result<> ClaimsDriver::unprepare(const driver::ClaimName&) { return success(); }

}  // namespace dibs::drivers::net
