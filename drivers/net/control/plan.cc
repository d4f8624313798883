#include "drivers/net/control/plan.h"

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

/// Claims name configurations, annotations what is made from them.
Result<AskedNic> as_definition(const AskedNic& nic, const Networks& networks) {
  DIBS_TRY(const MultusConfig config, networks.config(nic.multus));
  return AskedNic{cat(config.name_space, "/", config.definition), nic.default_route};
}

bool is_spiderpool(const Value& plugin) {
  return plugin["ipam"]["type"].as_string() == "spiderpool";
}

}  // namespace

Result<PodPlan> plan_pod(const Value& pod, const std::vector<AskedNics>& claims, std::size_t rest,
                         const Networks& networks, const SelectionOptions& options) {
  std::vector<AskedNics> asked;
  std::size_t of_default = rest;
  std::vector<std::size_t> of_secondary;
  bool named = false;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    AskedNics& out = asked.emplace_back();
    if (claims[i].default_nic) {
      DIBS_TRY(out.default_nic, as_definition(*claims[i].default_nic, networks));
      of_default = i;
      named = true;
    }
    for (const auto& nic : claims[i].secondary) {
      DIBS_TRY(auto translated, as_definition(nic, networks));
      out.secondary.push_back(std::move(translated));
      of_secondary.push_back(i);
      named = true;
    }
  }
  DIBS_TRY(const auto nics,
           pod_nics(pod, asked, options.install_namespace, options.cluster_network));
  PodPlan plan;
  std::size_t secondary = 0;
  for (const PodNic& nic : nics) {
    PlannedNic planned;
    planned.need.interface = nic.interface;
    DIBS_TRY(planned.need.config, networks.definition(nic.multus));
    const bool first = nic.interface == kDefaultInterface;
    planned.claim = first                             ? of_default
                    : secondary < of_secondary.size() ? of_secondary[secondary]
                                                      : rest;
    if (!first) ++secondary;
    plan.nics.push_back(std::move(planned));
  }
  if (!named) return plan;
  Value missing = Value::object();
  const Value wanted = nic_annotations(nics);
  for (const auto& entry : wanted.members()) {
    if (pod["metadata"]["annotations"].contains(entry.key())) continue;
    missing.set(entry.key(), entry.value());
  }
  if (!missing.empty()) plan.annotations = std::move(missing);
  return plan;
}

bool uses_ipam(const MultusConfig& config) {
  if (config.disable_ipam) return false;
  if (config.cni_type != "custom") return true;
  const auto conf = json::parse(config.custom_cni);
  if (!conf) return false;
  if (is_spiderpool(*conf)) return true;
  for (const Value& plugin : (*conf)["plugins"].items()) {
    if (is_spiderpool(plugin)) return true;
  }
  return false;
}

NicAsk ask_of(const Need& need, const NodeState* state, std::string_view vf,
              const std::vector<std::string>& only_pools) {
  NicAsk ask;
  ask.interface = need.interface;
  ask.multus = cat(need.config.name_space, "/", need.config.definition);
  ask.ipv4_pools = need.config.ipv4_pools;
  ask.ipv6_pools = need.config.ipv6_pools;
  ask.match_master_subnet = need.config.match_master_subnet;
  ask.only_pools = only_pools;
  if (state == nullptr) return ask;
  if (auto subnets = host_subnets(*state, need.config, vf)) {
    ask.host_known = true;
    ask.host_subnets = std::move(*subnets);
  }
  return ask;
}

}  // namespace dibs::drivers::net
