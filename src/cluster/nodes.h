#pragma once
// The nodes of a cluster in one process: agents and drivers.
//
// Each node speaks to the API as itself (system:node:NAME), so that it may do what a node may, and
// nothing else; each driver as a service account of its own, on that node, and its half for the
// whole cluster, where it has one (drivers/drivers.h), as another. Nodes are like machines:
// each with its folders, its port, its watches and its drivers behind sockets; or they are a fleet,
// which shares one watch, has no ports, and meets its drivers in memory.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/transport.h"
#include "cluster/world.h"
#include "drivers/drivers.h"
#include "json/value.h"
#include "node/disk_options.h"
#include "node/runtime/machine_network.h"
#include "server/options.h"

namespace dibs::cluster {

/// Nodes of one shape.
struct NodeGroup {
  unsigned count = 1;  // node-0, node-1, …
  std::string prefix = "node-";
  /// What the owner of the cluster wants the Nodes to have (node_shapes.h).
  std::map<std::string, std::string> labels = {};
  json::Value taints = {};  // as in a Node; null: none
  /// Amounts in place of the machine's: {"cpu", "64"}, "memory", "pods".
  std::map<std::string, std::string> capacity = {};
  /// Names of drivers that each of them has (drivers/drivers.h).
  std::vector<std::string> drivers = {};
  /// By name: what is wanted of them otherwise.
  std::map<std::string, drivers::Tuning> tuning = {};
};

struct NodesOptions {
  std::vector<NodeGroup> groups = {NodeGroup()};
  /// Of the agents (node/agent.h).
  std::string agent = {};
  /// Nodes that there were in the folder and that are none any more: their objects go.
  std::vector<std::string> gone = {};
  std::string runtime = "auto";  // of containers (node/runtime/pick_runtime.h)
  std::string images = {};       // folder of images; "": the machine's own
  std::vector<std::string> image_aliases = {};
  std::vector<std::string> insecure_registries = {};
  node::DiskOptions disk = {};
  /// The latest version of CDI files that containers' runtimes understand; "": all.
  std::string cdi_newest = {};
  /// Kernel settings that pods may ask for besides the safe ones (node/pods/sysctl_rules.h).
  std::vector<std::string> allowed_unsafe_sysctls = {};
  /// Of the agents (node/agent.h).
  std::vector<std::string> own_cni_plugins = {};
  std::vector<std::string> network_namespaces = {"kube-system"};
  /// The cluster's data folder, absolute: a node's is nodes/NAME in it.
  std::string folder = {};
  /// What of this machine belongs to the cluster; nothing where containers are simulated.
  std::optional<node::MachineRanges> machine = {};
  std::string cluster_domain = "cluster.local";
  bool fleet = false;
  /// Where agents listen; "": where the API server does.
  std::string host = {};
  /// The address that they say they have; "": the machine's own.
  std::string node_ip = {};
  /// Other processes have halves of drivers for the whole cluster, too: one of them works.
  bool elect = false;
  /// Hears how many of them have started.
  std::function<void(unsigned started)> tell = {};

  unsigned count() const;
  /// Of all nodes, group by group.
  std::vector<std::string> names() const;
  /// Of all groups, each once.
  std::vector<std::string> drivers() const;
  /// How many nodes have the driver.
  unsigned count_with(const std::string& driver) const;
  /// The cluster's DNS, where this machine has it; "" where it has none.
  std::string dns_address() const;
};

/// As a token of an account in kube-system would say it.
client::InProcessIdentity account_identity(const std::string& name);
/// The account in kube-system of a driver named in `--drivers`.
std::string driver_account(std::string_view name);
/// That of its half which is one for the cluster.
std::string cluster_account(std::string_view name);
/// Who follows the API for the names of the cluster on this machine.
server::DriverAccount dns_account();
/// What the server has to know of these drivers. Errors name the flag.
Result<std::vector<server::DriverAccount>> driver_accounts(const std::vector<std::string>& names,
                                                           std::string_view release);

/// More than this are no machines to look into, but a load to look at.
inline constexpr unsigned kMostMachines = 16;

class Nodes {
 public:
  using Connect =
      std::function<std::unique_ptr<client::Transport>(const client::InProcessIdentity&)>;

  /// `server`: of the server that `connect` leads to. `world` must outlive it. Errors name the flag
  /// that is wrong.
  static Result<std::unique_ptr<Nodes>> start(NodesOptions options, const server::Options& server,
                                              const World& world, Connect connect);
  ~Nodes();
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  /// Ends agents and drivers; containers go on.
  void stop();
  /// Which container runtime was picked, and why.
  const std::string& explanation() const;

 private:
  struct State;
  explicit Nodes(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dibs::cluster
