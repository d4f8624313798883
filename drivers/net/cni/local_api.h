#pragma once
// What the CNI plugins of a node ask the driver's node half over its Unix socket: JSON in the bytes
// of gRPC calls (rpc/).
//
//     /spiderpool.v1.Local/Add       NicRequest ─▶ NicAddresses   of the IPAM plugin, at CNI ADD
//     /spiderpool.v1.Local/Del       NicRequest ─▶ {}             of the IPAM plugin, at CNI DEL
//     /spiderpool.v1.Local/Attached  AttachedNic ─▶ {}            of the coordinator, after an ADD
//     /spiderpool.v1.Local/Coordinator  NicRequest ─▶ CoordinatorFacts
//     /spiderpool.v1.Local/Health    {} ─▶ {}
//
// Both ends read strictly: a field of another kind, a name that no object can have or a message
// beyond kMaxLocalMessage is an error. Unknown fields are skipped, so that plugins and drivers of
// two releases understand each other.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "json/value.h"

namespace dibs::drivers::net {

inline constexpr std::string_view kDefaultSocket = "/var/run/spidernet/spiderpool.sock";
inline constexpr std::size_t kMaxLocalMessage = 64 << 10;

inline constexpr const char* kLocalAdd = "/spiderpool.v1.Local/Add";
inline constexpr const char* kLocalDel = "/spiderpool.v1.Local/Del";
inline constexpr const char* kLocalAttached = "/spiderpool.v1.Local/Attached";
inline constexpr const char* kLocalCoordinator = "/spiderpool.v1.Local/Coordinator";
inline constexpr const char* kLocalHealth = "/spiderpool.v1.Local/Health";

/// The pod as CNI_ARGS name it. The uid may be missing at a Del: then any pod of that name.
struct PodName {
  std::string name_space = {};
  std::string name = {};
  std::string uid = {};
};

/// One interface of one sandbox.
struct NicRequest {
  PodName pod = {};
  std::string interface = {};  // "eth0"
  std::string container = {};  // the sandbox's id
  std::string network_namespace = {};
  std::string network = {};  // name of the plugin list
  /// default_ipv4_ippool and default_ipv6_ippool of the plugin's configuration.
  std::vector<std::string> ipv4_pools = {};
  std::vector<std::string> ipv6_pools = {};
  bool clean_gateway = false;
};

struct NicRoute {
  std::string dst = {};  // "10.0.0.0/8"
  std::string gw = {};
};

/// Empty texts: none of that family.
struct NicAddresses {
  std::string ipv4 = {};  // "172.18.30.131/16"
  std::string ipv4_gateway = {};
  std::string ipv6 = {};
  std::string ipv6_gateway = {};
  /// No default route by this interface, though there is a gateway.
  bool clean_gateway = false;
  std::vector<NicRoute> routes = {};
};

/// What an interface of a pod has become, for the claim's status.devices[].networkData.
struct AttachedNic {
  PodName pod = {};
  std::string interface = {};
  std::string container = {};
  std::string mac = {};
  std::vector<std::string> ips = {};  // with their prefix lengths
};

/// What the coordinator of a pod's interface cannot see from where it runs.
struct CoordinatorFacts {
  /// spec of the SpiderCoordinator `default`: what the plugin's configuration does not say. Null:
  /// none.
  json::Value spec = {};
  /// overlayPodCIDR and serviceCIDR of its status.
  std::vector<std::string> pod_cidrs = {};
  std::vector<std::string> service_cidrs = {};
  /// The pod's annotation ipam.spidernet.io/default-route-nic.
  std::string default_route_nic = {};
};

json::Value to_value(const CoordinatorFacts& facts);
json::Value to_value(const NicRequest& request);
json::Value to_value(const NicAddresses& addresses);
json::Value to_value(const AttachedNic& nic);
/// Of the text of a message. Errors: invalid, naming the field.
Result<NicRequest> read_nic_request(std::string_view text);
Result<NicAddresses> read_nic_addresses(std::string_view text);
Result<AttachedNic> read_attached_nic(std::string_view text);
Result<CoordinatorFacts> read_coordinator_facts(std::string_view text);

/// The plugins' end. Calls block, until `deadline` at most. Errors carry the driver's words; code
/// unavailable: nobody answers there.
class LocalClient {
 public:
  explicit LocalClient(const std::string& socket);
  ~LocalClient();

  Result<> health(Duration deadline);
  Result<NicAddresses> add(const NicRequest& request, Duration deadline);
  Result<> del(const NicRequest& request, Duration deadline);
  Result<> attached(const AttachedNic& nic, Duration deadline);
  Result<CoordinatorFacts> coordinator(const NicRequest& request, Duration deadline);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
