#pragma once
// Claims on a node, of either model: what their containers get to see.
//
// Every container of a claim has its uid in DRA_CLAIM_UID. What else there is depends on the
// claim's parameters, and on what was allocated: the library that accelerates RDMA, the PCI
// addresses of virtual functions in the variables that applications know from
// sriov-network-device-plugin, and the files of RDMA devices. Interfaces come into the pod by CNI,
// later.

#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "driver/driver.h"

namespace dibs::drivers::net {

struct ClaimsDriverOptions {
  std::string driver_name = {};
  std::string node_name = {};
  /// For `rdmaAcc`; "": there is none, and such a claim cannot be prepared.
  std::string host_device_path = {};
};

class ClaimsDriver : public driver::Driver {
 public:
  /// `api` must outlive it.
  ClaimsDriver(client::Client& api, ClaimsDriverOptions options);

  Result<std::vector<driver::Pool>> devices() override;
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override;
  Result<> unprepare(const driver::ClaimName& claim) override;

 private:
  client::Client& api_;
  const ClaimsDriverOptions options_;
};

}  // namespace dibs::drivers::net
