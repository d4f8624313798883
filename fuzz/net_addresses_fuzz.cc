// Any ranges, any pool and any pod, as users write them for the network driver: what is read keeps
// its meaning when it is written, and what is chosen exists.
#include <set>

#include "base/strings.h"
#include "drivers/net/ipam/selection.h"
#include "drivers/net/model/ip_pool.h"
#include "drivers/net/model/pod_networks.h"
#include "drivers/net/model/reserved_ip.h"
#include "fuzz/pieces.h"
#include "fuzz/targets.h"
#include "json/parse.h"

namespace dibs::fuzz {
namespace {

using namespace drivers::net;
using json::Value;

void ranges(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    lines.emplace_back(line);
    if (const auto ip = Ip::parse(line); ip.ok()) {
      require(Ip::parse(ip->str()).ok() && *Ip::parse(ip->str()) == *ip, "an address reads back");
    }
    if (const auto subnet = Subnet::parse_lenient(line); subnet.ok()) {
      const auto again = Subnet::parse(subnet->str());
      require(again.ok() && *again == *subnet, "a subnet reads back");
      require(subnet->contains(subnet->base), "a subnet has its base");
    }
  }
  const auto set = IpSet::parse(lines);
  if (!set.ok()) return;
  const auto again = IpSet::parse(set->to_strings());
  require(again.ok() && *again == *set, "a set reads back");
  require(set->empty() == (set->count() == 0), "a set counts");
  IpSet less = *set;
  if (const auto lowest = set->lowest()) less.remove(*lowest);
  require(less.minus(*set).empty(), "what is left was there");
}

void pool_object(const Value& object) {
  if (const auto reserved = parse_reserved_ip(object); reserved.ok()) {
    const Value derived = reserved_with_derived_fields(object);
    const auto again = parse_reserved_ip(derived);
    require(again.ok() && again->ips == reserved->ips, "derived fields change no address");
  }
  if (const auto status = parse_pool_status(object); status.ok()) {
    const auto again = parse_pool_status(Value::object({{"status", to_status(*status)}}));
    require(again.ok() && again->allocated == status->allocated, "records read back");
    require(again->settled == status->settled, "settled addresses read back");
  }
  const auto pool = parse_ip_pool(object);
  if (!pool.ok()) {
    require(!pool.error().message().empty(), "an error has a message");
    return;
  }
  for (const IpRange& range : pool->total.ranges()) {
    require(pool->subnet.contains(range), "addresses lie in the subnet");
  }
  require(!pool->gateway || !pool->total.contains(*pool->gateway), "the gateway is nobody's");
  const Value derived = with_derived_fields(object, nullptr);
  const auto again = parse_ip_pool(derived);
  require(again.ok() && again->total == pool->total, "derived fields change no address");
  require(with_derived_fields(derived, nullptr) == derived, "they are derived once");
}

void pod_object(const Value& pod) {
  (void)pool_annotations(pod).ok();
  (void)subnet_annotations(pod).ok();
  (void)route_annotation(pod).ok();
  (void)pool_size_annotation(pod).ok();
  (void)pool_reclaim_annotation(pod).ok();
  (void)namespace_default_pools(pod, 4).ok();
  const auto nics = pod_nics(pod, "kube-system");
  if (!nics.ok()) return;
  std::set<std::string> interfaces;
  for (const PodNic& nic : *nics) {
    require(interfaces.insert(nic.interface).second, "an interface is named once");
    require(nic.interface.find('/') == std::string::npos, "an interface is no path");
    require(split(nic.multus, '/').size() == 2, "a network has a namespace");
  }
  const Value said =
      Value::object({{"metadata", Value::object({{"annotations", nic_annotations(*nics)}})}});
  const auto again = pod_nics(said, "kube-system");
  require(again.ok() && again->size() == nics->size(), "interfaces read back");
  for (std::size_t i = 0; i < nics->size(); ++i) {
    require((*again)[i].multus == (*nics)[i].multus, "networks read back");
  }
}

void choice(const Value& object, const Value& pod) {
  Pools pools;
  if (auto pool = parse_ip_pool(object); pool.ok()) {
    const std::string name = pool->name;
    pools[name] = std::make_shared<const IpPool>(std::move(*pool));
  }
  Setting setting;
  setting.pools = &pools;
  setting.pod = pod;
  setting.name_space = pod;
  setting.application = controller_of(pod);
  NicAsk nic;
  nic.interface = "eth0";
  nic.multus = "kube-system/macvlan-conf";
  const auto chosen = select_pools(setting, nic, 0);
  if (!chosen.ok()) return;
  for (const auto* names : {&chosen->v4, &chosen->v6}) {
    for (const std::string& name : *names) require(pools.contains(name), "a chosen pool exists");
  }
}

}  // namespace

int fuzz_net_addresses(const std::uint8_t* data, std::size_t size) {
  Texts texts(data, size);
  ranges(texts.next());
  const auto object = json::parse(texts.next(), {.max_depth = 100});
  const auto pod = json::parse(texts.rest(), {.max_depth = 100});
  if (object.ok()) pool_object(*object);
  if (pod.ok()) pod_object(*pod);
  choice(object.ok() ? *object : Value(), pod.ok() ? *pod : Value());
  return 0;
}

}  // namespace dibs::fuzz

DIBS_FUZZ_ENTRY(dibs::fuzz::fuzz_net_addresses)
