#pragma once
// The part of the spec that SpiderIPPool and SpiderSubnet share, read and judged. For the files of
// this library.

#include "base/result.h"
#include "drivers/net/model/ip_pool.h"
#include "json/value.h"

namespace dibs::drivers::net {

/// Everything but what needs other objects. The error is the first fault, in upstream's order.
Result<AddressSpace> parse_address_space(const json::Value& object, const Families& families);

/// ipVersion of the spec, or what spec.subnet says; 0 where neither tells.
int version_of(const json::Value& spec);

}  // namespace dibs::drivers::net
