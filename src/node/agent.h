#pragma once
// A node's agent: what a kubelet is to a cluster.
//
// It registers the node, takes the pods that are sent there and runs them: claims through drivers
// (plugins/), volumes, environment and probes (pods/), containers (runtime/); and it answers for
// logs, exec and the like (streams/). All it knows lies in the API, in the container runtime and in
// its root folder, so it may end at any point and go on later: containers do not notice.
//
// Life: open() picks a runtime and reads what is left on the disk; start() registers and begins;
// stop() ends all of it and leaves containers running. Many agents may live in one process: they
// have no threads of their own, and share what `Shared` holds.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "client/client.h"
#include "client/informer.h"
#include "net/tls.h"
#include "node/disk_options.h"
#include "node/pods/node_object.h"
#include "node/pods/pod_source.h"
#include "node/runtime/container_runtime.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::rpc {
class MemoryNetwork;
}

namespace dibs::node {

struct AgentOptions {
  std::string name = {};
  /// Of all agents with this name that one may mean, which it is (pods/node_lease.h); "": not told.
  std::string agent = {};
  /// The kubelet's root folder. A socket's path has at most 107 bytes, so this is short.
  std::string root = "/var/lib/kubelet";
  /// The flag that gave `root`, for messages.
  std::string root_flag = "--root-dir";
  /// Of containers, and where it keeps its own: see pick_runtime.h.
  std::string runtime = "auto";
  std::string images = {};
  /// Names under which the built-in image is there, and registries without TLS: image_store.h.
  std::vector<std::string> image_aliases = {};
  std::vector<std::string> insecure_registries = {};
  std::string network = {};
  /// Names under which this program is a CNI plugin.
  std::vector<std::string> own_cni_plugins = {};
  /// See NodeFacts.
  std::vector<std::string> network_namespaces = {"kube-system"};
  std::vector<std::string> cdi_directories = {};
  /// The latest version of CDI files that is understood (cdi/cache.h); "": all.
  std::string cdi_newest = {};
  std::string log_root = {};  // "" : <root>/logs
  /// The port for logs, exec and the like: 0 picks a free one, -1 has none. Host "": the node's
  /// own address.
  std::string host = "0.0.0.0";
  int port = 10250;
  /// What the node is reached by, as it says itself; "": the address of the default route.
  std::string node_ip = {};
  /// Empty certificate: a self-signed one. The CA is that of callers.
  net::TlsServerOptions tls = {};
  std::string release = {};
  std::string feature_gates = {};
  std::string kubelet_version = "v1.37.0";
  std::map<std::string, std::string> labels = {};
  std::map<std::string, std::string> capacity = {};
  std::int64_t max_pods = 110;
  DiskOptions disk = {};
  std::vector<std::string> cluster_dns = {"10.0.0.10"};
  std::string cluster_domain = "cluster.local";
  /// See sysctl_rules.h.
  std::vector<std::string> allowed_unsafe_sysctls = {};
  /// Pods worked on at once. Many, because one may wait long for its driver or its image.
  unsigned concurrency = 64;
  metrics::Registry* metrics = nullptr;
  /// Called once on the executor when drivers may register: those of this process start then.
  std::function<void()> drivers_may_start = {};
  /// Drivers of this process, in place of sockets.
  rpc::MemoryNetwork* drivers = nullptr;
};

/// What the nodes of one process have in common instead of each its own.
struct Shared {
  SharedPods* pods = nullptr;
  client::Informer* services = nullptr;
  std::atomic<std::uint32_t>* sim_addresses = nullptr;
};

/// What can be wrong with them before anything is made. Errors name the flag.
Result<> check_options(const AgentOptions& options);

class Agent {
 public:
  /// All must outlive it. Errors name the flag that is wrong.
  static Result<std::unique_ptr<Agent>> open(AgentOptions options, client::Client& client,
                                             runtime::Runtime& runtime, runtime::Files& files,
                                             Shared shared = {});
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  Result<> start();
  void stop();

  /// Which runtime, and why that one.
  const std::string& runtime_explanation() const;
  /// Of the port; 0 when it has none.
  int port() const;
  ContainerRuntime& containers();
  /// The node is registered and its pods are known.
  bool is_ready() const;

 private:
  struct State;
  explicit Agent(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace dibs::node
