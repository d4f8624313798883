#pragma once
// SpiderSubnets, and the pools that are made of them for the applications whose pods name one
// (collector.h): made with the first pod, resized with the replicas, reclaimed with the
// application.

#include <string>
#include <vector>

#include "drivers/net/ipam/collecting.h"

namespace dibs::drivers::net {

class AutoPools {
 public:
  explicit AutoPools(Collecting& shared) : shared_(shared), complaints_(shared.events) {}

  /// The pools of the pod's application.
  client::WorkOutcome look_at_pod(const std::string& key);
  /// Deletes the pool when its application is gone and nobody uses it.
  client::WorkOutcome look_at_pool(const std::string& name);
  /// Derived fields, counts, who controls what, finalizers.
  client::WorkOutcome look_at_subnets();

 private:
  struct Wanted {
    Application application;
    std::string interface;
    int version;
    std::vector<std::string> subnets;
    std::int64_t addresses;
    bool reclaim;
  };
  Result<> ensure(const json::Value& pod);
  Result<> ensure_pool(const Wanted& wanted);
  Result<> make_pool(const Wanted& wanted, const IpSet& held);
  Result<> resize_pool(const Wanted& wanted, const json::Value& object, const IpSet& held);
  Result<> look_at_subnet(const json::Value& object, const std::vector<IpSubnet>& others,
                          const std::vector<json::Value>& pools);

  Collecting& shared_;
  Complaints complaints_;
};

}  // namespace dibs::drivers::net
