#pragma once
// One forwarded connection: what a client sends goes to the pod's port, what the pod answers goes
// to the client; no thread waits for either. Private to the port-forward.

#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "node/streams/stream_host.h"

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
  PortConnection(StreamHost host, std::string sandbox, int port, Client client);

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
  void receive(std::string_view bytes);
  void ended(const Result<>& outcome);
  void hold_client() DIBS_REQUIRES(mutex_);
  std::shared_ptr<StreamInput> stop();

  StreamHost host_;
  std::string sandbox_;
  int port_;
  Client client_;
  Mutex mutex_;
  std::shared_ptr<StreamInput> stream_ DIBS_GUARDED_BY(mutex_);
  std::string early_ DIBS_GUARDED_BY(mutex_);  // came before the connection
  bool early_end_ DIBS_GUARDED_BY(mutex_) = false;
  bool client_held_ DIBS_GUARDED_BY(mutex_) = false;
  bool stream_held_ DIBS_GUARDED_BY(mutex_) = false;
  bool over_ DIBS_GUARDED_BY(mutex_) = false;
  bool told_ DIBS_GUARDED_BY(mutex_) = false;
};

}  // namespace dibs::node
