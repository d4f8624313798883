#include "node/pods/container_config.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/strings.h"
#include "json/parse.h"
#include "node/pods/container_config_dns.h"
#include "node/pods/volume_files.h"
#include "node/runtime/sysctl.h"

namespace dibs::node {
namespace {

using json::Value;

constexpr std::size_t kMaxHostname = 63;
constexpr std::size_t kMaxFqdn = 64;  // what sethostname(2) takes
constexpr const char* kHosts = "/etc/hosts";

Labels to_labels(const Value& map) {
  Labels out;
  for (const auto& [key, value] : map.members()) out[std::string(key)] = value.str();
  return out;
}

void add_pod_labels(const Value& pod, Labels& labels) {
  const Value& metadata = pod["metadata"];
  labels[kPodNameLabel] = metadata["name"].str();
  labels[kPodNamespaceLabel] = metadata["namespace"].str();
  labels[kPodUidLabel] = metadata["uid"].str();
}

std::vector<PortMapping> port_mappings(const Value& pod) {
  std::vector<PortMapping> out;
  for (const char* list : {"initContainers", "containers"}) {
    for (const auto& container : pod["spec"][list].items()) {
      // Init containers that end before the others start serve nobody.
      if (list[0] == 'i' && container["restartPolicy"].as_string() != "Always") continue;
      for (const auto& port : container["ports"].items()) {
        PortMapping mapping;
        if (port["protocol"].is_string()) mapping.protocol = port["protocol"].str();
        mapping.container_port = static_cast<int>(port["containerPort"].as_int());
        mapping.host_port = static_cast<int>(port["hostPort"].as_int());
        mapping.host_ip = port["hostIP"].str();
        out.push_back(std::move(mapping));
      }
    }
  }
  return out;
}

std::vector<std::string> expanded(const Value& list, const EnvList& env) {
  std::vector<std::string> out;
  for (const auto& word : list.items()) out.push_back(expand_references(word.as_string(), env));
  return out;
}

/// Containers know the name of their host by this variable; one on the host's network has the
/// host's.
void add_hostname(const Value& pod, const NodeFacts& facts, EnvList& env) {
  if (facts.simulated || !pod["spec"]["hostNetwork"].as_bool()) return;
  for (const auto& [name, value] : env) {
    if (name == "HOSTNAME") return;
  }
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0) env.emplace(env.begin(), "HOSTNAME", name);
}

/// Variables of device plugins; what the container says itself counts.
void add_given(const EnvList& given, EnvList& env) {
  EnvList first;
  for (const auto& variable : given) {
    const bool own = std::any_of(env.begin(), env.end(),
                                 [&](const auto& other) { return other.first == variable.first; });
    if (!own) first.push_back(variable);
  }
  env.insert(env.begin(), first.begin(), first.end());
}

bool mounts_at(const std::vector<Mount>& mounts, std::string_view path) {
  for (const auto& mount : mounts) {
    if (mount.container_path == path) return true;
  }
  return false;
}

Result<> add_own_files(const ContainerStart& start, Volumes& volumes, ContainerConfig& config) {
  DIBS_TRY(auto hosts, volumes.hosts_file(start.pod, start.addresses.pod_ips));
  if (!hosts.empty() && !mounts_at(config.mounts, kHosts)) {
    config.mounts.push_back({kHosts, hosts, false, Propagation::none});
  }
  const std::string path = start.container["terminationMessagePath"].str();
  if (!path.empty()) {
    DIBS_TRY(auto file, volumes.termination_file(start.pod, config.name, start.attempt));
    if (!file.empty()) config.mounts.push_back({path, file, false, Propagation::none});
  }
  return success();
}

}  // namespace

PodHostname pod_hostname(const Value& pod, const NodeFacts& facts) {
  const Value& spec = pod["spec"];
  PodHostname out;
  if (const auto chosen = spec["hostnameOverride"].as_string(); !chosen.empty()) {
    out.name = chosen;
    return out;
  }
  out.name = spec["hostname"].str();
  if (out.name.empty()) {
    out.name = pod["metadata"]["name"].str().substr(0, kMaxHostname);
    while (!out.name.empty() && (out.name.back() == '-' || out.name.back() == '.')) {
      out.name.pop_back();
    }
  }
  if (const auto group = spec["subdomain"].as_string(); !group.empty()) {
    out.fqdn = cat(out.name, '.', group, '.', pod["metadata"]["namespace"].as_string(), ".svc.",
                   facts.cluster_domain);
  }
  return out;
}

Result<SandboxPlan> build_sandbox_config(const Value& pod, unsigned attempt, const NodeFacts& facts,
                                         const std::string& log_root) {
  const Value& spec = pod["spec"];
  const Value& metadata = pod["metadata"];
  SandboxPlan plan;
  SandboxConfig& config = plan.config;
  config.name = metadata["name"].str();
  config.name_space = metadata["namespace"].str();
  config.uid = metadata["uid"].str();
  config.attempt = attempt;
  config.log_directory = cat(log_root, '/', config.name_space, '_', config.name, '_', config.uid);
  config.host_network = spec["hostNetwork"].as_bool();
  config.host_pid = spec["hostPID"].as_bool();
  config.host_ipc = spec["hostIPC"].as_bool();
  config.share_pid = spec["shareProcessNamespace"].as_bool();
  config.group = pod_group(pod);
  config.limits = pod_limits(pod);

  if (!config.host_network) {
    const PodHostname names = pod_hostname(pod, facts);
    config.hostname = names.name;
    if (spec["setHostnameAsFQDN"].as_bool() && !names.fqdn.empty()) {
      if (names.fqdn.size() > kMaxFqdn) {
        return Error::invalid(
            cat("failed to construct FQDN from Pod hostname and cluster domain, FQDN ", names.fqdn,
                " is too long (64 characters is the max, ", names.fqdn.size(),
                " characters requested)"));
      }
      config.hostname = names.fqdn;
    }
    config.ports = port_mappings(pod);
  }
  for (const auto& sysctl : spec["securityContext"]["sysctls"].items()) {
    config.sysctls.emplace_back(normalized_sysctl(sysctl["name"].as_string()),
                                sysctl["value"].str());
  }

  DnsSettings host;
  if (!facts.simulated) {
    host = parse_resolv_conf(read_file(facts.resolv_conf, std::size_t{1} << 20).value_or(""));
  }
  DnsSettings dns = pod_dns(pod, facts, host, plan.notes);
  config.dns_servers = std::move(dns.servers);
  config.dns_searches = std::move(dns.searches);
  config.dns_options = std::move(dns.options);

  config.labels = to_labels(metadata["labels"]);
  add_pod_labels(pod, config.labels);
  config.annotations = to_labels(metadata["annotations"]);
  return plan;
}

Result<ContainerConfig> build_container_config(const ContainerStart& start, const NodeFacts& facts,
                                               const EnvSources& sources, Volumes& volumes) {
  const Value& container = start.container;
  ContainerConfig config;
  config.name = container["name"].str();
  config.attempt = start.attempt;
  config.image = start.image.id;
  DIBS_TRY(config.env, make_environment(start.pod, container, facts, start.addresses, sources));
  add_hostname(start.pod, facts, config.env);
  add_given(start.devices.env, config.env);
  DIBS_TRY(auto security, effective_security(start.pod, container, start.image, facts));
  config.security = std::move(security.security);
  config.command = expanded(container["command"], config.env);
  config.args = expanded(container["args"], config.env);
  config.working_dir = container["workingDir"].str();
  DIBS_TRY(config.mounts, volumes.mounts(start.pod, container, config.env, start.volume_images));
  DIBS_TRY(config.devices, volumes.devices(start.pod, container));
  DIBS_CHECK(add_own_files(start, volumes, config));
  config.cdi_devices = start.devices.cdi_ids;
  for (const auto& mount : start.devices.mounts) {
    config.mounts.push_back(
        {mount.container_path, mount.host_path, mount.read_only, Propagation::none});
  }
  for (const auto& node : start.devices.nodes) {
    config.devices.push_back({node.container_path, node.host_path, node.permissions});
  }
  config.annotations = start.devices.annotations;
  config.log_path = cat(config.name, '/', start.attempt, ".log");
  config.stdin_open = container["stdin"].as_bool();
  config.stdin_once = container["stdinOnce"].as_bool();
  config.tty = container["tty"].as_bool();
  config.stop_signal = container["lifecycle"]["stopSignal"].str();
  config.limits = container_limits(start.pod, container, facts);

  add_pod_labels(start.pod, config.labels);
  config.labels[kContainerNameLabel] = config.name;
  config.annotations[kRestartCountAnnotation] = std::to_string(start.attempt);
  config.annotations[kContainerHashAnnotation] = container_hash(container);
  config.annotations[kTerminationPathAnnotation] = container["terminationMessagePath"].str();
  config.annotations[kTerminationPolicyAnnotation] = container["terminationMessagePolicy"].str();
  const Value& grace = start.pod["spec"]["terminationGracePeriodSeconds"];
  if (grace.is_integer()) {
    config.annotations[kGracePeriodAnnotation] = std::to_string(grace.as_int());
  }
  return config;
}

std::string pod_text(const Value& pod) {
  const Value& metadata = pod["metadata"];
  return cat(metadata["name"].as_string(), '_', metadata["namespace"].as_string(), '(',
             metadata["uid"].as_string(), ')');
}

std::string container_hash(const Value& container) {
  // Only name and image: what else may change of a running container does not restart it.
  const std::string text =
      json::write(Value::object({{"name", container["name"]}, {"image", container["image"]}}));
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 16777619U;
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (int shift = 28; shift >= 0; shift -= 4) out.push_back(kDigits[(hash >> shift) & 0xfU]);
  return out;
}

}  // namespace dibs::node
