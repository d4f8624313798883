#include "cluster/nodes.h"

#include <algorithm>

#include "base/ipv4.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "client/informer.h"
#include "dns/cluster_dns.h"
#include "drivers/drivers.h"
#include "node/agent.h"
#include "node/pods/container_config_dns.h"
#include "proxy/policy_keeper.h"
#include "proxy/proxy.h"
#include "rpc/memory_network.h"

namespace dibs::cluster {
namespace {

const client::Gvr kServices{"", "v1", "services"};

/// The way of a driver: says on which node it is, as the token of its pod there would.
class OnNode final : public client::Transport {
 public:
  OnNode(std::unique_ptr<client::Transport> inner, std::string node)
      : inner_(std::move(inner)), node_(std::move(node)) {}

  Result<client::Response> send(client::Request request) override {
    return inner_->send(signed_by_node(std::move(request)));
  }
  void send_async(client::Request request,
                  std::function<void(Result<client::Response>)> done) override {
    inner_->send_async(signed_by_node(std::move(request)), std::move(done));
  }
  std::unique_ptr<client::TransportStream> open_stream(client::Request request,
                                                       client::StreamHandlers handlers) override {
    return inner_->open_stream(signed_by_node(std::move(request)), std::move(handlers));
  }
  bool protects_allocations() const override { return inner_->protects_allocations(); }
  json::Pool& trees() override { return inner_->trees(); }

 private:
  client::Request signed_by_node(client::Request request) const {
    request.headers.set("X-Remote-Extra-Authentication.kubernetes.io%2fnode-name", node_);
    return request;
  }

  std::unique_ptr<client::Transport> inner_;
  const std::string node_;
};

}  // namespace

unsigned NodesOptions::count() const {
  unsigned out = 0;
  for (const NodeGroup& group : groups) out += group.count;
  return out;
}

std::vector<std::string> NodesOptions::names() const {
  std::vector<std::string> out;
  out.reserve(count());
  for (const NodeGroup& group : groups) {
    for (unsigned i = 0; i < group.count; ++i) out.push_back(cat(group.prefix, i));
  }
  return out;
}

std::vector<std::string> NodesOptions::drivers() const {
  std::vector<std::string> out;
  for (const NodeGroup& group : groups) {
    for (const std::string& name : group.drivers) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
    }
  }
  return out;
}

unsigned NodesOptions::count_with(const std::string& driver) const {
  unsigned out = 0;
  for (const NodeGroup& group : groups) {
    const auto found = std::find(group.drivers.begin(), group.drivers.end(), driver);
    if (found != group.drivers.end()) out += group.count;
  }
  return out;
}

std::string NodesOptions::dns_address() const {
  if (!machine) return "";
  const auto services = Ipv4Range::parse(machine->services);
  return services ? services->address(kDnsServiceIndex) : "";
}

server::DriverAccount dns_account() {
  const auto may_follow = [](const char* group, json::Value resources) {
    return json::Value::object({{"apiGroups", json::Value::array({group})},
                                {"resources", std::move(resources)},
                                {"verbs", json::Value::array({"list", "watch"})}});
  };
  return {
      "dibs-dns", "",
      json::Value::array({may_follow("", json::Value::array({"namespaces", "services"})),
                          may_follow("discovery.k8s.io", json::Value::array({"endpointslices"}))})};
}

client::InProcessIdentity account_identity(const std::string& name) {
  return {cat("system:serviceaccount:kube-system:", name),
          {"system:serviceaccounts", "system:serviceaccounts:kube-system"}};
}

std::string driver_account(std::string_view name) { return cat("dibs-driver-", name); }
std::string cluster_account(std::string_view name) {
  return cat("dibs-driver-", name, "-controller");
}

Result<std::vector<server::DriverAccount>> driver_accounts(const std::vector<std::string>& names,
                                                           std::string_view release) {
  std::vector<server::DriverAccount> out;
  for (const std::string& name : names) {
    const auto* kind = find_named(drivers::driver_kinds(), name);
    if (kind == nullptr) {
      return Error::bad_request(
          cat("--drivers ", quoted(name), ": must be ", any_name_of(drivers::driver_kinds())));
    }
    if (release == "1.27" && kind->cluster == nullptr) {
      return Error::bad_request(cat("--drivers ", name,
                                    ": in release 1.27 drivers allocate claims themselves, which "
                                    "this one cannot; net and examples/cats can"));
    }
    out.push_back({driver_account(name), std::string(kind->driver)});
    if (kind->cluster == nullptr) continue;
    out.back().rules = kind->cluster->node_rules();
    out.push_back({cluster_account(name), "", kind->cluster->rules()});
  }
  return out;
}

struct Nodes::State {
  State(NodesOptions how, const server::Options& of_server, const World& world, Connect way)
      : options(std::move(how)),
        server(of_server),
        runtime(world.machines),
        files(world.files),
        connect(std::move(way)) {}

  struct Driver {
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
    driver::Running running;
  };
  struct Node {
    std::unique_ptr<metrics::Registry> metrics;
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
    std::unique_ptr<node::Agent> agent;
    std::vector<Driver> drivers;
  };

  const NodesOptions options;
  const drivers::Tuning untuned;
  const server::Options server;
  runtime::Runtime& runtime;
  runtime::Files& files;
  const Connect connect;
  std::unique_ptr<client::Transport> shared_transport;  // of what the nodes of a fleet share
  std::unique_ptr<client::Client> shared_client;
  std::unique_ptr<node::SharedPods> pods;
  std::unique_ptr<client::Informer> services;
  std::unique_ptr<client::Transport> dns_transport;
  std::unique_ptr<client::Client> dns_client;
  std::unique_ptr<dns::ClusterDns> dns;  // where this machine has containers
  rpc::MemoryNetwork network;
  std::atomic<std::uint32_t> sim_addresses{0};
  std::vector<Driver> cluster_halves;
  std::vector<Node> nodes;
  std::string explanation;
  std::unique_ptr<client::Transport> proxy_transport;
  std::unique_ptr<client::Client> proxy_client;
  std::unique_ptr<proxy::Applier> applier;
  std::unique_ptr<proxy::Proxy> proxy;  // one for all nodes: they share a machine
  std::unique_ptr<proxy::Applier> policy_applier;
  std::unique_ptr<proxy::PolicyKeeper> policies;

  Result<> start_dns() {
    dns_transport = connect(account_identity(dns_account().account));
    dns_client = std::make_unique<client::Client>(*dns_transport);
    dns::ClusterDnsOptions how;
    how.domain = options.cluster_domain;
    how.host = options.machine->gateway;
    how.service_address = options.dns_address();
    how.services = options.machine->services;
    how.pods = options.machine->pods;
    how.servers = [this] { return node::host_name_servers(files); };
    DIBS_TRY(dns, dns::ClusterDns::start(std::move(how), *dns_client, runtime));
    return success();
  }

  Result<> start() {
    if (options.machine) DIBS_CHECK(start_dns());
    if (options.fleet) {
      shared_transport = connect({std::string(server::kFleetUser), {}});
      shared_client = std::make_unique<client::Client>(*shared_transport);
      pods = std::make_unique<node::SharedPods>(*shared_client, runtime);
      client::InformerOptions how;
      how.gvr = kServices;
      services = std::make_unique<client::Informer>(*shared_client, runtime, std::move(how));
      services->start();
    }
    if (options.machine) DIBS_CHECK(start_proxy());
    for (const auto& name : options.drivers()) DIBS_CHECK(start_cluster_half(name));
    nodes.reserve(options.count());
    for (const NodeGroup& group : options.groups) {
      for (unsigned i = 0; i < group.count; ++i) {
        DIBS_CHECK(start_node(cat(group.prefix, i), group));
        if (options.tell) options.tell(static_cast<unsigned>(nodes.size()));
      }
    }
    return success();
  }

  /// Before the first pod: its packets to Services must not leave the machine.
  Result<> start_proxy() {
    const node::MachineRanges& machine = *options.machine;
    proxy::ProxyOptions how;
    how.nodes = options.names();
    how.bridge = machine.bridge;
    how.pods = machine.pods;
    how.services = machine.services;
    how.taken = [folder = options.folder](const Ipv4Range& range) {
      return node::other_owner_of(node::network_of_folder({.name = folder}), range);
    };
    how.dns_address = options.dns_address();
    how.local_dns = dns->address();
    proxy::PolicyOptions kept;
    kept.table = node::policy_table(machine.bridge);
    kept.bridge = machine.bridge;
    kept.nodes = how.nodes;
    kept.dns_address = how.dns_address;
    kept.local_dns = how.local_dns;
    proxy_transport = connect({"system:kube-proxy", {}});
    proxy_client = std::make_unique<client::Client>(*proxy_transport);
    applier = proxy::make_machine_applier();
    DIBS_TRY(proxy, proxy::Proxy::start(std::move(how), *proxy_client, runtime, *applier));
    policy_applier = proxy::make_machine_applier();
    policies = std::make_unique<proxy::PolicyKeeper>(std::move(kept), *proxy_client, runtime,
                                                     *policy_applier);
    policies->start();
    return success();
  }

  node::AgentOptions agent_options(const std::string& name, const NodeGroup& group,
                                   const std::string& root) const {
    node::AgentOptions out;
    out.name = name;
    out.capacity = group.capacity;
    out.agent = options.agent;
    out.root = root;
    out.root_flag = "--data-dir";
    out.runtime = options.fleet && options.runtime == "auto" ? "sim" : options.runtime;
    out.images = options.images;
    out.image_aliases = options.image_aliases;
    out.insecure_registries = options.insecure_registries;
    out.disk = options.disk;
    if (options.machine) out.cluster_dns = {options.dns_address()};
    out.cluster_domain = options.cluster_domain;
    out.network = options.folder;
    out.own_cni_plugins = options.own_cni_plugins;
    out.network_namespaces = options.network_namespaces;
    out.allowed_unsafe_sysctls = options.allowed_unsafe_sysctls;
    out.cdi_newest = options.cdi_newest;
    out.host = options.host;
    out.node_ip = options.node_ip;
    out.port = options.fleet ? -1 : 0;
    out.tls.client_ca_pem = server.ca_pem;
    out.release = server.release;
    out.feature_gates = server.feature_gates;
    if (!server.release.empty()) out.kubelet_version = cat("v", server.release, ".0");
    if (options.fleet) out.concurrency = 2;
    return out;
  }

  Result<> start_node(const std::string& name, const NodeGroup& group) {
    const std::string root = cat(options.folder, "/nodes/", name);
    Node& node = nodes.emplace_back();
    node.transport = connect({cat("system:node:", name), {"system:nodes", "system:authenticated"}});
    node.client = std::make_unique<client::Client>(*node.transport);
    node::AgentOptions how = agent_options(name, group, root);
    if (options.fleet) {
      how.drivers = &network;
    } else {
      node.metrics = std::make_unique<metrics::Registry>();
      how.metrics = node.metrics.get();
    }
    how.drivers_may_start = [this, &node, &group, name, root] {
      start_drivers(node, group, name, root);
    };
    node::Shared shared{pods.get(), services.get(), &sim_addresses};
    DIBS_TRY(node.agent, node::Agent::open(std::move(how), *node.client, runtime, files, shared));
    if (explanation.empty()) {
      explanation = options.fleet && options.runtime == "auto"
                        ? cat("sim: simulated containers, since there are more than ",
                              kMostMachines, " nodes")
                        : node.agent->runtime_explanation();
    }
    return node.agent->start();
  }

  const drivers::Tuning& tuning_of(const NodeGroup& group, const std::string& driver) const {
    const auto found = group.tuning.find(driver);
    return found != group.tuning.end() ? found->second : untuned;
  }

  /// Groups that have the driver agree on what concerns the whole cluster.
  const drivers::Tuning& cluster_tuning_of(const std::string& driver) const {
    for (const NodeGroup& group : options.groups) {
      if (group.tuning.contains(driver)) return tuning_of(group, driver);
    }
    return untuned;
  }

  Result<> start_cluster_half(const std::string& name) {
    const auto* half = find_named(drivers::driver_kinds(), name)->cluster;
    if (half == nullptr) return success();
    Driver& made = cluster_halves.emplace_back();
    made.transport = connect(account_identity(cluster_account(name)));
    made.client = std::make_unique<client::Client>(*made.transport);
    DIBS_TRY(made.running,
             half->start({*made.client, runtime, files}, options.elect, cluster_tuning_of(name)));
    return success();
  }

  void start_drivers(Node& node, const NodeGroup& group, const std::string& name,
                     const std::string& root) {
    for (const auto& driver : group.drivers) {
      if (const auto started = start_driver(node, driver, name, root, tuning_of(group, driver));
          !started) {
        log::error("driver cannot be started",
                   {{"node", name}, {"driver", driver}, {"error", started.error()}});
      }
    }
  }

  Result<> start_driver(Node& node, const std::string& driver, const std::string& name,
                        const std::string& root, const drivers::Tuning& tuning) {
    Driver& made = node.drivers.emplace_back();
    made.transport =
        std::make_unique<OnNode>(connect(account_identity(driver_account(driver))), name);
    made.client = std::make_unique<client::Client>(*made.transport);
    driver::Environment environment{*made.client, runtime, files};
    if (options.fleet) {
      environment.serve = [this](const std::string& path,
                                 rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
        return network.serve(path, std::move(methods));
      };
    }
    const auto* kind = find_named(drivers::driver_kinds(), driver);
    const drivers::Place place{
        name, root, server.release == "1.30", server.minor() <= 31, server.minor() <= 30, &tuning};
    DIBS_TRY(made.running, kind->start(std::move(environment), place));
    return success();
  }

  void stop() {
    for (auto& node : nodes) {
      for (auto& driver : node.drivers) {
        if (driver.running.plugin != nullptr) driver.running.plugin->end_waiting();
      }
    }
    // Drivers last: agents may still talk to them.
    for (auto& node : nodes) {
      if (node.agent) node.agent->stop();
    }
    // What a driver has asked may still be answered: its way there stays.
    for (auto& node : nodes) {
      for (auto& driver : node.drivers) driver.running = {};
    }
    for (auto& half : cluster_halves) half.running = {};
    if (proxy) proxy->stop();
    if (policies) policies->stop();
    if (pods) pods->stop();
    if (services) services->stop();
    if (dns) dns->stop();
  }
};

Nodes::Nodes(std::unique_ptr<State> state) : state_(std::move(state)) {}
Nodes::~Nodes() { stop(); }

Result<std::unique_ptr<Nodes>> Nodes::start(NodesOptions options, const server::Options& server,
                                            const World& world, Connect connect) {
  auto state = std::make_unique<State>(std::move(options), server, world, std::move(connect));
  const auto started = state->start();
  std::unique_ptr<Nodes> nodes(new Nodes(std::move(state)));
  if (!started) return started.error();
  return nodes;
}

void Nodes::stop() { state_->stop(); }
const std::string& Nodes::explanation() const { return state_->explanation; }

}  // namespace dibs::cluster
