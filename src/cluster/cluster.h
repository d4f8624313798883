#pragma once
// A whole cluster in one process: API server, controllers, scheduler, nodes with their drivers.
//
// The parts meet through the API server alone. What is decided here is which of them there are, as
// whom each reaches the server, and the order in which they begin and end, which is written down
// nowhere else. None of them is more than its role allows: controllers, scheduler and nodes are who
// they are in Kubernetes, with the roles that it has for them.
//
// Beginning:
//   1. compactor     history is bounded from the first write on
//   2. port          the server's first objects name it (front_door.h)
//   3. API server    all others talk to it
//   4. controllers   pods need what they make: accounts, claims, nodes without taints
//   5. scheduler
//   6. nodes         each starts its drivers when these can register
//
// End:
//   1. nodes, scheduler, controllers stop: their last writes still find a server, and they give
//      their leases back. Nodes first, since controllers must not take silence for a death.
//      Containers go on
//   2. the server closes: watches end, new requests are refused; so
//   3. the port can drain: what is under way is answered
//   4. nodes, controllers, scheduler and compactor are freed: they use runtime and store
//   5. the store closes: it calls back for every write that nobody waits for
//   6. the world finishes: those callbacks, and answers on their way to clients, are posted tasks
//   7. clients, port, server and store are freed: nobody calls them any more
//
// On a store that other processes use as well (Store::shared) controllers and scheduler run while
// this process leads, each by a Lease of its own; so do halves of drivers for the whole cluster.
//
// The real runtime, SQLite and HTTP, and one thread under virtual time with a store in memory and
// no socket, are the same to it.

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "alloc/features.h"
#include "base/mutex.h"
#include "base/result.h"
#include "client/client.h"
#include "client/leader_election.h"
#include "client/transport.h"
#include "cluster/front_door.h"
#include "cluster/nodes.h"
#include "cluster/world.h"
#include "controllers/controllers.h"
#include "net/http_server.h"
#include "net/x509.h"
#include "scheduler/scheduler.h"
#include "server/api_server.h"
#include "store/compactor.h"
#include "store/store.h"

namespace dibs::cluster {

/// A part that is not set is not there.
struct Options {
  server::Options server = {};
  /// Not set: reached from inside the process only. Set, it says what server.advertise is.
  std::optional<net::ServerOptions> port = {};
  /// The address by which others reach the port, with its number; "": where it listens.
  std::string advertise_host = {};
  /// The address of this machine by which its pods reach the port; "": there is none.
  std::string pods_host = {};
  /// That the server is one of ours, its CA, release, gates and metrics are filled in.
  std::optional<controllers::ControllersOptions> controllers = {};
  std::optional<scheduler::Options> scheduler = {};
  std::optional<NodesOptions> nodes = {};
};

class Cluster {
 public:
  /// Errors: of an option that cannot be used, or of the store or port.
  static Result<std::unique_ptr<Cluster>> start(World world, std::unique_ptr<store::Store> store,
                                                Options options);
  /// As stop().
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  /// It will be stopped soon: /readyz says so, and clients are let go, one by one.
  void retire();
  /// Ends everything, up to step 6: nothing of it runs any more, and connect()'s transports are of
  /// no use.
  void stop();

  /// Controllers and scheduler have read everything, where they run.
  bool ready() const;

  /// A way to the server without a socket. It must not be used once stop() has returned.
  std::unique_ptr<client::Transport> connect(const client::InProcessIdentity& identity = {});
  /// The same, with answers handed over on threads of `runtime`.
  std::unique_ptr<client::Transport> connect(const client::InProcessIdentity& identity,
                                             runtime::Runtime& runtime);
  /// As system:admin, who may do everything. For who owns the cluster: none of its parts uses it.
  client::Client& client();
  /// As whom its parts reach the server.
  std::vector<client::InProcessIdentity> parts() const;
  /// For connections that begin later: what the port shows clients and the server shows nodes.
  /// Errors: of PEM that cannot be used.
  Result<> renew(const net::TlsServerOptions& port, const net::Credential& node_client,
                 const net::Credential& front_proxy);
  /// Who may come in by which tokens from now on.
  void configure(const server::auth::AuthenticationConfiguration& configuration) {
    server_->configure(configuration);
  }
  runtime::Runtime& runtime() { return world_.runtime; }
  /// Null where there are none.
  controllers::Controllers* controllers() { return controllers_.get(); }
  FrontDoor* port() { return port_.get(); }
  /// HOST:PORT that others are told; "" without a port.
  const std::string& advertised() const { return advertised_; }
  Nodes* nodes() { return nodes_.get(); }
  /// Of the allocator, as release and feature gates have it.
  const alloc::Features& features() const { return features_; }

 private:
  struct Caller {
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
  };

  explicit Cluster(World world, std::unique_ptr<store::Store> store);
  Result<> open(Options options);
  Result<> open_server(Options& options);
  std::unique_ptr<client::Transport> connect_part(const client::InProcessIdentity& identity,
                                                  runtime::Runtime& runtime);
  client::Client& add_caller(std::unique_ptr<client::Transport> transport);
  void start_controllers(const server::Options& server, controllers::ControllersOptions options);
  void start_scheduler(scheduler::Options options);
  /// Starts a part; on a store that others use as well, while this process leads.
  using Elector = std::unique_ptr<client::LeaderElector>;
  template <typename Part>
  Elector start_part(Part& part, client::Client& client, client::LeaderElectionOptions election);
  template <typename Part>
  static Result<> healthy(const std::atomic<Part*>& part);

  World world_;
  alloc::Features features_;
  bool stopped_ = false;
  std::string advertised_;
  // Freed from the last to the first.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<server::ApiServer> server_;
  std::unique_ptr<FrontDoor> port_;
  std::once_flag admin_made_;
  Caller admin_;
  std::vector<Caller> callers_;
  mutable Mutex parts_mutex_;
  std::vector<client::InProcessIdentity> parts_ DIBS_GUARDED_BY(parts_mutex_);
  std::unique_ptr<store::Compactor> compactor_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  // The same for requests, which may come before they are there.
  std::atomic<controllers::Controllers*> controllers_up_{nullptr};
  std::atomic<scheduler::Scheduler*> scheduler_up_{nullptr};
  Elector controllers_elector_;  // null: they run always
  Elector scheduler_elector_;
  std::unique_ptr<Nodes> nodes_;
};

}  // namespace dibs::cluster
