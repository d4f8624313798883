#pragma once
// Where a node's pods come from.
//
// A node on its own watches its own pods, which is all that it may see. Many nodes in one process
// share one watch instead: a thousand watches of the same pods would each look at every change.

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "json/value.h"
#include "runtime/runtime.h"

namespace dibs::node {

struct PodHandlers {
  std::function<void(const json::Value& pod)> changed = {};
  std::function<void(const json::Value& pod)> gone = {};
  /// Once: every pod that there was has been handed over.
  std::function<void()> listed = {};
};

class PodSource {
 public:
  virtual ~PodSource() = default;
  /// Handlers run one at a time on the executor.
  virtual void start(PodHandlers handlers) = 0;
  /// No handler runs when it returns.
  virtual void stop() = 0;
};

/// `client` and `runtime` must outlive it.
std::unique_ptr<PodSource> watch_own_pods(client::Client& client, runtime::Runtime& runtime,
                                          const std::string& node);

/// One watch for all nodes of a process. Outlives the sources it gives.
class SharedPods {
 public:
  /// `client` may see all pods; it and `runtime` must outlive this.
  SharedPods(client::Client& client, runtime::Runtime& runtime);
  ~SharedPods();
  SharedPods(const SharedPods&) = delete;
  SharedPods& operator=(const SharedPods&) = delete;

  std::unique_ptr<PodSource> of_node(const std::string& node);
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::node
