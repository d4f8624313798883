#pragma once
// Claims of today's model (resource.k8s.io/v1): which interfaces their devices stand for.
//
// A device by itself is a place where a pod's interface can be: which interface that is, a
// SpiderMultusConfig says. It is named
//   - by the class of the request: `dra-static-nic.spidernet.io` means that the request is named as
//     the config; `dra-dynamic-nic.spidernet.io` takes the first config that uses the device
//   - by an opaque configuration of class or claim: {"multusName", "multusNamespace"}
//   - for the whole claim by {"multusNamespace", "defaultNic": {"multusName", "defaultRoute"},
//     "secondaryNics": {"staticNics": [{"multusName", "defaultRoute"}], "dynamicNics":
//     {"potentialMultusConfigs": [...]}}}, which wins over the others
// The first interface of a pod is eth0 unless its annotations name another network for it; those of
// dynamic requests are always further ones. `podDefaultRouteNic` is the interface of the default
// route.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/control/networks.h"
#include "drivers/net/control/plan.h"
#include "json/value.h"

namespace dibs::drivers::net {

inline constexpr const char* kStaticClass = "dra-static-nic.spidernet.io";
inline constexpr const char* kDynamicClass = "dra-dynamic-nic.spidernet.io";

/// A device of the allocation that is this driver's.
struct NicDevice {
  std::string request = {};
  std::string pool = {};
  std::string device = {};
  std::string share_id = {};
};

/// An interface of the pod, and the device that stands for it.
struct TodayNic {
  Need need = {};
  std::size_t claim = 0;  // an index of those that were given
  NicDevice device = {};
  std::string vf = {};  // PCI address; "": none
};

struct TodayPlan {
  std::string node = {};
  std::vector<TodayNic> nics = {};
  json::Value annotations = {};  // as PodPlan's
};

/// Of a claim that is allocated: its devices of this driver.
std::vector<NicDevice> nic_devices(const json::Value& claim);
/// Names of the pod's claims, in its order; of entries that have none yet: "".
std::vector<std::string> claims_of_pod(const json::Value& pod);

/// `claims` in the pod's order, allocated. `state` of the node may be null. Errors as plan_pod()'s;
/// and invalid, where a configuration cannot be read.
Result<TodayPlan> plan_today(const json::Value& pod, const std::vector<json::Value>& claims,
                             const NodeState* state, const Networks& networks,
                             const SelectionOptions& options);

}  // namespace dibs::drivers::net
