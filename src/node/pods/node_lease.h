#pragma once
// The Lease by which a node shows that it lives: kube-node-lease/<name>, owned by the Node.
//
// Renewed every `period`; a failure is tried again sooner. Nothing waits. Thread-safe.

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::node {

/// On the lease: which of the agents that may have the name renews it. Kubernetes has the node's
/// name as the holder, which tells nothing.
inline constexpr const char* kAgentAnnotation = "dibs.dev/agent";
/// Where the leases of nodes are.
inline constexpr const char* kNodeLeases = "kube-node-lease";

struct NodeLeaseOptions {
  std::string node = {};
  std::string node_uid = {};
  std::string agent = {};  // "": not told
  Duration duration = std::chrono::seconds(40);
  Duration period = std::chrono::seconds(10);
};

class NodeLease {
 public:
  /// `recovered` is called on the executor after a renewal that came later than the lease lasts:
  /// others may have given the node up meanwhile.
  NodeLease(client::Client& client, runtime::Runtime& runtime, NodeLeaseOptions options,
            std::function<void()> recovered);
  /// As stop().
  ~NodeLease();
  NodeLease(const NodeLease&) = delete;
  NodeLease& operator=(const NodeLease&) = delete;

  void start();
  /// The lease stays as it is and runs out.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
