#pragma once
// Keeps the SpiderNodeState of this node true.
//
// It looks once a second whether links or addresses changed, and at everything (hardware as well)
// every 60 seconds. What differs from what was written is written at once; without a change only
// `observedTime`, every 60 seconds. An object that somebody deleted or changed comes back then.
//
// Life: start() returns at once; failures are told to `background_error` and tried again. One task
// at a time. Thread-safe.

#include <functional>
#include <memory>
#include <optional>

#include "base/result.h"
#include "client/client.h"
#include "drivers/net/host/facts.h"
#include "drivers/net/model/node_state.h"
#include "runtime/runtime.h"

namespace dibs::drivers::net {

struct NodeStateWriterOptions {
  /// Called with every state that differs from the one before, also before it could be written.
  std::function<void(const NodeState& state)> changed = {};
  std::function<void(const Error& error)> background_error = {};
};

class NodeStateWriter {
 public:
  /// `api` and `runtime` must outlive it.
  NodeStateWriter(client::Client& api, runtime::Runtime& runtime, std::unique_ptr<HostFacts> facts,
                  NodeStateWriterOptions options = {});
  /// As stop().
  ~NodeStateWriter();
  NodeStateWriter(const NodeStateWriter&) = delete;
  NodeStateWriter& operator=(const NodeStateWriter&) = delete;

  void start();
  /// What was seen last; nothing before the first look.
  std::optional<NodeState> state() const;
  /// That is what the server has.
  bool written() const;
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::drivers::net
