#pragma once
// The CNI plugins that the dibs binary is when it is called by their names.
//
//     spiderpool    IPAM: asks the node's half of the driver for addresses
//     coordinator   last in a list: the way to the host, routes of several interfaces, checks
//     ifacer        first in a list: bonds and VLAN devices of the host
//
// A plugin is a process: it reads its call from the environment and standard input, and prints a
// result or an error as JSON, which stands in the pod's event.

#include <string>
#include <string_view>
#include <vector>

namespace dibs::drivers::net {

/// "spiderpool", "coordinator", "ifacer".
std::vector<std::string> cni_plugin_names();

/// Returns the exit status.
int run_cni_plugin(std::string_view name);

}  // namespace dibs::drivers::net
