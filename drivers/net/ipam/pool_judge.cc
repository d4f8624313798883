#include "drivers/net/ipam/pool_judge.h"

#include "base/strings.h"
#include "drivers/net/model/reserved_ip.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using client::WorkOutcome;
using json::Value;

bool has_finalizer(const Value& object) {
  for (const auto& finalizer : object["metadata"]["finalizers"].items()) {
    if (finalizer.as_string() == kFinalizer) return true;
  }
  return false;
}

bool is_terminating(const Value& object) {
  return object["metadata"].contains("deletionTimestamp");
}

/// The subnet that controls the pool: the one with its CIDR.
const Value* subnet_for(const Value& pool, const std::vector<Value>& subnets) {
  for (const auto& subnet : subnets) {
    if (subnet["spec"]["subnet"] == pool["spec"]["subnet"] && !is_terminating(subnet)) {
      return &subnet;
    }
  }
  return nullptr;
}

/// The pool as others must not overlap it: what it had when it was admitted is its own until what
/// it has now is, or nothing is left of it.
std::optional<IpPool> as_neighbour(const Value& object, const Result<IpPool>& pool,
                                   const Result<PoolStatus>& status) {
  if (pool) {
    IpPool out = *pool;
    if (status) out.total.add(status->admitted);
    return out;
  }
  const auto lowest = status ? status->admitted.lowest() : std::nullopt;
  if (!lowest) return std::nullopt;
  IpPool out;
  out.name = client::name_of(object);
  out.version = lowest->version();
  const auto subnet = Subnet::parse(object["spec"]["subnet"].as_string());
  out.subnet = subnet ? *subnet : Subnet{*lowest, lowest->width()};
  out.total = status->admitted;
  return out;
}

Value status_with(const Value& object, const PoolStatus& status) {
  Value out = object["status"];
  for (const char* key : {"allocatedIPs", "settledIPs", "admittedIPs"}) out.erase(key);
  const Value written = to_status(status);
  for (const auto& [key, value] : written.members()) out.set(key, value);
  return out;
}

}  // namespace

WorkOutcome PoolJudge::judge_pools() {
  auto listed = shared_.api.list(kIpPools, "");
  if (!listed) return outcome_of(listed.error(), "IP pools");
  std::vector<Value> subnets;
  if (shared_.options.subnets) {
    auto found = shared_.api.list(kSubnets, "");
    if (!found) return outcome_of(found.error(), "subnets");
    subnets = std::move(found->items);
  }
  std::vector<Case> cases;
  std::vector<IpPool> others;
  for (auto& object : listed->items) {
    Case one;
    one.object = std::move(object);
    one.pool = parse_ip_pool(one.object);
    one.status = parse_pool_status(one.object);
    if (auto beside = as_neighbour(one.object, one.pool, one.status)) others.push_back(*beside);
    cases.push_back(std::move(one));
  }
  Result<> worst = success();
  for (auto& one : cases) {
    if (auto judged = judge(one, others, subnets); !judged) worst = judged;
  }
  return outcome_of(worst, "IP pools");
}

Result<> PoolJudge::judge(Case& one, const std::vector<IpPool>& others,
                          const std::vector<Value>& subnets) {
  if (is_terminating(one.object)) return let_go(one);
  const Value* subnet = subnet_for(one.object, subnets);
  const Value derived = with_derived_fields(one.object, subnet);
  if (!(derived == one.object)) {
    DIBS_TRY(one.object, shared_.api.update(kIpPools, "", derived));
    one.pool = parse_ip_pool(one.object);
  }
  std::string fault = fault_of(one, others, subnet);
  complaints_.tell(one.object, "InvalidPool", fault);
  if (!one.pool || !one.status) return success();
  PoolStatus status = *one.status;
  status.total_count = one.pool->total.count();
  if (fault.empty()) status.admitted = one.pool->total;
  const Value wanted = status_with(one.object, status);
  if (wanted == one.object["status"]) return success();
  Value object = one.object;
  object.set("status", wanted);
  DIBS_CHECK(shared_.api.update_status(kIpPools, "", object));
  return success();
}

std::string PoolJudge::fault_of(const Case& one, const std::vector<IpPool>& others,
                                const Value* subnet) {
  if (!one.pool) return one.pool.error().message();
  if (!one.status) return one.status.error().message();
  // What was admitted stays: who came later is refused.
  if (one.status->admitted == one.pool->total) return "";
  std::vector<std::string> faults = conflicts(*one.pool, others);
  for (auto& fault : use_faults(*one.pool, *one.status)) faults.push_back(std::move(fault));
  if (subnet != nullptr) {
    if (const auto owner = parse_ip_subnet(*subnet)) {
      for (auto& fault : conflicts(*one.pool, *owner)) faults.push_back(std::move(fault));
    }
  }
  return faults.empty() ? "" : faults.front();
}

Result<> PoolJudge::let_go(const Case& one) {
  complaints_.tell(one.object, "", "");
  if (!has_finalizer(one.object) || !one.status || !one.status->used().empty()) return success();
  DIBS_CHECK(shared_.api.update(kIpPools, "", without_finalizer(one.object)));
  return success();
}

WorkOutcome PoolJudge::judge_reserved(const std::string& name) {
  const auto object = shared_.reserved.get(name);
  if (!object) return WorkOutcome::done();
  const auto parsed = parse_reserved_ip(*object);
  complaints_.tell(*object, "InvalidReservedIP", parsed ? "" : parsed.error().message());
  Value wanted = *object;
  if (!is_terminating(*object)) {
    wanted = reserved_with_derived_fields(*object);
  } else if (has_finalizer(*object)) {
    wanted = without_finalizer(*object);
  }
  if (wanted == *object) return WorkOutcome::done();
  auto written = shared_.api.update(kReservedIps, "", wanted);
  if (written || written.error().code() == Code::not_found) return WorkOutcome::done();
  return outcome_of(written.error(), "reserved IPs");
}

}  // namespace dibs::drivers::net
