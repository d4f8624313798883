#pragma once
// The DeviceClass of a SpiderMultusConfig: who asks for it gets a NIC that the config can be made
// from, and the config with it. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "drivers/net/address/ip.h"
#include "drivers/net/model/multus_config.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// Annotation of the class: "namespace/name" of the config that it was made from.
inline constexpr std::string_view kMadeFrom = "multus.spidernet.io/config";

/// "macvlan-conf.kube-system.cni.spidernet.io".
std::string device_class_name(std::string_view config, std::string_view name_space);

/// resource.k8s.io/v1. `subnets`: of the pools that the config names; none: any.
json::Value device_class_of(const MultusConfig& config, const std::vector<Subnet>& subnets);

}  // namespace dibs::drivers::net
