#pragma once
// Does for SpiderIPPool and SpiderReservedIP what upstream's webhooks and status controllers do:
// derived fields, counts, finalizers, and whether a pool is admitted (collector.h).

#include <string>
#include <vector>

#include "drivers/net/ipam/collecting.h"

namespace dibs::drivers::net {

class PoolJudge {
 public:
  explicit PoolJudge(Collecting& shared) : shared_(shared), complaints_(shared.events) {}

  /// All pools, at one revision of the server.
  client::WorkOutcome judge_pools();
  client::WorkOutcome judge_reserved(const std::string& name);

 private:
  struct Case {
    json::Value object;
    Result<IpPool> pool = Error::invalid("");
    Result<PoolStatus> status = Error::invalid("");
  };
  Result<> judge(Case& one, const std::vector<IpPool>& others,
                 const std::vector<json::Value>& subnets);
  Result<> let_go(const Case& one);
  static std::string fault_of(const Case& one, const std::vector<IpPool>& others,
                              const json::Value* subnet);

  Collecting& shared_;
  Complaints complaints_;
};

}  // namespace dibs::drivers::net
