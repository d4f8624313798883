#pragma once
// The Unix socket by which the CNI plugins of a node ask for addresses (cni/local_api.h).
//
// Only root may connect: the socket has mode 0600 before anybody can find it. Requests are judged
// before the handler sees them.

#include <memory>
#include <string>

#include "base/result.h"
#include "drivers/net/cni/local_api.h"

namespace dibs::drivers::net {

/// Called from several threads at once; may block. The error's message is what the plugin prints,
/// so it stands in the pod's event.
class LocalHandler {
 public:
  virtual ~LocalHandler() = default;
  /// Addresses of one interface; the same ones when it is asked again for the same pod.
  virtual Result<NicAddresses> add(const NicRequest& request) = 0;
  /// Success too when there is nothing to give back.
  virtual Result<> del(const NicRequest& request) = 0;
  /// The interface is there.
  virtual Result<> attached(const AttachedNic& nic) = 0;
  /// For the interface's coordinator; one that knows nothing is asked in vain.
  virtual Result<CoordinatorFacts> coordinator(const NicRequest& request) {
    (void)request;
    return CoordinatorFacts{};
  }
};

class LocalService {
 public:
  /// Listens when it returns. The socket's folder is made where it is missing; one that a process
  /// left behind is replaced. `handler` must outlive it.
  static Result<std::unique_ptr<LocalService>> start(const std::string& socket,
                                                     LocalHandler& handler);
  ~LocalService();
  LocalService(const LocalService&) = delete;
  LocalService& operator=(const LocalService&) = delete;
  /// Calls in flight end first.
  void stop();

 private:
  LocalService();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dibs::drivers::net
