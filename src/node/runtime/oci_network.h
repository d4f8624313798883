#pragma once
// The pods' network, by CNI plugins.
//
// A machine's own configuration (the first file in /etc/cni/net.d) counts; without one there is a
// bridge with addresses of its own (machine_network.h); nodes with the same network name share it.
//
// A pod may name further networks, each with an interface and a configuration of its own; one for
// eth0 stands in for the machine's. They are added in order and removed in the opposite one.
//
//     <state>/ipam/       addresses given out, by the host-local plugin
//     <state>/adding/ID   locked by whoever adds that sandbox, plugins and their children included
//
// Plugins outlive an agent that is killed while they work, and give out an address nobody asks for
// any more. So remove() waits until the last of them has ended: what it then takes back, stays so.
//
// Thread-safe.

#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"
#include "node/runtime/machine_network.h"

namespace dibs::node {

struct NetworkResult {
  std::vector<std::string> ips = {};  // of eth0
  /// See SandboxStatus::network_status.
  std::string status = {};
  json::Value cni = {};  // for remove()
};

class PodNetwork {
 public:
  explicit PodNetwork(NetworkOptions options);

  /// Makes the links to plugins of our own.
  Result<> link_plugins();

  /// What is missing on this machine.
  Result<> ready();
  /// The bridge and rules that the first pod would wait for.
  Result<> prepare();
  /// What add() will do and remove() needs to know if it does not live to tell.
  Result<json::Value> plan(const SandboxConfig& sandbox);
  Result<NetworkResult> add(const std::string& sandbox_id, const std::string& network_namespace,
                            const SandboxConfig& sandbox, const json::Value& plan);
  /// Success too when nothing was added; `cni` may be null then.
  Result<> remove(const std::string& sandbox_id, const std::string& network_namespace,
                  const SandboxConfig& sandbox, const json::Value& cni);

 private:
  Result<json::Value> configuration();
  Result<json::Value> default_configuration();
  std::string find_plugin(const std::string& type) const;
  /// One sandbox, whose plugins may hold an open file of ours.
  struct Target {
    const std::string& id;
    const std::string& network_namespace;
    const SandboxConfig& sandbox;
    int held = -1;
  };
  Result<json::Value> named_configuration(const SandboxNetwork& network);
  /// Runs the plugins of one attachment; `last` is what the last of them said.
  Result<> add_one(const Target& target, const json::Value& attachment, json::Value& last);
  Result<> remove_one(const Target& target, const json::Value& attachment);
  Result<json::Value> call(const std::string& command, const Target& target,
                           const json::Value& attachment, const json::Value& plugin,
                           const json::Value& previous);
  std::string adding(const std::string& sandbox_id) const;
  void await_additions(const std::string& sandbox_id) const;
  void masquerade(const std::string& range) DIBS_REQUIRES(mutex_);

  const NetworkOptions options_;
  const std::string bridge_;
  Mutex mutex_;
  bool prepared_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::node
