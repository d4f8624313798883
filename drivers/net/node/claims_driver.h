#pragma once
// Claims on a node, of either model: what their containers get to see.
//
// Every container of a claim has its uid in DRA_CLAIM_UID. What else there is depends on the
// claim's parameters, and on what was allocated: the library that accelerates RDMA, the PCI
// addresses of functions in the variables that applications know from sriov-network-device-plugin,
// and the files of RDMA devices. Interfaces come into the pod by CNI, later, and by the pod's
// annotations: who prepares a claim sees to it that it has them.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "client/resource_versions.h"
#include "driver/driver.h"
#include "drivers/net/host/facts.h"
#include "drivers/net/model/claim_parameter.h"
#include "drivers/net/model/node_state.h"
#include "drivers/net/node/pod_networks_writer.h"

namespace dibs::drivers::net {

struct ClaimsDriverOptions {
  std::string driver_name = {};
  std::string node_name = {};
  /// For `rdmaAcc`; "": there is none, and containers get none.
  std::string host_device_path = {};
  HostRoots roots = {};
  /// Where the node's agent looks for devices of interfaces (device_files.h).
  std::string network_devices = {};
};

/// What is known of the node; nothing before it was looked at.
using StateOfNode = std::function<std::optional<NodeState>()>;
/// The node's devices as they are offered. Error unavailable: not known yet.
using OfferDevices = std::function<Result<std::vector<driver::Device>>()>;

class ClaimsDriver : public driver::Driver {
 public:
  /// All must outlive it. `offer` empty: nothing is published.
  ClaimsDriver(const driver::Environment& environment, PodNetworksWriter& pods, StateOfNode state,
               OfferDevices offer, ClaimsDriverOptions options);

  Result<std::vector<driver::Pool>> devices() override;
  Result<std::vector<driver::PreparedDevice>> prepare(const driver::Claim& claim) override;
  Result<> unprepare(const driver::ClaimName& claim) override;

 private:
  /// Devices of the node that a claim has.
  struct Hardware {
    std::vector<InterfaceDevice> interfaces = {};
    std::map<std::string, std::vector<std::string>> functions = {};  // PCI addresses by pool
    std::vector<std::string> rdma_devices = {};                      // each once
    void add_rdma(const std::string& device);
  };

  Result<ClaimParameter> parameter_of(const driver::Claim& claim) const;
  Result<Hardware> granted(const driver::Claim& claim, bool& rdma_acc) const;
  Result<Hardware> allocated(const driver::Claim& claim) const;
  Result<> add_function(const NodeState& state, const std::string& pool, const std::string& pci,
                        bool must_be_free, Hardware& out) const;
  cdi::ContainerEdits edits_of(const driver::Claim& claim, const Hardware& hardware,
                               bool rdma_acc) const;

  client::Client& api_;
  PodNetworksWriter& pods_;
  DeviceFiles files_;
  const StateOfNode state_;
  const OfferDevices offer_;
  const ClaimsDriverOptions options_;
};

}  // namespace dibs::drivers::net
