#pragma once
// What of the machine's network belongs to one cluster here: a bridge, a range of addresses for
// pods and one for Services.
//
// They are claimed once, under a lock of the machine, so that two clusters share none of them, and
// kept as long as the machine is up. A claim is a folder; who claims takes away what belongs to a
// folder that is gone.
//
//     <state>/owner     the network's name
//     <state>/range     "10.97.0.0/16": of pods
//     <state>/services  "10.0.0.0/24"; not there where nobody asked for one
//     <state>/../ranges.lock
//
// Addresses of Services are routed to the bridge, so no packet to one of them leaves the machine,
// whether anybody answers or not.

#include <string>
#include <string_view>
#include <vector>

#include "base/ipv4.h"
#include "base/result.h"

namespace dibs::node {

struct NetworkOptions {
  std::string name = {};   // the folder of the node, or of the cluster whose nodes share it
  std::string state = {};  // folder, gone after a reboot; networks of ours are siblings, net-…
  std::string config_folder = "/etc/cni/net.d";
  std::vector<std::string> plugin_folders = {"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"};
  /// Plugins that are this program under another name: a folder for links to it, searched first.
  /// "": none.
  std::string own_folder = {};
  std::string program = {};
  std::vector<std::string> own_plugins = {};
  /// Further variables for plugins, NAME=value.
  std::vector<std::string> environment = {};
};

/// With the name and the state that the network of the folder `options.name` has everywhere.
NetworkOptions network_of_folder(NetworkOptions options);

struct MachineRanges {
  std::string bridge = {};
  std::string pods = {};      // 10.130.0.0/16
  std::string gateway = {};   // 10.130.0.1: the bridge's own address
  std::string services = {};  // 10.0.0.0/24; "": none was claimed
};

/// The bridge of the network with this name; also the name of whatever else it has on the machine.
std::string bridge_name(const std::string& network);
/// The table of nftables with the NetworkPolicies of its pods.
std::string policy_table(const std::string& bridge);

/// What is wrong with these addresses for Services of this network. Changes nothing. Errors name
/// --service-cluster-ip-range and what to do.
Result<> check_service_range(const NetworkOptions& options, const std::string& services);

struct ServiceRange {
  std::string range = {};  // "": the one that is claimed already, or else the first that is free
  bool kept = false;       // the cluster has it: there is no other for it
};
/// Errors as above; then nothing is claimed.
Result<MachineRanges> claim_ranges(const NetworkOptions& options, const ServiceRange& services);
/// Whose on this machine addresses of that range are, of another cluster's first or added ones; "":
/// nobody's.
std::string other_owner_of(const NetworkOptions& options, const Ipv4Range& range);
/// The pods' alone: what a node without Services needs.
Result<MachineRanges> claim_pod_range(const NetworkOptions& options);

/// The bridge, up with its address, and the route of the services to it. May be called again.
Result<> make_bridge(const MachineRanges& ranges);
/// Keeps a pod's port from others of the bridge: what pods send each other is routed, so that rules
/// see both ways of a connection. Without it an answer to a pod that asked a Service would take the
/// short way, past the rules that know whom it was for. Where the kernel shows rules what is
/// bridged (bridge-nf-call-iptables), they see it anyway, and an isolated port would be cut off
/// from Services: there it is let go. make_bridge() does this for all ports that are there.
Result<> isolate_port(const std::string& interface);
/// Takes all of it away.
void remove_machine_network(const NetworkOptions& options);
/// Networks of a folder and of those below it: of a cluster, of agents that run alone.
bool has_network(const std::string& folder);
void remove_networks_of(const std::string& folder);
/// Of all folders that are gone.
void remove_abandoned_networks();

/// As /proc/net/route (given as its text) has them, less the default route and those of the
/// network interface `except`.
std::vector<Ipv4Range> routes_of(std::string_view text, std::string_view except);
/// The first range of 16 bits from 10.64.0.0 to 10.191.0.0, from a start that `name` decides, that
/// meets none of `taken`. "" when all do.
std::string pick_range(const std::string& name, const std::vector<Ipv4Range>& taken);
/// The first of 10.0.0.0/24, 10.1.0.0/24, … that meets none of `taken`. "" when all do.
std::string pick_service_range(const std::vector<Ipv4Range>& taken);

}  // namespace dibs::node
