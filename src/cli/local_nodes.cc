#include "cli/local_nodes.h"

#include "base/log.h"
#include "base/metrics.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/transport.h"
#include "drivers/gpu/gpu_driver.h"
#include "node/agent.h"
#include "rpc/memory_network.h"

namespace dibs::cli {
namespace {

// More than this are no machines to look into, but a load to look at.
constexpr unsigned kFleet = 16;

const client::Gvr kServices{"", "v1", "services"};

}  // namespace

struct LocalNodes::State {
  State(LocalNodesOptions how, runtime::Runtime& world, runtime::Files& disk)
      : options(std::move(how)), runtime(world), files(disk) {}

  struct Node {
    std::unique_ptr<metrics::Registry> metrics;
    std::unique_ptr<client::Transport> transport;
    std::unique_ptr<client::Client> client;
    std::unique_ptr<node::Agent> agent;
    std::vector<std::unique_ptr<drivers::GpuDriver>> drivers;
  };

  const LocalNodesOptions options;
  runtime::Runtime& runtime;
  runtime::Files& files;
  std::unique_ptr<client::Transport> own_transport;  // of drivers and of what nodes share
  std::unique_ptr<client::Client> own_client;
  std::unique_ptr<node::SharedPods> pods;
  std::unique_ptr<client::Informer> services;
  rpc::MemoryNetwork network;
  std::atomic<std::uint32_t> sim_addresses{0};
  std::vector<Node> nodes;
  std::string explanation;

  bool is_fleet() const { return options.nodes > kFleet; }

  std::unique_ptr<client::Transport> connect(std::string user, std::string group) {
    client::InProcessOptions in_process;
    in_process.identity = {std::move(user), {std::move(group), "system:authenticated"}};
    in_process.trees = options.trees;
    return client::make_in_process_transport(options.server, runtime, in_process);
  }

  Result<> start() {
    for (const auto& driver : options.drivers) {
      if (driver != "gpu" && driver != "net" && driver != "cpu") {
        return Error::bad_request(cat("--drivers ", quoted(driver), ": must be gpu, net or cpu"));
      }
    }
    own_transport = connect("system:dibs:nodes", "system:masters");
    own_client = std::make_unique<client::Client>(*own_transport);
    if (is_fleet()) {
      pods = std::make_unique<node::SharedPods>(*own_client, runtime);
      client::InformerOptions how;
      how.gvr = kServices;
      services = std::make_unique<client::Informer>(*own_client, runtime, std::move(how));
      services->start();
    }
    nodes.reserve(options.nodes);
    for (unsigned i = 0; i < options.nodes; ++i) DIBS_CHECK(start_node(cat("node-", i)));
    return success();
  }

  node::AgentOptions agent_options(const std::string& name, const std::string& root) const {
    node::AgentOptions out;
    out.name = name;
    out.root = root;
    out.root_flag = "--data-dir";
    out.runtime = is_fleet() && options.runtime == "auto" ? "sim" : options.runtime;
    out.images = options.images;
    out.network = "dibs";
    out.cdi_directories = {"/etc/cdi", cat(root, "/cdi")};
    out.host = "";
    out.port = is_fleet() ? -1 : 0;
    out.tls.client_ca_pem = options.client_ca_pem;
    out.release = options.release;
    out.feature_gates = options.feature_gates;
    if (!options.release.empty()) out.kubelet_version = cat("v", options.release, ".0");
    if (is_fleet()) out.concurrency = 2;
    return out;
  }

  Result<> start_node(const std::string& name) {
    const std::string root = cat(options.folder, "/nodes/", name);
    Node& node = nodes.emplace_back();
    node.transport = connect(cat("system:node:", name), "system:nodes");
    node.client = std::make_unique<client::Client>(*node.transport);
    node::AgentOptions how = agent_options(name, root);
    if (is_fleet()) {
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
    drivers::GpuDriverOptions how = drivers::options_for_node(name, root);
    how.profile = driver;
    if (driver != "gpu") how.extended_resource.clear();
    driver::Environment environment{*own_client, runtime, files};
    if (is_fleet()) {
      environment.serve = [this](const std::string& path,
                                 rpc::Methods methods) -> Result<std::unique_ptr<rpc::Server>> {
        return network.serve(path, std::move(methods));
      };
    }
    DIBS_TRY(auto started, drivers::start_gpu_driver(environment, how));
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

LocalNodes::LocalNodes(std::unique_ptr<State> state) : state_(std::move(state)) {}
LocalNodes::~LocalNodes() { stop(); }

Result<std::unique_ptr<LocalNodes>> LocalNodes::start(LocalNodesOptions options,
                                                      runtime::Runtime& runtime,
                                                      runtime::Files& files) {
  auto state = std::make_unique<State>(std::move(options), runtime, files);
  const auto started = state->start();
  std::unique_ptr<LocalNodes> nodes(new LocalNodes(std::move(state)));
  if (!started) return started.error();
  return nodes;
}

void LocalNodes::stop() { state_->stop(); }
const std::string& LocalNodes::explanation() const { return state_->explanation; }

}  // namespace dibs::cli
