#pragma once
// SpiderClaimParameter: what a claim wants of the network, in the words of every release that had
// such a kind.
//
// Names that changed from release to release mean one thing here: `rdma` is `rdmaAcc`,
// `netResources` is `resources`; `secondaryNics`, `staticNics` and `multusNames` are one list, of
// which an object may use one name only. Pure.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "drivers/net/model/multus_config.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// A SpiderMultusConfig, or a NetworkAttachmentDefinition.
struct NicName {
  std::string name_space = {};
  std::string name = {};
  bool default_route = false;

  std::string key() const { return name_space + "/" + name; }
};

inline constexpr std::string_view kDefaultCdiVersion = "0.6.0";

struct ClaimParameter {
  std::optional<NicName> default_nic = {};             // eth0
  std::vector<NicName> secondary_nics = {};            // net1, net2, …
  std::map<std::string, std::int64_t> resources = {};  // "spidernet.io/sriov_a": 1
  std::vector<std::string> ippools = {};               // no others
  bool rdma_acc = false;     // the library that accelerates is put into containers
  bool enable_rdma = false;  // every NIC must have an RDMA device
  std::string cdi_version{kDefaultCdiVersion};

  bool names_nics() const { return default_nic || !secondary_nics.empty(); }
};

/// Of a null value: the parameters of a claim that refers to none. Errors (invalid) name the field.
Result<ClaimParameter> parse_claim_parameter(const json::Value& object);

/// The config of that key; nothing when there is none. A NetworkAttachmentDefinition alone counts
/// (config_of_definition()).
using FindConfig = std::function<std::optional<MultusConfig>(const std::string& key)>;

/// Whether the NICs can be had at all, on whatever node: all of them exist, and secondary ones are
/// of one type. Errors: not_found names the config; invalid.
Result<> check_nics(const ClaimParameter& parameter, const FindConfig& find);

/// What a user should know though it is allowed: a CDI version that only some claims can have. ""
/// when there is nothing.
std::string warning_of(const ClaimParameter& parameter);

}  // namespace dibs::drivers::net
