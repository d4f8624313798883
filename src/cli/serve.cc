#include "cli/serve.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "api/kinds/names.h"
#include "base/ipv4.h"
#include "base/log.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "cli/node_names.h"
#include "cli/process.h"
#include "cli/run_scheduler.h"
#include "cli/values.h"
#include "cluster/cluster.h"
#include "dns/zone.h"
#include "drivers/drivers.h"
#include "drivers/net/cni/plugins.h"
#include "json/parse.h"
#include "node/pods/node_lease.h"
#include "node/pods/node_object.h"
#include "node/runtime/machine_network.h"
#include "node/runtime/pick_runtime.h"
#include "runtime/files.h"
#include "server/admission_configuration.h"
#include "server/audit.h"
#include "server/bootstrap.h"
#include "server/credentials.h"
#include "server/service_range.h"
#include "store/stores.h"

namespace dibs::cli {
namespace {

constexpr std::uint64_t kMostSeats = 1'000'000;

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

Result<Address> parse_address(std::string_view text) {
  auto colon = text.rfind(':');
  Address out;
  int port = -1;
  if (colon != std::string_view::npos) {
    auto digits = text.substr(colon + 1);
    auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (code != std::errc() || end != digits.data() + digits.size()) port = -1;
  }
  if (port < 0 || port > 65535) {
    return Error::bad_request(
        cat("--bind ", quoted(text), ": must be HOST:PORT, for example 127.0.0.1:6443"));
  }
  out.host = text.substr(0, colon);
  if (out.host.starts_with('[') && out.host.ends_with(']'))
    out.host = out.host.substr(1, out.host.size() - 2);
  out.port = static_cast<std::uint16_t>(port);
  return out;
}

Result<> check_advertised(const ServeFlags& flags) {
  const std::string& address = flags.advertise_address;
  if (!address.empty() && (!api::is_ip(address) || address == "0.0.0.0" || address == "::")) {
    return Error::bad_request(cat("--advertise-address ", quoted(address),
                                  ": must be an IP address of this machine that others reach"));
  }
  for (const std::string& name : flags.tls_sans) {
    if (api::is_ip(name) || is_dns1123_subdomain(name).empty()) continue;
    return Error::bad_request(cat("--tls-san ", quoted(name), ": must be a name or an IP address"));
  }
  if (flags.shutdown_delay < Duration(0)) {
    return Error::bad_request("--shutdown-delay-duration: must be 0 or more");
  }
  return success();
}

Result<server::Options> server_options(const ServeFlags& flags) {
  server::Options options;
  options.release = flags.release;
  options.feature_gates = flags.feature_gates;
  options.runtime_config = flags.runtime_config;
  options.enabled_plugins = flags.enabled_plugins;
  options.disabled_plugins = flags.disabled_plugins;
  if (!flags.admission_config_file.empty()) {
    auto read =
        server::read_admission_configuration(runtime::system_files(), flags.admission_config_file);
    if (!read.ok()) return read.error().within("--admission-control-config-file");
    options.pod_security = std::move(read).value();
  }
  const std::uint64_t seats = std::uint64_t{flags.max_requests} + flags.max_mutating_requests;
  if (seats < 1 || seats > kMostSeats) {
    return Error::bad_request(
        cat("--max-requests-inflight, --max-mutating-requests-inflight: must be between 1 and ",
            kMostSeats, " together"));
  }
  options.seats = static_cast<unsigned>(seats);
  options.issuer = flags.issuer;
  if (!flags.token_auth_file.empty()) {
    auto tokens = runtime::system_files().read(flags.token_auth_file);
    if (!tokens.ok()) return tokens.error().within("--token-auth-file");
    options.static_tokens = std::move(tokens).value();
  }
  if (!flags.audit_policy_file.empty()) {
    auto policy = runtime::system_files().read(flags.audit_policy_file);
    if (!policy.ok()) return policy.error().within("--audit-policy-file");
    // An empty one is not the same as none.
    options.audit_policy = policy->empty() ? "\n" : std::move(policy).value();
  }
  for (const auto& [flag, value] : {std::pair("--audit-log-maxsize", flags.audit_log_maxsize),
                                    {"--audit-log-maxage", flags.audit_log_maxage},
                                    {"--audit-log-maxbackup", flags.audit_log_maxbackup}}) {
    if (value < 0) return Error::bad_request(cat(flag, " ", value, ": must be 0 or more"));
  }
  options.audit_log = {flags.audit_log_path, flags.audit_log_maxsize, flags.audit_log_maxage,
                       flags.audit_log_maxbackup};
  DIBS_CHECK(server::check_audit_options(options));
  return options;
}

void add_credentials(server::Options& options, const server::Credentials& credentials) {
  options.account_key_pem = credentials.account_key_pem;
  options.ca_pem = credentials.ca.certificate_pem;
  options.node_client_certificate_pem = credentials.node_client.certificate_pem;
  options.node_client_key_pem = credentials.node_client.key_pem;
}

/// Whether pods of this process have a network on this machine.
bool has_pod_network(const ServeFlags& flags) {
  return flags.whole_cluster && flags.nodes > 0 && flags.nodes <= cluster::kMostMachines &&
         node::would_run_processes(flags.runtime);
}

/// Before anything is made: what is wrong with the flag itself, or taken on this machine.
Result<> check_service_range(const ServeFlags& flags, const std::string& folder) {
  if (flags.service_range.empty()) return success();
  if (auto range = parse_service_range(flags.service_range); !range.ok()) {
    return range.error().within("--service-cluster-ip-range");
  }
  if (!has_pod_network(flags)) return success();
  return node::check_service_range(node::network_of_folder({.name = folder}), flags.service_range);
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

net::TlsServerOptions tls_of(const server::Credentials& credentials) {
  return {credentials.server.certificate_pem, credentials.server.key_pem,
          credentials.ca.certificate_pem};
}

net::ServerOptions port_options(const ServeFlags& flags, const Address& address) {
  net::ServerOptions options;
  options.host = address.host;
  options.port = address.port;
  options.threads =
      flags.threads > 0 ? flags.threads : std::max(1U, std::thread::hardware_concurrency());
  return options;
}

Result<> add_other_parts(cluster::Options& options, const ServeFlags& flags,
                         const std::string& folder) {
  options.controllers.emplace().node_monitor_grace_period = flags.node_monitor_grace_period;
  options.scheduler.emplace().explain_events = flags.explain_events;
  DIBS_TRY(const api::Features gates,
           api::Features::parse(options.server.answers_as(), options.server.feature_gates));
  DIBS_TRY(options.scheduler->configuration,
           read_scheduler_config(flags.scheduler_config, gates, runtime::system_files(),
                                 "--scheduler-config"));
  // A driver's half for the whole cluster works for nodes elsewhere, too.
  if (flags.nodes == 0 && flags.drivers.empty()) return success();
  for (const auto& name : flags.drivers) {
    const auto* kind = find_named(drivers::driver_kinds(), name);
    if (flags.nodes == 0 && kind != nullptr && kind->cluster == nullptr) {
      return Error::bad_request(cat("--drivers ", name, ": runs on nodes, and --nodes is 0"));
    }
  }
  auto& nodes = options.nodes.emplace();
  nodes.count = flags.nodes;
  nodes.drivers = flags.drivers;
  nodes.runtime = flags.runtime;
  if (const auto domain = dns::Zone::parse_domain(flags.cluster_domain); !domain) {
    return domain.error().within("--cluster-domain");
  }
  nodes.cluster_domain = flags.cluster_domain;
  nodes.images = flags.images;
  nodes.host = flags.node_address;
  nodes.node_ip = flags.advertise_address;
  if (!flags.node_prefix.empty()) nodes.prefix = flags.node_prefix;
  nodes.image_aliases = flags.image_aliases;
  nodes.insecure_registries = flags.insecure_registries;
  nodes.disk = flags.disk;
  nodes.cdi_newest = flags.cdi_newest;
  nodes.allowed_unsafe_sysctls = flags.allowed_unsafe_sysctls;
  nodes.own_cni_plugins = drivers::net::cni_plugin_names();
  nodes.network_namespaces = flags.network_namespaces;
  nodes.folder = std::filesystem::absolute(folder).lexically_normal();
  nodes.fleet = flags.nodes > cluster::kMostMachines;
  return success();
}

Result<std::unique_ptr<store::Store>> open_store(const ServeFlags& flags, const std::string& folder,
                                                 const server::Options& server,
                                                 runtime::Random& random) {
  store::StoreOptions place;
  place.folder = folder;
  DIBS_TRY(place.etcd, etcd_options(flags.etcd, flags.store));
  DIBS_TRY(place.at_rest, form_of_values(flags.store, flags.encryption_provider_config, place.etcd,
                                         server, random));
  return store::open_store(flags.store, place);
}

/// The nodes are this process' from now on, unless another has them.
Result<> claim_names(cluster::NodesOptions& nodes, const store::Store& store,
                     cluster::World& world) {
  if (nodes.count == 0) return success();
  DIBS_TRY(nodes.agent, agent_of(world.files, nodes.folder + "/nodes", world.runtime.random));
  // A store of its own has no other `dibs up`, and a restored one must not wait for its past.
  if (!store.shared()) return success();
  for (unsigned i = 0; i < nodes.count; ++i) {
    const std::string node = nodes.name_of(i);
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
  static Result<std::unique_ptr<Served>> start(const ServeFlags& flags) {
    auto served = std::unique_ptr<Served>(new Served());
    DIBS_CHECK(served->open(flags));
    return served;
  }
  ~Served() {
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
  /// What runs the containers of the nodes, and why; "" without nodes.
  std::string runtime_explanation() const {
    return cluster_->nodes() != nullptr ? cluster_->nodes()->explanation() : "";
  }

 private:
  Served() = default;

  Result<> open(const ServeFlags& flags) {
    DIBS_TRY(const Address address, parse_address(flags.bind));
    DIBS_TRY(const std::string folder, data_folder(flags.data_dir));
    DIBS_CHECK(check_advertised(flags));
    DIBS_CHECK(check_service_range(flags, folder));
    cluster::World world = cluster::real_world();
    DIBS_CHECK(world.files.make_dirs(folder, 0700));
    pki_ = folder + "/pki";
    cluster::Options options;
    options.advertise_host = flags.advertise_address;
    DIBS_TRY(options.server, server_options(flags));
    if (flags.whole_cluster) DIBS_CHECK(add_other_parts(options, flags, folder));
    DIBS_TRY(auto store, open_store(flags, folder, options.server, world.runtime.random));
    DIBS_TRY(const auto machine,
             claim_addresses(flags, folder, *store, options.server.service_range));
    if (options.nodes) options.nodes->machine = machine;
    if (options.nodes) DIBS_CHECK(claim_names(*options.nodes, *store, world));
    options.port = port_options(flags, address);
    names_ = flags.tls_sans;
    for (const std::string& name : {address.host, flags.advertise_address,
                                    server::api_service_address(options.server.service_range)}) {
      names_.push_back(name);
    }
    if (machine) {
      for (std::string& name : open_to_pods(options, *machine)) names_.push_back(std::move(name));
    }
    DIBS_TRY(const auto credentials,
             server::load_credentials(world.files, world.runtime.clock, pki_, names_));
    add_credentials(options.server, credentials);
    options.port->tls = tls_of(credentials);
    DIBS_TRY(cluster_,
             cluster::Cluster::start(std::move(world), std::move(store), std::move(options)));
    renew_later();
    give_memory_back_later();
    url_ = cat("https://", cluster_->advertised());
    return write_kubeconfig(flags, folder,
                            server::make_kubeconfig(credentials.ca.certificate_pem,
                                                    "kubernetes-admin", credentials.admin, url_));
  }

  void give_memory_back_later() {
    cluster_->runtime().timers.after(std::chrono::seconds(30), [this] {
      give_memory_back();
      give_memory_back_later();
    });
  }

  /// A server that runs for a year outlives its certificate: it is looked at twice a day.
  void renew_later() {
    cluster_->runtime().timers.after(std::chrono::hours(12), [this] {
      if (auto renewed = renew(); !renewed) {
        log::error("certificate cannot be renewed", {{"error", renewed.error()}});
      }
      renew_later();
    });
  }
  Result<> renew() {
    DIBS_TRY(
        const auto credentials,
        server::load_credentials(runtime::system_files(), cluster_->runtime().clock, pki_, names_));
    return cluster_->renew(tls_of(credentials), credentials.node_client);
  }

  Result<> write_kubeconfig(const ServeFlags& flags, const std::string& folder,
                            const std::string& text) {
    kubeconfig_ = flags.kubeconfig_out.empty() ? folder + "/kubeconfig" : flags.kubeconfig_out;
    // It is pasted into another terminal, which may stand in another folder.
    kubeconfig_ = std::filesystem::absolute(kubeconfig_).lexically_normal();
    // Not written again when it is the same: a server must start on a full disk too.
    runtime::Files& files = runtime::system_files();
    auto before = files.read(kubeconfig_);
    if (before.ok() && *before == text) return success();
    auto written = files.write(kubeconfig_, text, 0600);
    if (!written.ok()) return written.error().within("--kubeconfig-out");
    return success();
  }

  std::string pki_;
  std::vector<std::string> names_;  // of the certificate
  std::string url_;
  std::string kubeconfig_;
  std::unique_ptr<cluster::Cluster> cluster_;
};

}  // namespace

int serve(const ServeFlags& flags, std::string_view command) {
  auto began = std::chrono::steady_clock::now();
  begin_process(flags.log_level);
  auto cluster = Served::start(flags);
  if (!cluster.ok()) return exit_status(command, cluster.error());
  auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::printf("dibs is ready at %s in %.3f s; export KUBECONFIG=%s\n", (*cluster)->url().c_str(),
              seconds, (*cluster)->kubeconfig().c_str());
  if (const std::string runtime = (*cluster)->runtime_explanation(); !runtime.empty()) {
    std::printf("%u %s; containers: %s\n", flags.nodes, flags.nodes == 1 ? "node" : "nodes",
                runtime.c_str());
  }
  std::fflush(stdout);

  wait_for_end();
  (*cluster)->retire(flags.shutdown_delay);
  cluster->reset();
  return 0;
}

}  // namespace dibs::cli
