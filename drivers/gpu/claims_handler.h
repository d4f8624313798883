#pragma once
// Prepares claims as a profile says, and writes what it knows of a device into the claim's status.

#include <map>
#include <memory>
#include <string>

#include "client/client.h"
#include "driver/driver.h"
#include "drivers/gpu/profile.h"

namespace dibs::drivers {

class ClaimsHandler : public driver::Driver {
 public:
  /// `api` finds resource.k8s.io/v1 (client::ResourceClient); it must outlive the handler.
  ClaimsHandler(std::unique_ptr<Profile> profile, std::string profile_name, std::string driver_name,
                client::Client& api);

  Result<std::vector<driver::Pool>> devices() override;
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override;
  Result<> unprepare(const driver::ClaimName& claim) override;

 private:
  void write_status(const driver::Claim& claim);
  Result<> try_write_status(const driver::Claim& claim, const json::Value& devices);

  std::unique_ptr<Profile> profile_;
  std::string class_;  // "GPU"
  std::string driver_name_;
  client::Client& api_;
  driver::Pool pool_;
  std::map<std::string, json::Value> devices_;  // by name
};

}  // namespace dibs::drivers
