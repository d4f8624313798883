#include "cluster/nodes.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "client/informer.h"
#include "drivers/drivers.h"
#include "node/agent.h"
#include "rpc/memory_network.h"

namespace dibs::cluster {
namespace {

const client::Gvr kServices{"", "v1", "services"};

}  // namespace

struct Nodes::State {
  State(NodesOptions how, const server::Options& of_server, const World& world, Connect way)
      : options(std::move(how)),
        server(of_server),
        runtime(world.runtime),
        files(world.files),
        connect(std::move(way)) {}

  struct Node {
    std::unique_ptr<metrics::Registry> metrics;
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
    std::unique_ptr<node::Agent> agent;
    std::vector<driver::Running> drivers;
  };

  const NodesOptions options;
  const server::Options server;
  runtime::Runtime& runtime;
  runtime::Files& files;
  const Connect connect;
  std::unique_ptr<client::Transport> own_transport;  // of drivers and of what nodes share
  std::unique_ptr<client::Client> own_client;
  std::unique_ptr<node::SharedPods> pods;
  std::unique_ptr<client::Informer> services;
  rpc::MemoryNetwork network;
  std::atomic<std::uint32_t> sim_addresses{0};
  std::vector<Node> nodes;
  std::string explanation;

  Result<> start() {
    for (const auto& driver : options.drivers) {
      if (find_named(drivers::driver_kinds(), driver) == nullptr) {
        return Error::bad_request(
            cat("--drivers ", quoted(driver), ": must be ", any_name_of(drivers::driver_kinds())));
      }
    }
    own_transport = connect({"system:dibs:nodes", {"system:masters", "system:authenticated"}});
    own_client = std::make_unique<client::Client>(*own_transport);
    if (options.fleet) {
      pods = std::make_unique<node::SharedPods>(*own_client, runtime);
      client::InformerOptions how;
      how.gvr = kServices;
      services = std::make_unique<client::Informer>(*own_client, runtime, std::move(how));
      services->start();
    }
    nodes.reserve(options.count);
    for (unsigned i = 0; i < options.count; ++i) DIBS_CHECK(start_node(cat("node-", i)));
    return success();
  }

  node::AgentOptions agent_options(const std::string& name, const std::string& root) const {
    node::AgentOptions out;
    out.name = name;
    out.root = root;
    out.root_flag = "--data-dir";
    out.runtime = options.fleet && options.runtime == "auto" ? "sim" : options.runtime;
    out.images = options.images;
    out.network = options.folder;
    out.cdi_directories = {"/etc/cdi", cat(root, "/cdi")};
    out.host = "";
    out.port = options.fleet ? -1 : 0;
    out.tls.client_ca_pem = server.ca_pem;
    out.release = server.release;
    out.feature_gates = server.feature_gates;
    if (!server.release.empty()) out.kubelet_version = cat("v", server.release, ".0");
    if (options.fleet) out.concurrency = 2;
    return out;
  }

  Result<> start_node(const std::string& name) {
    const std::string root = cat(options.folder, "/nodes/", name);
    Node& node = nodes.emplace_back();
    node.transport = connect({cat("system:node:", name), {"system:nodes", "system:authenticated"}});
    node.client = std::make_unique<client::Client>(*node.transport);
    node::AgentOptions how = agent_options(name, root);
    if (options.fleet) {
      how.drivers = &network;
    } else {
      node.metrics = std::make_unique<metrics::Registry>();
      how.metrics = node.metrics.get();
    }
    how.drivers_may_start = [this, &node, name, root] { start_drivers(node, name, root); };
    node::Shared shared{pods.get(), services.get(), &sim_addresses};
    DIBS_TRY(node.agent, node::Agent::open(std::move(how), *node.client, runtime, files, shared));
    if (explanation.empty()) explanation = node.agent->runtime_explanation();
    return node.agent->start();
  }

  void start_drivers(Node& node, const std::string& name, const std::string& root) {
    for (const auto& driver : options.drivers) {
      if (const auto started = start_driver(node, driver, name, root); !started) {
        log::error("driver cannot be started",
                   {{"node", name}, {"driver", driver}, {"error", started.error()}});
      }
    }
  }

  Result<> start_driver(Node& node, const std::string& driver, const std::string& name,
                        const std::string& root) {
    driver::Environment environment{*own_client, runtime, files};
    if (options.fleet) {
      environment.serve = [this](const std::string& path,
                                 rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
        return network.serve(path, std::move(methods));
      };
    }
    const auto* kind = find_named(drivers::driver_kinds(), driver);
    DIBS_TRY(auto started, kind->start(std::move(environment), name, root));
    node.drivers.push_back(std::move(started));
    return success();
  }

  void stop() {
    // Drivers last: agents may still talk to them.
    for (auto& node : nodes) {
      if (node.agent) node.agent->stop();
    }
    for (auto& node : nodes) node.drivers.clear();
    if (pods) pods->stop();
    if (services) services->stop();
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
