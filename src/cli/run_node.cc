#include "cli/run_node.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>

#include "api/kinds/names.h"
#include "base/ipv4.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/strings.h"
#include "cli/node_names.h"
#include "cli/process.h"
#include "cli/starting.h"
#include "cli/values.h"
#include "client/https_transport.h"
#include "client/refusals.h"
#include "dns/cluster_dns.h"
#include "dns/zone.h"
#include "drivers/net/cni/plugins.h"
#include "node/agent.h"
#include "node/certificate.h"
#include "node/pods/container_config_dns.h"
#include "node/pods/node_lease.h"
#include "node/runtime/machine_network.h"
#include "node/runtime/pick_runtime.h"
#include "proxy/policy_keeper.h"
#include "proxy/proxy.h"
#include "runtime/files.h"
#include "runtime/process_metrics.h"
#include "runtime/real_runtime.h"
#include "server/credentials.h"

namespace dibs::cli {
namespace {

Result<std::string> read_file(runtime::Files& files, const char* flag, const std::string& path) {
  if (path.empty()) return std::string();
  auto text = files.read(path);
  if (!text) return as_usage(text.error(), flag);
  return text;
}

/// Programs that the agent starts run in folders of their own.
std::string absolute(std::string_view path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

Result<node::AgentOptions> agent_options(const NodeFlags& flags, runtime::Files& files) {
  node::AgentOptions out;
  out.name = node_name(flags);
  out.root = absolute(flags.root_dir);
  out.network = cat(out.root, "/containers");
  out.runtime = flags.runtime;
  out.images = absolute(flags.images);
  out.image_aliases = flags.image_aliases;
  out.insecure_registries = flags.insecure_registries;
  out.disk = flags.disk;
  if (!flags.cdi_dirs.empty()) {
    for (const auto folder : split(flags.cdi_dirs, ','))
      out.cdi_directories.push_back(absolute(folder));
  }
  out.log_root = absolute(flags.log_dir);
  out.host = flags.address;
  out.port = flags.port;
  if (!flags.node_ip.empty() && !api::is_ip(flags.node_ip)) {
    return Error::bad_request(cat("--node-ip ", quoted(flags.node_ip), ": must be an IP address"));
  }
  out.node_ip = flags.node_ip;
  out.release = flags.release;
  out.feature_gates = flags.feature_gates;
  if (!flags.cluster_dns.empty()) out.cluster_dns = flags.cluster_dns;
  if (const auto domain = dns::Zone::parse_domain(flags.cluster_domain); !domain) {
    return domain.error().within("--cluster-domain");
  }
  out.cluster_domain = flags.cluster_domain;
  out.cdi_newest = flags.cdi_newest;
  out.allowed_unsafe_sysctls = flags.allowed_unsafe_sysctls;
  out.own_cni_plugins = drivers::net::cni_plugin_names();
  out.network_namespaces = flags.network_namespaces;
  if (!flags.release.empty()) out.kubelet_version = cat("v", flags.release, ".0");
  DIBS_TRY(out.tls.client_ca_pem, read_file(files, "--client-ca-file", flags.client_ca_file));
  DIBS_TRY(out.tls.certificate_pem, read_file(files, "--tls-cert-file", flags.tls_cert_file));
  DIBS_TRY(out.tls.key_pem, read_file(files, "--tls-private-key-file", flags.tls_key_file));
  for (const auto& label : flags.labels) {
    const auto equals = label.find('=');
    if (equals == std::string::npos) {
      return Error::bad_request(cat("--node-labels ", quoted(label), ": must be KEY=VALUE"));
    }
    out.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  return out;
}

/// Before anything is made.
Result<> check(const NodeFlags& flags, const node::AgentOptions& options) {
  DIBS_CHECK(node::check_options(options));
  if (const auto wrong = is_dns1123_subdomain(options.name); !wrong.empty()) {
    return Error::bad_request(cat("--name ", quoted(options.name), ": ", wrong.front()));
  }
  for (const std::string& server : flags.cluster_dns) {
    if (api::is_ip(server)) continue;
    return Error::bad_request(cat("--cluster-dns ", quoted(server), ": must be an IP address"));
  }
  if (!flags.service_range.empty()) {
    const auto range = parse_service_range(flags.service_range);
    if (!range.ok()) return range.error().within("--service-cluster-ip-range");
  }
  if (!api::is_ip(flags.address)) {
    return Error::bad_request(cat("--address ", quoted(flags.address), ": must be an IP address"));
  }
  DIBS_CHECK(parse_gates(flags.release, flags.feature_gates));
  return success();
}

Result<> check_name(client::Client& client, const std::string& name, const std::string& agent,
                    runtime::Clock& clock) {
  const auto lease = [&] {
    return client.get({"coordination.k8s.io", "v1", "leases"}, node::kNodeLeases, name);
  };
  auto checked = check_name_is_free({name, agent, "--name", clock, wait_a_moment}, lease);
  // A server that does not answer now is waited for by the agent.
  if (checked.ok() || checked.error().code() == Code::conflict) return checked;
  log::warn("cannot see whether the node lives elsewhere",
            {{"node", name}, {"error", checked.error()}});
  return success();
}

/// By the Service that has the first address of every range.
Result<std::string> range_of_cluster(client::Client& client) {
  const auto service = client.get({"", "v1", "services"}, "default", "kubernetes");
  if (!service.ok()) return service.error();
  const auto address = parse_ipv4((*service)["spec"]["clusterIP"].as_string());
  if (!address) return Error::invalid("the Service kubernetes has no IPv4 address");
  Ipv4Range range{0, 24};
  range.first = *address & range.mask();
  return range.text();
}

/// What of this machine belongs to the node: as a cluster's, but that nodes of one cluster, or the
/// cluster itself, may share a machine, and with it the addresses of Services.
Result<node::MachineRanges> claim_addresses(const NodeFlags& flags, const std::string& folder,
                                            client::Client& client) {
  std::string services = flags.service_range;
  // A claim is its folder's: it ends when that is not there.
  DIBS_CHECK(runtime::system_files().make_dirs(folder, 0700));
  const node::NetworkOptions network = node::network_of_folder({.name = folder});
  constexpr int kTries = 60;  // the server may be starting as well
  for (int i = 1; services.empty(); ++i) {
    DIBS_TRY(const node::MachineRanges known, node::claim_pod_range(network));
    auto found = range_of_cluster(client);
    services = found.ok() ? *found : known.services;
    if (!services.empty()) break;
    if (i == kTries) return found.error().within("cannot learn --service-cluster-ip-range");
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  auto claimed = node::claim_ranges(network, {services});
  if (claimed.ok()) {
    DIBS_CHECK(node::make_bridge(*claimed));
    return claimed;
  }
  DIBS_TRY(node::MachineRanges ranges, node::claim_pod_range(network));
  log::warn("another network of this machine keeps the addresses of Services here",
            {{"range", services}, {"reason", claimed.error()}});
  ranges.services = services;
  DIBS_CHECK(node::make_bridge(ranges));
  return ranges;
}

/// Names of the cluster for this machine's pods.
Result<std::unique_ptr<dns::ClusterDns>> start_dns(
    const NodeFlags& flags, const node::MachineRanges& ranges, const std::string& address,
    client::Client& client, runtime::Runtime& runtime, runtime::Files& files) {
  dns::ClusterDnsOptions how;
  how.domain = flags.cluster_domain;
  how.host = ranges.gateway;
  how.service_address = address;
  how.services = ranges.services;
  how.pods = ranges.pods;
  how.servers = [&files] { return node::host_name_servers(files); };
  return dns::ClusterDns::start(std::move(how), client, runtime);
}

/// The node's half of Services. Null where containers are simulated, or somebody else does it.
struct NodeServices {
  std::unique_ptr<dns::ClusterDns> dns;
  std::unique_ptr<proxy::Applier> applier = proxy::make_machine_applier();
  std::unique_ptr<proxy::Proxy> proxy;
  std::unique_ptr<proxy::Applier> policy_applier = proxy::make_machine_applier();
  std::unique_ptr<proxy::PolicyKeeper> policies;

  void stop() {
    proxy->stop();
    policies->stop();
    dns->stop();
  }
};

Result<std::unique_ptr<NodeServices>> start_services(const NodeFlags& flags,
                                                     node::AgentOptions& options,
                                                     client::Client& client,
                                                     runtime::Runtime& runtime,
                                                     runtime::Files& files) {
  if (!flags.service_proxy || !node::would_run_processes(options.runtime)) {
    return std::unique_ptr<NodeServices>();
  }
  DIBS_TRY(const node::MachineRanges ranges, claim_addresses(flags, options.network, client));
  proxy::ProxyOptions how;
  how.nodes = {options.name};
  how.bridge = ranges.bridge;
  how.pods = ranges.pods;
  how.services = ranges.services;
  how.taken = [folder = options.network](const Ipv4Range& range) {
    return node::other_owner_of(node::network_of_folder({.name = folder}), range);
  };
  how.reads_only_own_node = true;
  auto out = std::make_unique<NodeServices>();
  how.dns_address = flags.cluster_dns.empty()
                        ? Ipv4Range::parse(ranges.services)->address(kDnsServiceIndex)
                        : flags.cluster_dns.front();
  if (flags.cluster_dns.empty()) options.cluster_dns = {how.dns_address};
  DIBS_TRY(out->dns, start_dns(flags, ranges, how.dns_address, client, runtime, files));
  how.local_dns = out->dns->address();
  proxy::PolicyOptions kept;
  kept.table = node::policy_table(ranges.bridge);
  kept.bridge = ranges.bridge;
  kept.nodes = how.nodes;
  kept.dns_address = how.dns_address;
  kept.local_dns = how.local_dns;
  DIBS_TRY(out->proxy, proxy::Proxy::start(std::move(how), client, runtime, *out->applier));
  out->policies =
      std::make_unique<proxy::PolicyKeeper>(std::move(kept), client, runtime, *out->policy_applier);
  out->policies->start();
  return out;
}

/// Of a node that joined. Null: somebody else looks after its kubeconfig.
std::unique_ptr<node::CertificateKeeper> keep_certificate(const NodeFlags& flags,
                                                          const client::Access& access,
                                                          client::HttpsTransport& connection,
                                                          client::Client& client,
                                                          runtime::Runtime& runtime) {
  if (!flags.joined) return nullptr;
  node::CertificateKeeper::Options how;
  how.node = node_name(flags);
  how.credential = {access.tls.certificate_pem, access.tls.key_pem};
  how.renewed = [flags, access, &connection](const net::Credential& fresh) -> Result<> {
    DIBS_CHECK(connection.set_credential(fresh));
    return write_node_kubeconfig(flags, access, fresh);
  };
  auto keeper = std::make_unique<node::CertificateKeeper>(client, runtime, std::move(how));
  keeper->start();
  return keeper;
}

}  // namespace

std::string node_name(const NodeFlags& flags) {
  return flags.name.empty() ? to_lower(host_name()) : flags.name;
}

Result<> check_node(const NodeFlags& flags) {
  DIBS_TRY(const node::AgentOptions options, agent_options(flags, runtime::system_files()));
  return check(flags, options);
}

std::string node_kubeconfig(const NodeFlags& flags) {
  return cat(absolute(flags.root_dir), "/node.kubeconfig");
}

Result<> write_node_kubeconfig(const NodeFlags& flags, const client::Access& access,
                               const net::Credential& credential) {
  runtime::Files& files = runtime::system_files();
  const auto made = files.make_dirs(absolute(flags.root_dir), 0755);
  if (!made.ok()) return made.error().within("--root-dir");
  return files.write(node_kubeconfig(flags),
                     server::make_kubeconfig(access.tls.ca_pem, node_name(flags), credential,
                                             access.server, access.tls.server_name),
                     0600);
}

Result<> run_agent(const NodeFlags& flags) {
  auto interruption = std::make_optional<Interruption>("node");
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(node::AgentOptions options, agent_options(flags, files));
  DIBS_CHECK(check(flags, options));
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  if (flags.joined && flags.client_ca_file.empty()) options.tls.client_ca_pem = access.tls.ca_pem;
  metrics::Registry metrics;
  runtime::tell_of_process(metrics);
  options.metrics = &metrics;
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = "kubelet";
  // A server that is gone must not cost the node its lease.
  https.timeout = std::chrono::seconds(20);
  DIBS_TRY(auto made,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::HttpsTransport& connection = *made;
  const auto transport = client::warn_of_refusals(std::move(made), runtime.runtime());
  client::Client client(*transport);
  const std::string name = options.name;
  DIBS_TRY(options.agent, agent_of(files, options.root, runtime.runtime().random));
  DIBS_CHECK(check_name(client, name, options.agent, runtime.runtime().clock));
  DIBS_TRY(const auto services, start_services(flags, options, client, runtime.runtime(), files));
  DIBS_TRY(auto agent, node::Agent::open(std::move(options), client, runtime.runtime(), files));
  DIBS_CHECK(agent->start());
  const auto keeper = keep_certificate(flags, access, connection, client, runtime.runtime());
  interruption.reset();
  std::printf("node %s: %s; port %d\n", name.c_str(), agent->runtime_explanation().c_str(),
              agent->port());
  std::fflush(stdout);
  const auto limit = hurry(wait_for_end());
  if (keeper) keeper->stop();
  agent->stop();
  if (services) services->stop();
  return success();
}

int run_node(const NodeFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("node", run_agent(flags));
}

}  // namespace dibs::cli
