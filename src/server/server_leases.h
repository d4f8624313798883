#pragma once
// Which servers of the cluster live: what the `kubernetes` Service leads to.
//
// On a store that several servers share, each keeps a key of its address, as a kube-apiserver does:
// /registry/masterleases/ADDRESS, written again every 10 s, which counts for 15 s after the last
// time. "After" is by each one's own clock, from when it saw the change. Each makes Endpoints and
// EndpointSlice of the Service name all that live, so that a dead one is named for half a minute
// at most. An address that is this machine's alone, of loopback or of the bridge that its pods are
// at, is no way for others, so that such a server has no such key: it names itself when it begins,
// where nobody else is named. Of several such servers the Service leads to the one that began last.
// On a store with one owner the Service leads to that one.
//
// A server whose authority is another than that of those that live does not begin: clients would
// be strangers to every other server.

#include <memory>

#include "base/result.h"
#include "runtime/runtime.h"
#include "server/options.h"
#include "server/resource.h"
#include "store/store.h"

namespace dibs::server {

/// host:port that the Service leads to.
std::string service_place(const Options& options);

class ServerLeases {
 public:
  /// All must outlive it.
  ServerLeases(runtime::Runtime& runtime, store::Store& store, ResourceTable& resources,
               const Options& options);
  ~ServerLeases();
  ServerLeases(const ServerLeases&) = delete;
  ServerLeases& operator=(const ServerLeases&) = delete;

  /// Tells of this server, and keeps telling until stop(). Errors: of the store; conflict, with the
  /// remedy, beside a server of another authority.
  Result<> start();
  /// Takes this server out, where others are left. Does not wait.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace dibs::server
