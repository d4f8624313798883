#include "cluster/cluster.h"

#include <utility>

#include "api/schema/features.h"
#include "base/strings.h"
#include "client/resource_versions.h"
#include "cluster/node_shapes.h"
#include "runtime/process_metrics.h"

namespace dibs::cluster {

namespace {

constexpr const char* kControllersLease = "kube-controller-manager";
constexpr const char* kSchedulerLease = "kube-scheduler";

/// Agents listen where the server does, unless told otherwise, and the server reaches them there.
void place_agents(Options& options) {
  NodesOptions& nodes = *options.nodes;
  if (nodes.fleet) return;
  if (nodes.host.empty()) nodes.host = options.port ? options.port->host : "127.0.0.1";
  const std::string& host = nodes.host;
  options.server.own_nodes_host = host == "0.0.0.0" || host.empty() ? "127.0.0.1"
                                  : host == "::"                    ? "::1"
                                                                    : host;
  options.server.own_nodes = nodes.names();
}

}  // namespace

Cluster::Cluster(World world, std::unique_ptr<store::Store> store)
    : world_(std::move(world)), store_(std::move(store)) {}

Cluster::~Cluster() { stop(); }

Result<std::unique_ptr<Cluster>> Cluster::start(World world, std::unique_ptr<store::Store> store,
                                                Options options) {
  auto cluster = std::unique_ptr<Cluster>(new Cluster(std::move(world), std::move(store)));
  DIBS_CHECK(cluster->open(std::move(options)));
  return cluster;
}

Result<> Cluster::open(Options options) {
  compactor_ = std::make_unique<store::Compactor>(*store_, world_.runtime.timers);
  if (options.controllers) options.server.accounts = controllers::controller_accounts();
  if (options.nodes) {
    options.server.fleet = options.nodes->fleet;
    options.server.local_path_class = options.controllers.has_value();
    options.nodes->elect = store_->shared();
    DIBS_TRY(options.server.drivers,
             driver_accounts(options.nodes->drivers(), options.server.release));
    if (options.nodes->machine) {
      options.server.drivers.push_back(dns_account());
      options.server.cluster_dns = options.nodes->dns_address();
    }
    place_agents(options);
  }
  // Others keep leases.
  for (server::Component& one : options.server.components) {
    if (store_->shared()) break;
    if (one.lease == kControllersLease && options.controllers)
      one.health = [this] { return healthy(controllers_up_); };
    if (one.lease == kSchedulerLease && options.scheduler)
      one.health = [this] { return healthy(scheduler_up_); };
  }
  DIBS_CHECK(open_server(options));
  DIBS_TRY(const api::Features gates,
           api::Features::parse(options.server.answers_as(), options.server.feature_gates));
  features_ = alloc::Features::from_gates(gates);
  if (options.controllers) controllers::follow_gates(gates, *options.controllers);
  if (options.controllers) start_controllers(options.server, std::move(*options.controllers));
  if (options.scheduler) {
    scheduler::follow_gates(gates, *options.scheduler);
    DIBS_TRY(options.scheduler->extender_ways,
             scheduler::connect_extenders(options.scheduler->configuration.extenders, world_.files,
                                          world_.control));
    start_scheduler(std::move(*options.scheduler));
  }
  if (options.nodes) {
    DIBS_CHECK(shape_nodes(client(), *options.nodes));
    DIBS_TRY(nodes_, Nodes::start(std::move(*options.nodes), options.server, world_,
                                  [this](const client::InProcessIdentity& who) {
                                    return connect_part(who, world_.machines);
                                  }));
  }
  return success();
}

Result<> Cluster::open_server(Options& options) {
  if (options.port) {
    DIBS_TRY(port_, FrontDoor::open(std::move(*options.port)));
    advertised_ = port_->address_at(options.advertise_host);
    options.server.advertise = advertised_;
    if (!options.pods_host.empty())
      options.server.pods_place = port_->address_at(options.pods_host);
  }
  DIBS_TRY(server_, server::ApiServer::open(world_.runtime, *store_, options.server));
  if (port_) {
    runtime::tell_of_process(server_->metrics());
    port_->admit(*server_);
  }
  return success();
}

client::Client& Cluster::client() {
  std::call_once(admin_made_, [this] {
    admin_.transport = connect();
    admin_.client = std::make_unique<client::Client>(*admin_.transport);
  });
  return *admin_.client;
}

std::vector<client::InProcessIdentity> Cluster::parts() const {
  const MutexLock lock(parts_mutex_);
  return parts_;
}

std::unique_ptr<client::Transport> Cluster::connect_part(const client::InProcessIdentity& identity,
                                                         runtime::Runtime& runtime) {
  {
    const MutexLock lock(parts_mutex_);
    parts_.push_back(identity);
  }
  return connect(identity, runtime);
}

Result<> Cluster::renew(const net::TlsServerOptions& port, const net::Credential& node_client,
                        const net::Credential& front_proxy) {
  if (port_) DIBS_CHECK(port_->set_tls(port));
  server_->set_front_proxy(front_proxy.certificate_pem, front_proxy.key_pem);
  DIBS_CHECK(server_->set_trust(port.client_ca_pem, port.front_proxy_ca_pem));
  return server_->set_node_client(node_client.certificate_pem, node_client.key_pem);
}

std::unique_ptr<client::Transport> Cluster::connect(const client::InProcessIdentity& identity) {
  return connect(identity, world_.runtime);
}

std::unique_ptr<client::Transport> Cluster::connect(const client::InProcessIdentity& identity,
                                                    runtime::Runtime& runtime) {
  client::InProcessOptions options;
  options.identity = identity;
  options.trees = server_->trees();
  options.pump = world_.pump;
  return client::make_in_process_transport(server_->handler(), runtime, options);
}

client::Client& Cluster::add_caller(std::unique_ptr<client::Transport> transport) {
  Caller& caller = callers_.emplace_back();
  caller.transport = std::move(transport);
  caller.client = std::make_unique<client::Client>(*caller.transport);
  return *caller.client;
}

void Cluster::start_controllers(const server::Options& server,
                                controllers::ControllersOptions options) {
  options.ca_pem = server.ca_pem;
  options.account_key_pem = server.account_key_pem;
  options.metrics = &server_->metrics();
  auto& client = add_caller(connect_part({"system:kube-controller-manager", {}}, world_.control));
  for (const std::string& account : controllers::controller_accounts()) {
    options.clients[account] = &add_caller(connect_part(account_identity(account), world_.control));
  }
  controllers_ =
      std::make_unique<controllers::Controllers>(client, world_.control, std::move(options));
  controllers_up_ = controllers_.get();
  controllers_elector_ = start_part(*controllers_, client, {.name = kControllersLease});
}

void Cluster::start_scheduler(scheduler::Options options) {
  options.metrics = &server_->metrics();
  // It is written against v1 of the device API; an older release serves others.
  auto& client = add_caller(
      client::make_resource_transport(connect_part({"system:kube-scheduler", {}}, world_.control)));
  scheduler_ = std::make_unique<scheduler::Scheduler>(client, world_.control, options);
  scheduler_up_ = scheduler_.get();
  if (!options.configuration.leader_elect) return scheduler_->start();
  scheduler_elector_ = start_part(*scheduler_, client, options.configuration.election);
}

template <typename Part>
Cluster::Elector Cluster::start_part(Part& part, client::Client& client,
                                     client::LeaderElectionOptions election) {
  if (!store_->shared()) {
    part.start();
    return nullptr;
  }
  election.identity =
      cat(port_ ? advertised_ : "dibs", "_", runtime::make_uuid(world_.control.random));
  election.metrics = &server_->metrics();
  auto elector = std::make_unique<client::LeaderElector>(
      client, world_.control, std::move(election), client::while_leading(part));
  elector->start();
  return elector;
}

bool Cluster::ready() const {
  const auto settled = [](const auto& part, const Elector& elector) {
    if (elector && !elector->leading()) return !elector->leader().empty();
    return !part || part->ready();
  };
  return settled(controllers_, controllers_elector_) && settled(scheduler_, scheduler_elector_);
}

template <typename Part>
Result<> Cluster::healthy(const std::atomic<Part*>& part) {
  const Part* there = part;
  if (there == nullptr) return Error::unavailable("it has not begun yet");
  if (!there->ready()) return Error::unavailable("it has not read everything yet");
  return success();
}

void Cluster::retire() {
  server_->retire();
  if (port_) port_->retire();
}

void Cluster::stop() {
  if (std::exchange(stopped_, true)) return;
  if (nodes_) nodes_->stop();
  if (scheduler_elector_) scheduler_elector_->stop();
  if (scheduler_) scheduler_->stop();
  if (controllers_elector_) controllers_elector_->stop();
  if (controllers_) controllers_->stop();
  if (server_) server_->close();
  if (port_) port_->drain();
  nodes_.reset();
  controllers_elector_.reset();
  scheduler_elector_.reset();
  controllers_.reset();
  scheduler_.reset();
  compactor_.reset();
  store_->close();
  world_.finish();
}

}  // namespace dibs::cluster
