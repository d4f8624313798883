#pragma once
// The Node object and its Lease: made when the agent starts, kept while it runs.
//
// The status is written when something in it changed, and every five minutes anyway; the Lease in
// kube-node-lease every ten seconds, good for forty. Until the runtime is ready, the Ready
// condition is False and says why. When the agent stops, both stay as they are: the node's silence
// is what the node lifecycle controller acts on. What others write there (labels, taints,
// annotations) is watched, and counts at once.
//
// Nothing here waits: requests answer on the executor, one at a time. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/event_recorder.h"
#include "json/value.h"
#include "node/plugins/device_plugins.h"
#include "node/pods/node_facts.h"
#include "node/runtime/container_runtime.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// The machine, as the node tells of it.
struct Machine {
  std::string machine_id = {};
  std::string system_uuid = {};
  std::string boot_id = {};
  std::string kernel_version = {};
  std::string os_image = {};
  std::string architecture = {};  // Go's names: amd64, arm64
  std::int64_t cpus = 1;
  std::int64_t memory_bytes = 0;
  /// Of the disk that pods write to; 0: not told, and not limited.
  std::int64_t disk_bytes = 0;
  std::map<std::string, std::int64_t> huge_pages = {};  // "hugepages-2Mi": bytes
  bool selinux = false;
  /// -1000, or this process's own where it has no right to lower it.
  std::int64_t lowest_oom_score = -1000;
  /// Of the interface of the default route; 127.0.0.1 when there is none.
  std::string address = {};
};
/// Reads /proc, /sys and /etc.
/// The machine's address on its way to everywhere; 127.0.0.1 where it has none.
std::string machine_address();
Machine read_machine();

struct NodeOptions {
  Machine machine = {};
  std::string kubelet_version = "v1.37.0";
  std::string runtime_version = {};  // "containerd://2.1.0"
  int kubelet_port = 10250;          // 0: none
  std::vector<std::string> addresses = {};
  std::string hostname = {};  // "" : the node's name
  std::string agent = {};     // see node_lease.h
  /// Amounts that replace what the machine has: {"cpu", "4"}, or come beside it.
  std::map<std::string, std::string> capacity = {};
  std::int64_t max_pods = 110;
  /// Bytes of the disk that are not for pods: with less than that, they are sent away.
  std::int64_t disk_reserve = 0;
  std::map<std::string, std::string> labels = {};
  json::Value taints = {};  // an array, or null
  std::vector<std::string> declared_features = {};
  /// Off: object() is as old as the last write. Thousands of nodes of one process do without.
  bool watch = true;
  Duration lease_duration = std::chrono::seconds(40);
  Duration lease_period = std::chrono::seconds(10);
  Duration status_period = std::chrono::minutes(5);
};

class NodeObject {
 public:
  /// All must outlive it. `events` has the component "kubelet" and this node as its host.
  NodeObject(client::Client& client, runtime::Runtime& runtime, client::EventRecorder& events,
             const NodeFacts& facts, NodeOptions options);
  /// As stop().
  ~NodeObject();
  NodeObject(const NodeObject&) = delete;
  NodeObject& operator=(const NodeObject&) = delete;

  /// Registers and goes on. `registered` runs once, when the object is there.
  void start(std::function<void(const json::Value& node)> registered = {});
  void stop();

  /// Whether the runtime can run pods; an error's message stands in the Ready condition. Not ready
  /// until told.
  void set_ready(Result<> ready);
  void set_images(std::vector<ImageInfo> images);
  void set_disk_pressure(bool pressure);
  /// What device plugins have.
  void set_devices(DeviceAmounts devices);
  /// Of those that are attached: they are not detached while they stand in the status.
  void set_volumes_in_use(std::vector<std::string> names);

  /// The object as last seen; null before it is registered.
  json::Value object() const;
  /// Read anew; as last seen where that fails. Blocks.
  json::Value read() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// What NodeFacts says of cpu, memory and scores, from the options.
void fill_amounts(NodeFacts& facts, const NodeOptions& options);

}  // namespace dibs::node
