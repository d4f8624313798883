#include "cli/serve_options.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <thread>

#include "api/kinds/names.h"
#include "base/ipv4.h"
#include "base/plug_points.h"
#include "base/strings.h"
#include "cli/check_serve.h"
#include "cli/clusters.h"
#include "cli/driver_options.h"
#include "cli/driver_programs.h"
#include "cli/run_controllers.h"
#include "cli/run_scheduler.h"
#include "cli/values.h"
#include "dns/zone.h"
#include "drivers/drivers.h"
#include "drivers/net/cni/plugins.h"
#include "node/runtime/machine_network.h"
#include "node/runtime/pick_runtime.h"
#include "runtime/files.h"
#include "server/admission_configuration.h"
#include "server/audit.h"

namespace dibs::cli {
namespace {

constexpr std::uint64_t kMostSeats = 1'000'000;

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
  DIBS_CHECK(add_api_options(flags.api, runtime::system_files(), options));
  options.metric_resolution = flags.metric_resolution;
  if (flags.metric_resolution != Duration(0) && flags.metric_resolution < std::chrono::seconds(1)) {
    return Error::bad_request(cat("--metric-resolution ", format_duration(flags.metric_resolution),
                                  ": must be 0, for none, or 1s and more"));
  }
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

/// Before anything is made: what is wrong with the flag itself, or taken on this machine.
Result<> check_service_range(const ServeFlags& flags, const std::string& folder) {
  if (flags.service_range.empty()) return success();
  if (auto range = parse_service_range(flags.service_range); !range.ok()) {
    return range.error().within("--service-cluster-ip-range");
  }
  if (!has_pod_network(flags)) return success();
  return node::check_service_range(node::network_of_folder({.name = folder}), flags.service_range);
}

Result<std::vector<cluster::NodeGroup>> node_groups(const ServeFlags& flags) {
  if (!flags.groups.empty()) return flags.groups;
  cluster::NodeGroup group;
  group.count = flags.nodes;
  if (!flags.node_prefix.empty()) group.prefix = flags.node_prefix;
  DIBS_TRY(auto chosen, parse_drivers(flags.drivers));
  for (ChosenDriver& driver : chosen) {
    group.drivers.push_back(driver.name);
    group.tuning[driver.name] = std::move(driver.tuning);
  }
  return std::vector{std::move(group)};
}

Result<> add_other_parts(cluster::Options& options, const ServeFlags& flags,
                         const std::string& folder) {
  options.controllers.emplace().node_monitor_grace_period = flags.node_monitor_grace_period;
  DIBS_CHECK(check_autoscaler(flags.autoscaler));
  options.controllers->autoscaler = flags.autoscaler;
  options.scheduler.emplace().explain_events = flags.explain_events;
  DIBS_TRY(const api::Features gates,
           api::Features::parse(options.server.answers_as(), options.server.feature_gates));
  DIBS_TRY(options.scheduler->configuration,
           read_scheduler_config(flags.scheduler_config, gates, runtime::system_files(),
                                 "--scheduler-config"));
  for (const std::string& command : flags.driver_programs) {
    DIBS_CHECK(check_driver_command(command));
    if (flags.nodes == 0) {
      return Error::bad_request(
          cat("--driver ", quoted(command), ": runs beside nodes, and --nodes is 0"));
    }
    if (flags.nodes > cluster::kMostMachines) {
      return Error::bad_request(cat("--driver ", quoted(command), ": runs beside at most ",
                                    cluster::kMostMachines, " nodes, and --nodes is ",
                                    flags.nodes));
    }
  }
  // A driver's half for the whole cluster works for nodes elsewhere, too.
  if (flags.nodes == 0 && flags.drivers.empty() && flags.groups.empty()) return success();
  auto& nodes = options.nodes.emplace();
  DIBS_TRY(nodes.groups, node_groups(flags));
  for (const std::string& driver : nodes.drivers()) {
    const auto* kind = find_named(drivers::driver_kinds(), driver);
    if (flags.nodes == 0 && kind->cluster == nullptr) {
      return Error::bad_request(cat("--drivers ", driver, ": runs on nodes, and --nodes is 0"));
    }
    if (const unsigned nodes_with = nodes.count_with(driver);
        kind->once_on_machine && nodes_with > 1) {
      return Error::bad_request(cat("--drivers ", driver,
                                    ": what this machine has can be one node's alone, and ",
                                    nodes_with, " nodes would offer it: take --nodes 1"));
    }
  }
  nodes.runtime = flags.runtime;
  if (const auto domain = dns::Zone::parse_domain(flags.cluster_domain); !domain) {
    return domain.error().within("--cluster-domain");
  }
  nodes.cluster_domain = flags.cluster_domain;
  nodes.images = flags.images;
  nodes.host = flags.node_address;
  nodes.node_ip = flags.advertise_address;
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

}  // namespace

bool has_pod_network(const ServeFlags& flags) {
  return flags.whole_cluster && flags.nodes > 0 && flags.nodes <= cluster::kMostMachines &&
         node::would_run_processes(flags.runtime);
}

net::ServerOptions port_options(const ServeFlags& flags, const ListenAddress& address) {
  net::ServerOptions options;
  options.host = address.host;
  options.port = address.port;
  options.max_streams = flags.api.http2_max_streams;
  options.answers_while_draining = flags.api.shutdown_send_retry_after;
  if (flags.api.goaway_chance > 0) {
    options.goaway_every = static_cast<std::uint64_t>(1 / flags.api.goaway_chance);
  }
  options.threads =
      flags.threads > 0 ? flags.threads : std::max(1U, std::thread::hardware_concurrency());
  return options;
}

Result<ListenAddress> judge_flags(const ServeFlags& flags, cluster::Options& options) {
  const auto judged = [&]() -> Result<ListenAddress> {
    DIBS_TRY(const ListenAddress address, parse_listen_address("--bind", flags.bind));
    DIBS_TRY(const std::string folder, cluster_folder(flags.name, flags.data_dir));
    DIBS_CHECK(check_advertised(flags));
    DIBS_CHECK(check_api_flags(flags.api));
    DIBS_CHECK(check_service_range(flags, folder));
    options.advertise_host = flags.advertise_address;
    DIBS_TRY(options.server, server_options(flags));
    DIBS_CHECK(check_server(flags, options.server));
    if (flags.whole_cluster) DIBS_CHECK(add_other_parts(options, flags, folder));
    if (options.nodes) DIBS_CHECK(check_nodes(*options.nodes, options.server));
    return address;
  }();
  if (judged.ok()) return judged;
  return Error::bad_request(judged.error().message());
}

}  // namespace dibs::cli
