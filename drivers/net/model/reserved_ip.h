#pragma once
// SpiderReservedIP: addresses that no pool hands out. Pure.

#include <string>

#include "base/result.h"
#include "drivers/net/address/ip.h"
#include "json/value.h"

namespace dibs::drivers::net {

struct ReservedIp {
  std::string name;
  int version = 4;
  IpSet ips;
  bool terminating = false;  // no longer counts
};

/// Errors: the first fault, in upstream's words.
Result<ReservedIp> parse_reserved_ip(const json::Value& object);

/// The object with ipVersion, and its ranges sorted and merged; as it is where nothing is to do.
json::Value reserved_with_derived_fields(const json::Value& object);

}  // namespace dibs::drivers::net
