#pragma once
// Questions to the neighbours of an interface, and news for them. In the network namespace in which
// they are called; each has an end in time.

#include <string>

#include "base/result.h"
#include "base/time.h"
#include "drivers/net/address/ip.h"
#include "drivers/net/cni/netlink.h"

namespace dibs::drivers::net {

/// Asks the kernel to find the gateway, by ARP or neighbour discovery. The error names it.
Result<> check_gateway(Netlink& kernel, const KernelLink& link, const Ip& gateway);

/// Whether somebody else has the address: ARP probes; of IPv6 what the kernel's own check said.
Result<> check_conflict(Netlink& kernel, const KernelLink& link, const Ip& ip);

/// Tells the neighbours at which device the address is now: gratuitous ARP, or an unsolicited
/// neighbour advertisement.
Result<> announce(const KernelLink& link, const Ip& ip);

}  // namespace dibs::drivers::net
