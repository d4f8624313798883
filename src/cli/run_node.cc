#include "cli/run_node.h"

#include <cstdio>
#include <filesystem>
#include <thread>

#include "api/kinds/names.h"
#include "base/ipv4.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/strings.h"
#include "cli/node_names.h"
#include "cli/process.h"
#include "client/https_transport.h"
#include "dns/cluster_dns.h"
#include "dns/zone.h"
#include "drivers/net/cni/plugins.h"
#include "node/agent.h"
#include "node/pods/container_config_dns.h"
#include "node/pods/node_lease.h"
#include "node/runtime/machine_network.h"
#include "node/runtime/pick_runtime.h"
#include "proxy/policy_keeper.h"
#include "proxy/proxy.h"
#include "runtime/files.h"
#include "runtime/real_runtime.h"

namespace dibs::cli {
namespace {

Result<std::string> read_file(runtime::Files& files, const char* flag, const std::string& path) {
  if (path.empty()) return std::string();
  auto text = files.read(path);
  if (!text) return text.error().within(flag);
  return text;
}

/// Programs that the agent starts run in folders of their own.
std::string absolute(std::string_view path) {
  return path.empty() ? "" : std::filesystem::absolute(path).lexically_normal().string();
}

Result<node::AgentOptions> agent_options(const NodeFlags& flags, runtime::Files& files) {
  node::AgentOptions out;
  out.name = flags.name.empty() ? to_lower(host_name()) : flags.name;
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
  if (!services.empty()) {
    auto range = parse_service_range(services);
    if (!range.ok()) return range.error().within("--service-cluster-ip-range");
  }
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

Result<> run_until_signal(const NodeFlags& flags) {
  runtime::Files& files = runtime::system_files();
  DIBS_TRY(node::AgentOptions options, agent_options(flags, files));
  DIBS_TRY(const client::Access access, find_access(flags.kubeconfig, flags.context));
  metrics::Registry metrics;
  options.metrics = &metrics;
  runtime::RealRuntime runtime;
  client::HttpsOptions https;
  https.user_agent = "kubelet";
  // A server that is gone must not cost the node its lease.
  https.timeout = std::chrono::seconds(20);
  DIBS_TRY(auto transport,
           client::make_https_transport(access, files, runtime.runtime(), std::move(https)));
  client::Client client(*transport);
  const std::string name = options.name;
  DIBS_TRY(options.agent, agent_of(files, options.root, runtime.runtime().random));
  DIBS_CHECK(check_name(client, name, options.agent, runtime.runtime().clock));
  DIBS_TRY(const auto services, start_services(flags, options, client, runtime.runtime(), files));
  DIBS_TRY(auto agent, node::Agent::open(std::move(options), client, runtime.runtime(), files));
  DIBS_CHECK(agent->start());
  std::printf("node %s: %s; port %d\n", name.c_str(), agent->runtime_explanation().c_str(),
              agent->port());
  std::fflush(stdout);
  wait_for_end();
  agent->stop();
  if (services) services->stop();
  return success();
}

}  // namespace

int run_node(const NodeFlags& flags) {
  begin_process(flags.log_level);
  return exit_status("node", run_until_signal(flags));
}

}  // namespace dibs::cli
