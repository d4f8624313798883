#pragma once
// SpiderIPPool, and what SpiderSubnet shares with it: the object parsed and judged.
//
// What upstream's webhooks refuse is an error here, with the field and in upstream's words. A pool
// that is refused is not used; that it exists is not enough. Pure.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/merge/selectors.h"
#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "json/value.h"

namespace dibs::drivers::net {

inline constexpr std::string_view kGroup = "spiderpool.spidernet.io";
inline constexpr std::string_view kFinalizer = "spiderpool.spidernet.io";
inline constexpr std::string_view kLabelPoolCidr = "ipam.spidernet.io/ippool-cidr";
inline constexpr std::string_view kLabelSubnetCidr = "ipam.spidernet.io/subnet-cidr";
inline constexpr std::string_view kLabelOwnerSubnet = "ipam.spidernet.io/owner-spider-subnet";

// Of pools that a SpiderSubnet made: whom for.
inline constexpr std::string_view kLabelApplicationGv = "ipam.spidernet.io/owner-application-gv";
inline constexpr std::string_view kLabelApplicationKind =
    "ipam.spidernet.io/owner-application-kind";
inline constexpr std::string_view kLabelApplicationNamespace =
    "ipam.spidernet.io/owner-application-namespace";
inline constexpr std::string_view kLabelApplicationName =
    "ipam.spidernet.io/owner-application-name";
inline constexpr std::string_view kLabelApplicationUid = "ipam.spidernet.io/owner-application-uid";
inline constexpr std::string_view kLabelInterface = "ipam.spidernet.io/interface";
inline constexpr std::string_view kLabelVersion = "ipam.spidernet.io/ip-version";
inline constexpr std::string_view kLabelReclaim = "ipam.spidernet.io/ippool-reclaim";
/// In podAffinity.matchLabels of such a pool: all of them, and no others.
inline constexpr std::array<std::string_view, 5> kApplicationLabels{
    "ipam.spidernet.io/app-api-group", "ipam.spidernet.io/app-api-version",
    "ipam.spidernet.io/app-kind", "ipam.spidernet.io/app-namespace", "ipam.spidernet.io/app-name"};

struct Route {
  Subnet dst;
  Ip gw;
  friend bool operator==(const Route&, const Route&) = default;
};

/// What SpiderIPPool and SpiderSubnet have in common.
struct AddressSpace {
  std::string name = {};
  std::string uid = {};
  int version = 4;
  Subnet subnet = {};
  IpSet ips = {};
  IpSet excluded = {};
  IpSet total = {};  // ips without excluded
  std::optional<Ip> gateway = {};
  std::vector<Route> routes = {};
  bool terminating = false;
};

struct IpPool : AddressSpace {
  std::optional<api::LabelSelector> pod_affinity = {};
  std::optional<api::LabelSelector> namespace_affinity = {};
  std::optional<api::LabelSelector> node_affinity = {};
  std::vector<std::string> node_names = {};
  std::vector<std::string> namespace_names = {};
  std::vector<std::string> multus_names = {};  // "ns/name", or "name" of the install namespace
  bool is_default = false;
  bool disabled = false;
  /// Made by a SpiderSubnet for an application: podAffinity has the labels of the application and
  /// is not compared with those of pods.
  bool automatic = false;
  json::Value application_labels = {};
};

struct IpSubnet : AddressSpace {};

/// One record of status.allocatedIPs.
struct PoolRecord {
  std::string pod;  // "ns/name"
  std::string uid;
  /// How often a later attempt to assign has found the record and gone on with it: "takenUp",
  /// absent when 0. So two attempts never rely on the same record.
  std::int64_t taken_up = 0;
  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

/// status of SpiderIPPool. allocatedIPs names who has an address; what settled has its owner in a
/// SpiderEndpoint only. No address is in both.
struct PoolStatus {
  std::map<Ip, PoolRecord> allocated;
  IpSet settled;
  /// status.admittedIPs: the addresses that the pool had when it was judged beside all others. It
  /// is used while they are those that it has.
  IpSet admitted;
  std::int64_t total_count = 0;
  std::int64_t allocated_count = 0;

  IpSet used() const;
};

/// The families that the cluster has.
struct Families {
  bool v4 = true;
  bool v6 = true;
};

/// Judges the object alone. Errors are invalid, "spec.subnet: Invalid value: …", the first fault.
Result<IpPool> parse_ip_pool(const json::Value& object, const Families& families = {});
Result<IpSubnet> parse_ip_subnet(const json::Value& object, const Families& families = {});

/// What is wrong beside others: overlapping subnets and addresses. A pool never conflicts with one
/// of its own name. Of two pools that overlap, each names the other.
std::vector<std::string> conflicts(const IpPool& pool, const std::vector<IpPool>& others);
std::vector<std::string> conflicts(const IpSubnet& subnet, const std::vector<IpSubnet>& others);
/// A controlled pool lies in its subnet.
std::vector<std::string> conflicts(const IpPool& pool, const IpSubnet& owner);

/// Addresses in use that are none of the pool's: it was narrowed where nothing refused that.
/// Upstream's words, one text per address, at most ten. (That subnet and version stay the same is a
/// rule of the definition.)
std::vector<std::string> use_faults(const IpPool& pool, const PoolStatus& status);

/// Of the whole object. Errors: allocatedIPs or settledIPs cannot be read.
Result<PoolStatus> parse_pool_status(const json::Value& object);
/// status as it is written: allocatedIPs (JSON in a string, absent when empty), settledIPs and
/// admittedIPs (absent when empty), totalIPCount, and allocatedIPCount, which is
/// counted here from both kinds.
json::Value to_status(const PoolStatus& status);
/// The text of status.allocatedIPs; sorted by address text as Go's encoder does.
std::string allocated_text(const std::map<Ip, PoolRecord>& allocated);

/// status.controlledIPPools of SpiderSubnet.
struct ControlledPool {
  IpSet ips;
  std::string application;
  friend bool operator==(const ControlledPool&, const ControlledPool&) = default;
};
/// Addresses that pools hold and the subnet has no more, as upstream says it.
std::vector<std::string> use_faults(const IpSubnet& subnet,
                                    const std::map<std::string, ControlledPool>& pools);
json::Value to_subnet_status(const IpSubnet& subnet,
                             const std::map<std::string, ControlledPool>& pools);

/// The object as upstream's mutating webhook leaves it: finalizer, ipVersion, label of the CIDR,
/// ranges sorted and merged; of a pool whose CIDR is that of `subnet` (may be null) its owner,
/// gateway and routes. Equal to `object` where nothing is to do. Objects that cannot be parsed or
/// that are being deleted stay as they are.
json::Value with_derived_fields(const json::Value& pool, const json::Value* subnet);
json::Value subnet_with_derived_fields(const json::Value& subnet);

/// "172-18-0-0-16": the CIDR as the value of a label.
std::string cidr_label(const Subnet& subnet);

}  // namespace dibs::drivers::net
