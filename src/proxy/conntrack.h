#pragma once
// The kernel's table of connections, by netlink: for UDP, whose flows have no end of their own. A
// client that goes on sending from one port would be led to a backend that is gone.

#include <set>

#include "base/result.h"
#include "proxy/rules.h"

namespace dibs::proxy {

/// Removes the flows that were led to one of these backends. Reads the table once.
Result<> forget_udp_flows(const std::set<UdpBackend>& gone);

}  // namespace dibs::proxy
