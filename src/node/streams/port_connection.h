#pragma once
// One forwarded connection: what a client sends goes to the pod's port on the executor, what the
// pod answers goes to the client. Private to the port-forward.

#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "node/runtime/container_runtime.h"
#include "node/streams/port_forward.h"
#include "runtime/runtime.h"

namespace dibs::node {

class PortConnection : public std::enable_shared_from_this<PortConnection> {
 public:
  /// To the client; any thread, must not block.
  struct Client {
    std::function<void(std::string_view bytes)> data = {};
    /// Once: the text for the error channel, "" when all went well.
    std::function<void(std::string error)> ended = {};
    std::function<std::size_t()> queued = {};
    /// The client sends faster than the pod reads.
    std::function<void(bool held)> hold = {};
  };
  PortConnection(runtime::Runtime& runtime, ContainerRuntime& containers, std::string sandbox,
                 int port, Client client);

  /// Dials on the executor.
  void begin();
  void write(std::string_view bytes);
  void close_write();
  /// The client is gone.
  void abandon();
  /// The client has taken what was queued.
  void drained();

 private:
  void dial();
  void pump_soon();
  void pump();
  void receive(std::string_view bytes);
  void ended(const Result<>& outcome);
  std::shared_ptr<PortStream> stop();

  runtime::Runtime& runtime_;
  ContainerRuntime& containers_;
  std::string sandbox_;
  int port_;
  Client client_;
  Mutex mutex_;
  CondVar room_;
  std::shared_ptr<PortStream> stream_ DIBS_GUARDED_BY(mutex_);
  std::deque<std::string> input_ DIBS_GUARDED_BY(mutex_);  // an empty piece is the end
  std::size_t waiting_ DIBS_GUARDED_BY(mutex_) = 0;
  bool pumping_ DIBS_GUARDED_BY(mutex_) = false;
  bool held_ DIBS_GUARDED_BY(mutex_) = false;
  bool over_ DIBS_GUARDED_BY(mutex_) = false;
  bool told_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::node
