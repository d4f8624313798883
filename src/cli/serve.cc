#include "cli/serve.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "base/ipv4.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/check_serve.h"
#include "cli/clusters.h"
#include "cli/driver_programs.h"
#include "cli/gone_nodes.h"
#include "cli/node_names.h"
#include "cli/process.h"
#include "cli/serve_options.h"
#include "cli/starting.h"
#include "cli/up_config.h"
#include "cli/user_kubeconfig.h"
#include "cli/values.h"
#include "cluster/cluster.h"
#include "json/parse.h"
#include "node/pods/node_lease.h"
#include "node/pods/node_object.h"
#include "node/runtime/machine_network.h"
#include "runtime/files.h"
#include "server/bootstrap.h"
#include "server/credentials.h"
#include "server/service_range.h"
#include "store/stores.h"

namespace dibs::cli {
namespace {

void add_credentials(server::Options& options, const server::Credentials& credentials,
                     const ServingFiles& files) {
  options.account_key_pem = files.account_key_pem;
  options.ca_pem = files.root_ca_pem;
  options.client_ca_pem = files.client_ca_pem;
  options.front_proxies = files.proxies;
  options.proxy_client_certificate_pem = credentials.front_proxy_client.certificate_pem;
  options.proxy_client_key_pem = credentials.front_proxy_client.key_pem;
  options.node_client_certificate_pem = credentials.node_client.certificate_pem;
  options.node_client_key_pem = credentials.node_client.key_pem;
}

/// The cluster's addresses: as they have ever been, or those that this machine has left. Nothing is
/// claimed where no pod has a network here.
Result<std::optional<node::MachineRanges>> claim_addresses(const ServeFlags& flags,
                                                           const std::string& folder,
                                                           store::Store& store,
                                                           std::string& service_range) {
  DIBS_TRY(service_range, server::known_service_range(store, flags.service_range));
  const bool kept = !service_range.empty();
  if (!kept) service_range = flags.service_range;
  std::optional<node::MachineRanges> machine;
  if (has_pod_network(flags)) {
    DIBS_TRY(machine,
             node::claim_ranges(node::network_of_folder({.name = folder}), {service_range, kept}));
    DIBS_CHECK(node::make_bridge(*machine));
    service_range = machine->services;
  }
  if (service_range.empty()) service_range = kDefaultServiceRange;
  DIBS_CHECK(server::keep_service_range(store, service_range));
  return machine;
}

/// How pods of this machine reach the API: at the bridge, whose address the kubernetes Service
/// leads to unless others are told of a better one, and at the address of the nodes. Both take what
/// comes from pods, and the first what comes from this machine: whom --bind does not let in gets no
/// further by them. Gives the addresses.
std::vector<std::string> open_to_pods(cluster::Options& options,
                                      const node::MachineRanges& machine) {
  std::string& node = options.nodes->node_ip;
  if (node.empty()) node = node::machine_address();
  // Without a way out of the machine, the bridge is where a pod finds its node.
  if (node.starts_with("127.")) node = machine.gateway;
  options.pods_host = machine.gateway;
  const std::string& bound = options.port->host;
  if (bound.empty() || bound == "0.0.0.0" || bound == "::") return {machine.gateway, node};
  std::vector<net::Listen>& also = options.port->also;
  if (bound != machine.gateway) {
    also = {{machine.gateway, machine.bridge}, {machine.gateway, "lo"}};
  }
  if (node != bound && node != machine.gateway) also.push_back({node, machine.bridge});
  return {machine.gateway, node};
}

Result<store::StoreOptions> store_place(const ServeFlags& flags, const std::string& folder,
                                        const server::Options& server, runtime::Random& random) {
  store::StoreOptions place;
  place.folder = folder;
  DIBS_TRY(place.etcd, etcd_options(flags.etcd, flags.store));
  DIBS_TRY(place.at_rest, form_of_values(flags.store, flags.encryption_provider_config, place.etcd,
                                         server, random));
  return place;
}

/// The nodes are this process' from now on, unless another has them.
Result<> claim_names(cluster::NodesOptions& nodes, const store::Store& store,
                     cluster::World& world) {
  if (nodes.count() == 0) return success();
  DIBS_TRY(nodes.agent, agent_of(world.files, nodes.folder + "/nodes", world.runtime.random));
  // A store of its own has no other `dibs up`, and a restored one must not wait for its past.
  if (!store.shared()) return success();
  for (const std::string& node : nodes.names()) {
    const auto lease = [&]() -> Result<json::Value> {
      const auto record = store.get(cat("/registry/leases/", node::kNodeLeases, "/", node));
      if (!record) return Error::not_found("no lease");
      return json::parse(*record->value);
    };
    DIBS_CHECK(check_name_is_free(
        {node, nodes.agent, "--node-prefix", world.runtime.clock, wait_a_moment}, lease));
  }
  return success();
}

/// A cluster with its certificates and its kubeconfig.
class Served {
 public:
  /// `tell` hears how many nodes have started.
  static Result<std::unique_ptr<Served>> start(const ServeFlags& flags,
                                               std::function<void(unsigned)> tell) {
    auto served = std::unique_ptr<Served>(new Served());
    DIBS_CHECK(served->open(flags, std::move(tell)));
    return served;
  }
  ~Served() {
    programs_.reset();
    // Before its members go: until then the certificate may be renewed.
    if (cluster_) cluster_->stop();
  }

  /// Not ready any more, and still serving, for so long: who balances load sees it and sends
  /// clients elsewhere.
  void retire(Duration delay) {
    cluster_->retire();
    if (delay <= Duration(0)) return;
    log::info("not ready, ends later", {{"delay", format_duration(delay)}});
    std::this_thread::sleep_for(delay);
  }

  const std::string& url() const { return url_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  const std::string& folder() const { return folder_; }
  /// What to type to use it.
  std::string hint(const ServeFlags& flags) const {
    return merged_.empty() ? cat("export KUBECONFIG=", kubeconfig_)
                           : cat("kubectl --context ", context_of(flags.name));
  }

  /// Until all nodes of this process are Ready; `tell` hears how many are.
  Result<> wait_for_nodes(const std::function<void(std::size_t)>& tell) {
    const std::set<std::string_view> own(node_names_.begin(), node_names_.end());
    for (;;) {
      DIBS_TRY(const auto nodes, cluster_->client().list({"", "v1", "nodes"}, ""));
      std::size_t ready = 0;
      for (const json::Value& node : nodes.items) {
        // Other machines may have more of them.
        if (!own.contains(client::name_of(node))) continue;
        for (const json::Value& condition : node["status"]["conditions"].items()) {
          ready +=
              condition["type"].as_string() == "Ready" && condition["status"].as_string() == "True";
        }
      }
      tell(ready);
      if (ready >= own.size()) return success();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  /// What runs the containers of the nodes, and why; "" without nodes.
  std::string runtime_explanation() const {
    return cluster_->nodes() != nullptr ? cluster_->nodes()->explanation() : "";
  }

  /// Not before this process writes where they shall.
  void start_programs(const ServeFlags& flags) {
    if (flags.driver_programs.empty() || cluster_->nodes() == nullptr) return;
    std::vector<DriverNode> nodes;
    for (const std::string& name : node_names_) {
      nodes.push_back({name, cat(folder_, "/nodes/", name)});
    }
    programs_ = std::make_unique<DriverPrograms>(flags.driver_programs, nodes, kubeconfig_);
  }

 private:
  Served() = default;

  Result<> open(const ServeFlags& flags, std::function<void(unsigned)> tell) {
    cluster::World world = cluster::real_world();
    cluster::Options options;
    DIBS_TRY(const ListenAddress address, judge_flags(flags, options));
    DIBS_TRY(const std::string folder, cluster_folder(flags.name, flags.data_dir));
    DIBS_CHECK(check_places(flags, address, folder));
    DIBS_TRY(const auto place, store_place(flags, folder, options.server, world.runtime.random));
    std::unique_ptr<store::Store> store;
    const auto open_store = [&]() -> Result<> {
      DIBS_TRY(store, store::open_store(flags.store, place));
      return success();
    };
    // The folder is the first thing that is made; where objects are elsewhere, that place is judged
    // before.
    const bool is_elsewhere = flags.store == "etcd";
    if (is_elsewhere) DIBS_CHECK(open_store());
    if (const auto made = world.files.make_dirs(folder, 0700); !made.ok()) {
      return made.error().within(cat("--data-dir ", quoted(folder)));
    }
    folder_ = std::filesystem::canonical(folder);
    if (flags.usage_size > 0) {
      options.server.usage_folder = folder_ + "/usage";
      options.server.usage_bytes = std::size_t{flags.usage_size} << 20;
    }
    pki_ = folder + "/pki";
    DIBS_TRY(running_, RunningCluster::take(flags.name, folder, !flags.data_dir.empty()));
    // Not once it is ready: some do not end when they are asked to.
    if (!flags.driver_programs.empty()) end_left_programs(folder_);
    if (!is_elsewhere) DIBS_CHECK(open_store());
    DIBS_TRY(const auto machine,
             claim_addresses(flags, folder, *store, options.server.service_range));
    if (options.nodes) {
      options.nodes->machine = machine;
      options.nodes->tell = std::move(tell);
      DIBS_CHECK(claim_names(*options.nodes, *store, world));
      node_names_ = options.nodes->names();
      std::vector<std::string>& gone = options.nodes->gone;
      DIBS_TRY(gone, end_gone_nodes(world.files, folder_, node_names_));
      // A start that does not come to its end may leave some of either.
      std::vector<std::string> any = node_names_;
      any.insert(any.end(), gone.begin(), gone.end());
      note_nodes(world.files, folder_, any);
    }
    options.port = port_options(flags, address);
    names_ = flags.tls_sans;
    for (const std::string& name : {address.host, flags.advertise_address,
                                    server::api_service_address(options.server.service_range)}) {
      names_.push_back(name);
    }
    if (!flags.api.tls_cert_file.empty()) names_.emplace_back(kOwnName);
    if (machine) {
      for (std::string& name : open_to_pods(options, *machine)) names_.push_back(std::move(name));
    }
    DIBS_TRY(const auto credentials,
             server::load_credentials(world.files, world.runtime.clock, pki_, names_));
    api_ = flags.api;
    DIBS_TRY(const ServingFiles files, read_serving_files(api_, world.files, credentials));
    add_credentials(options.server, credentials, files);
    if (options.controllers) options.controllers->signing_ca = credentials.ca;
    options.port->tls = files.tls;
    shown_ = {files.tls, credentials.node_client, credentials.front_proxy_client};
    if (!api_.authentication_config.empty()) {
      DIBS_TRY(authentication_text_, world.files.read(api_.authentication_config));
    }
    DIBS_TRY(cluster_,
             cluster::Cluster::start(std::move(world), std::move(store), std::move(options)));
    look_at_files_later();
    give_memory_back_later();
    if (cluster_->nodes() != nullptr) note_nodes(runtime::system_files(), folder_, node_names_);
    url_ = cat("https://", cluster_->advertised());
    DIBS_CHECK(
        write_kubeconfig(flags, folder,
                         server::make_kubeconfig(credentials.ca.certificate_pem,
                                                 context_of(flags.name), credentials.admin, url_,
                                                 api_.tls_cert_file.empty() ? "" : kOwnName)));
    return success();
  }

  void give_memory_back_later() {
    cluster_->runtime().timers.after(std::chrono::seconds(30), [this] {
      give_memory_back();
      give_memory_back_later();
    });
  }

  /// A server that runs for a year outlives its certificate: it is looked at twice a day. Files
  /// that flags name are replaced without a word to the server. One timer for both, so that each
  /// look is over before the next begins: nothing here is locked.
  void look_at_files_later() {
    const Duration period =
        has_files(api_) ? Duration(std::chrono::seconds(10)) : Duration(std::chrono::hours(12));
    cluster_->runtime().timers.after(period, [this] {
      // One that cannot be used keeps nothing else from being read.
      for (const Result<>& done : {read_authentication_again(), read_certificates_again()}) {
        if (done.ok()) continue;
        log::error("files of the server cannot be used, it goes on with those before",
                   {{"error", done.error()}});
      }
      look_at_files_later();
    });
  }

  /// What the server shows: to who connects, and as a client.
  struct Shown {
    net::TlsServerOptions port;
    net::Credential node_client;
    net::Credential front_proxy_client;
    bool operator==(const Shown&) const = default;
  };

  Result<> read_certificates_again() {
    DIBS_TRY(
        const auto credentials,
        server::load_credentials(runtime::system_files(), cluster_->runtime().clock, pki_, names_));
    DIBS_TRY(const ServingFiles files,
             read_serving_files(api_, runtime::system_files(), credentials));
    Shown now{files.tls, credentials.node_client, credentials.front_proxy_client};
    if (now == shown_) return success();
    DIBS_CHECK(cluster_->renew(now.port, now.node_client, now.front_proxy_client));
    shown_ = std::move(now);
    log::info("certificates read again", {});
    return success();
  }

  Result<> read_authentication_again() {
    if (api_.authentication_config.empty()) return success();
    DIBS_TRY(const std::string text, runtime::system_files().read(api_.authentication_config));
    if (text == authentication_text_) return success();
    DIBS_TRY(const auto configuration, read_authentication(api_, runtime::system_files()));
    authentication_text_ = text;
    cluster_->configure(configuration);
    log::info("--authentication-config read again", {});
    return success();
  }

  Result<> write_kubeconfig(const ServeFlags& flags, const std::string& folder,
                            const std::string& text) {
    kubeconfig_ = flags.kubeconfig_out.empty() ? folder + "/kubeconfig" : flags.kubeconfig_out;
    // It is pasted into another terminal, which may stand in another folder.
    kubeconfig_ = std::filesystem::absolute(kubeconfig_).lexically_normal();
    // Not written again when it is the same: a server must start on a full disk too.
    runtime::Files& files = runtime::system_files();
    auto before = files.read(kubeconfig_);
    if (!before.ok() || *before != text) {
      auto written = files.write(kubeconfig_, text, 0600);
      if (!written.ok()) return written.error().within("--kubeconfig-out");
    }
    if (flags.merge) {
      DIBS_TRY(const std::string file,
               join_user_kubeconfig(context_of(flags.name), kubeconfig_, folder_));
      merged_ = std::filesystem::absolute(file).lexically_normal();
    }
    if (const auto told = running_->tell(url_, kubeconfig_, merged_); !told.ok()) {
      log::warn("`dibs list` does not know where this cluster is", {{"error", told.error()}});
    }
    return success();
  }

  std::string folder_;
  std::optional<RunningCluster> running_;
  std::vector<std::string> node_names_;
  std::string merged_;  // the user's kubeconfig that knows it
  std::string pki_;
  std::unique_ptr<DriverPrograms> programs_;
  ApiFlags api_;
  std::string authentication_text_;  // of --authentication-config
  Shown shown_;                      // by connections that begin now
  std::vector<std::string> names_;   // of the certificate
  std::string url_;
  std::string kubeconfig_;
  std::unique_ptr<cluster::Cluster> cluster_;
};

}  // namespace

int serve(const ServeFlags& flags, std::string_view command) {
  auto began = std::chrono::steady_clock::now();
  std::optional<Background> background;
  if (flags.detach) {
    const auto outcome = background.emplace().begin();
    if (!outcome.ok()) return exit_status(command, outcome.error());
    if (*outcome) return **outcome;
  }
  // Who starts it in the background wants to read that it is ready, not how, unless he says so.
  const bool quiet = background && flags.log_level == ServeFlags().log_level;
  begin_process(quiet ? "warn" : flags.log_level);
  auto interruption = std::make_unique<Interruption>(command);
  if (!flags.idle.empty()) {
    log::warn("flags of nodes do nothing where --nodes is 0", {{"flags", join(flags.idle, ", ")}});
  }
  auto progress = std::make_unique<Progress>(command, flags.nodes);
  auto cluster =
      Served::start(flags, [&](unsigned started) { progress->tell(started, "nodes started"); });
  if (cluster.ok() && flags.wait && flags.whole_cluster) {
    const auto all = (*cluster)->wait_for_nodes(
        [&](std::size_t ready) { progress->tell(ready, "nodes ready"); });
    if (!all.ok()) cluster = all.error();
  }
  progress.reset();
  if (!cluster.ok()) return exit_status(command, with_place(flags, cluster.error()));
  interruption.reset();
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("dibs is ready at %s in %.3f s; %s\n", (*cluster)->url().c_str(), seconds,
              (*cluster)->hint(flags).c_str());
  if (const std::string runtime = (*cluster)->runtime_explanation(); !runtime.empty()) {
    std::printf("%u %s; containers: %s\n", flags.nodes, flags.nodes == 1 ? "node" : "nodes",
                runtime.c_str());
  }
  std::fflush(stdout);
  if (background) {
    if (const auto left = background->leave((*cluster)->folder() + "/log"); !left.ok()) {
      return exit_status(command, left.error());
    }
    if (quiet) log::set_level(log::Level::info);
  }
  (*cluster)->start_programs(flags);

  const auto limit = hurry(wait_for_end(), flags.shutdown_delay,
                           [folder = (*cluster)->folder()] { kill_left_programs(folder); });
  (*cluster)->retire(flags.shutdown_delay);
  cluster->reset();
  return 0;
}

}  // namespace dibs::cli
