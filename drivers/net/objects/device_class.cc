#include "drivers/net/objects/device_class.h"

#include "base/strings.h"
#include "drivers/net/objects/install.h"

namespace dibs::drivers::net {
namespace {

using json::Value;

const std::string kAttributes = cat("device.attributes['", kDriver, "']");

// Devices of this driver have all of these attributes, empty ones as "" (host/slice_devices.h), and
// those of others do not get past the first selector. What is wanted stands first: that is what is
// seen of an expression that nothing matches.

std::string attribute_is(std::string_view name, const std::string& wanted) {
  return cat(kAttributes, ".", name, " == ", wanted);
}

/// Where a device has an address of the family, it is in one of the subnets; where it has none
/// nobody can tell.
std::string subnet_fits(std::string_view attribute, const std::vector<Subnet>& subnets,
                        int version) {
  const std::string value = cat(kAttributes, ".", attribute);
  std::string any;
  for (const auto& subnet : subnets) {
    if (subnet.version() != version) continue;
    append(any, "cidr(", quoted(subnet.str()), ").containsCIDR(", value, ") || ");
  }
  return any.empty() ? "" : cat(any, value, " == ''");
}

Value selector(const std::string& expression) {
  return Value::object({{"cel", Value::object({{"expression", expression}})}});
}

}  // namespace

std::string device_class_name(std::string_view config, std::string_view name_space) {
  return cat(config, ".", name_space, ".cni.spidernet.io");
}

Value device_class_of(const MultusConfig& config, const std::vector<Subnet>& subnets) {
  Value selectors = Value::array({selector(cat("device.driver == '", kDriver, "'"))});
  if (!config.resource_name.empty()) {
    selectors.push(selector(attribute_is("resourceName", quoted(config.resource_name))));
  } else if (!config.masters.empty()) {
    // Of the members of a bond one stands for all; the node's driver looks for the others.
    selectors.push(selector(attribute_is("name", quoted(config.masters.front()))));
  }
  if (config.enable_rdma && config.resource_name.empty()) {
    selectors.push(selector(cat(kAttributes, ".rdma")));
  }
  // What the host has untagged says nothing about a VLAN.
  if (config.vlan_id == 0 && !config.disable_ipam) {
    for (const auto& [attribute, version] : {std::pair("ipv4CIDR", 4), std::pair("ipv6CIDR", 6)}) {
      const std::string expression = subnet_fits(attribute, subnets, version);
      if (!expression.empty()) selectors.push(selector(expression));
    }
  }
  const Value parameters =
      Value::object({{"multusName", config.name}, {"multusNamespace", config.name_space}});
  const Value opaque = Value::object({{"driver", kDriver}, {"parameters", parameters}});
  return Value::object(
      {{"apiVersion", "resource.k8s.io/v1"},
       {"kind", "DeviceClass"},
       {"metadata", Value::object({{"name", device_class_name(config.name, config.name_space)},
                                   {"annotations", Value::object({{kMadeFrom, config.key()}})}})},
       {"spec", Value::object({{"selectors", std::move(selectors)},
                               {"config", Value::array({Value::object({{"opaque", opaque}})})}})}});
}

}  // namespace dibs::drivers::net
