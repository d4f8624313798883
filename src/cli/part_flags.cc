#include "cli/part_flags.h"

#include "base/plug_points.h"
#include "cdi/spec.h"
#include "cli/common_flags.h"
#include "cli/etcd_flags.h"
#include "drivers/drivers.h"
#include "node/runtime/pick_runtime.h"

namespace dibs::cli {
namespace {

// As many as a process can hold, and far more than a cluster of Kubernetes has.
constexpr double kMostNodes = 100'000;

Flag runtime(std::string& name) {
  return {"--runtime", &name, described("What runs containers", node::runtime_kinds()),
          one_of(names_of(node::runtime_kinds()))};
}

Flag images(std::string& folder) {
  return {"--images", &folder, "Folder of images (default: as `dibs image`)", env("DIBS_IMAGES")};
}

Flag image_alias(std::vector<std::string>& names) {
  return {"--image-alias", &names,
          "Names under which the image that comes with dibs is there, with commas between them",
          kCommas};
}

Flags disk_flags(node::DiskOptions& disk) {
  return {
      {"--eviction-hard", &disk.eviction_hard,
       "SIGNAL<AMOUNT or SIGNAL<PERCENT%, with commas between them: with less room on its disk a "
       "node sends pods away; signals: nodefs.available, nodefs.inodesFree, imagefs.available, "
       "imagefs.inodesFree"},
      {"--eviction-pressure-transition-period", &disk.pressure_transition,
       "How long a disk must have had room again before the node takes pods"},
      {"--image-gc-high-threshold", &disk.image_gc_high,
       "Percentage of their disk in use above which unused images are removed; 100: never",
       between(0, 100)},
      {"--image-gc-low-threshold", &disk.image_gc_low, "Percentage at which that ends",
       between(0, 100)},
      {"--container-log-max-size", &disk.log_max_size,
       "Size at which a container's log is rotated"},
      {"--container-log-max-files", &disk.log_max_files, "Log files that a container has at most",
       between(2, 1'000'000)},
      {"--local-storage-capacity-isolation", &disk.isolation,
       "Enforce emptyDir.sizeLimit and limits of ephemeral-storage", kHasValue},
  };
}

Flag network_namespaces(std::vector<std::string>& names) {
  return {"--network-namespaces", &names,
          "Namespaces whose network attachment definitions every pod may name, with commas between "
          "them; * stands for all",
          kCommas};
}

Flag cluster_domain(std::string& domain) {
  return {"--cluster-domain", &domain, "Domain that names of Services and pods end in"};
}

Flag cdi_newest(std::string& version) {
  Flag flag = {"--cdi-newest-version", &version,
               "Latest version of CDI files that containers may use (default: all there are)"};
  flag.form.one_of = cdi::versions();
  return flag;
}

Flag unsafe_sysctls(std::vector<std::string>& patterns) {
  return {"--allowed-unsafe-sysctls", &patterns,
          "Kernel settings that pods may have besides the safe ones, with commas between them; a "
          "* at the end stands for any",
          kCommas};
}

Flag grace_period(Duration& period) {
  return {"--node-monitor-grace-period",
          &period,
          "How long a node may be silent before it counts as unreachable",
          {.least = 1}};
}

Flags autoscaler_flags(controllers::AutoscalerOptions& options) {
  return {
      {"--horizontal-pod-autoscaler-sync-period", &options.sync_period,
       "How often each HorizontalPodAutoscaler is looked at"},
      {"--horizontal-pod-autoscaler-downscale-stabilization", &options.downscale_stabilization,
       "How far back the most replicas that were asked for count before going down"},
      {"--horizontal-pod-autoscaler-tolerance", &options.tolerance,
       "By which share a metric may be off its target without any change", between(0, 1'000)},
      {"--horizontal-pod-autoscaler-cpu-initialization-period", &options.cpu_initialization_period,
       "How long processor time of a new pod may be left out"},
      {"--horizontal-pod-autoscaler-initial-readiness-delay", &options.initial_readiness_delay,
       "How long after its start a pod's changes count as its first readiness"},
  };
}

Flag explain_events(bool& explain) {
  return {kExplainEvents, &explain,
          "For a pod without a node, a second event that says what every node lacks (default: in "
          "dibs up without --emulate-release; --explain-events=false: none)"};
}

Flag metrics_address(std::string& address) {
  return {"--metrics-bind-address", &address,
          "HOST:PORT to serve /metrics, /healthz, /livez and /readyz at (default: nowhere)"};
}

Flags election_flags(ElectionFlags& flags) {
  return {
      {"--leader-elect", &flags.elect, "Run only while this process leads", kHasValue},
      {"--leader-elect-lease-duration", &flags.lease_duration,
       "How long others wait for a leader that is silent (default: 15s)"},
      {"--leader-elect-renew-deadline", &flags.renew_deadline,
       "How long a leader tries to renew its lease before it stops (default: 10s)"},
      {"--leader-elect-retry-period", &flags.retry_period,
       "Time between two tries to get or to renew it (default: 2s)"},
      {"--leader-elect-resource-name", &flags.name,
       "Name of the lease (default: that of upstream's component)"},
      {"--leader-elect-resource-namespace", &flags.name_space,
       "Its namespace (default: kube-system)"},
      {"--leader-elect-resource-lock", &flags.lock, "What the lease is", one_of({"leases"})},
  };
}

Flags serving_flags(ServeFlags& flags) {
  return {
      data_dir(flags.data_dir),
      {"--bind", &flags.bind, "HOST:PORT to listen on; port 0 picks a free one"},
      {"--advertise-address", &flags.advertise_address,
       "IP address by which other machines reach this server (default: the host of --bind)"},
      {"--tls-san", &flags.tls_sans,
       "More names and addresses of this server, for its certificate, with commas between them",
       kCommas},
      {"--kubeconfig-out", &flags.kubeconfig_out,
       "Where to write the kubeconfig (default: kubeconfig in the data folder)"},
      store(flags.store),
      {"--emulate-release", &flags.release,
       "Kubernetes release to answer as, from 1.27 to 1.37 (default: 1.37, with "
       "the older versions of resource.k8s.io beside it)"},
      feature_gates(flags.feature_gates),
      {"--runtime-config", &flags.runtime_config,
       "GROUP/VERSION[/RESOURCE]=true|false, api/all|ga|beta|alpha=…, with commas between them"},
      {"--enable-admission-plugins", &flags.enabled_plugins, "Admission plugins to run (all do)",
       kCommas},
      {"--disable-admission-plugins", &flags.disabled_plugins, "Admission plugins to leave out",
       kCommas},
      {"--admission-control-config-file", &flags.admission_config_file,
       "An AdmissionConfiguration (apiserver.config.k8s.io/v1); PodSecurity takes one", kFile},
      {"--max-requests-inflight",
       &flags.max_requests,
       "Seats of requests that are worked on at once, with those of the next flag",
       {.last_wins = true, .least = 0, .most = 1'000'000}},
      {"--max-mutating-requests-inflight",
       &flags.max_mutating_requests,
       "More of them: all are shared by priority, not by verb",
       {.last_wins = true, .least = 0, .most = 1'000'000}},
      {"--token-auth-file", &flags.token_auth_file,
       "CSV file of static bearer tokens: token,user,uid,\"group,group\""},
      {"--audit-log-path", &flags.audit_log_path,
       "File for the audit log, a line of JSON for each event; - is standard output"},
      {"--audit-policy-file", &flags.audit_policy_file,
       "Policy of audit.k8s.io/v1 that says what the audit log tells"},
      {"--audit-log-maxsize", &flags.audit_log_maxsize,
       "Megabytes at which the audit log's file is moved aside; 0: never", between(0, 1'000'000)},
      {"--audit-log-maxage", &flags.audit_log_maxage,
       "Days that files moved aside are kept; 0: for ever", between(0, 36'500)},
      {"--audit-log-maxbackup", &flags.audit_log_maxbackup,
       "Files moved aside that are kept; 0: all", between(0, 1'000'000)},
      {"--encryption-provider-config", &flags.encryption_provider_config,
       "EncryptionConfiguration of apiserver.config.k8s.io/v1: which resources are encrypted on "
       "the "
       "disk, and how"},
      {"--service-cluster-ip-range", &flags.service_range,
       "CIDR of Service addresses, for the cluster's life; 10.0.0.0/24, or another where that is "
       "not free on this machine"},
      {"--metric-resolution", &flags.metric_resolution,
       "How often nodes are measured, for metrics.k8s.io; 0: it is not served"},
      {"--usage-size", &flags.usage_size,
       "Megabytes for the record of who held which devices when (dibs usage); 0: none is kept",
       between(0, 1'000'000)},
      {"--shutdown-delay-duration", &flags.shutdown_delay,
       "How long it goes on serving after SIGTERM while /readyz says that it ends"},
      log_level(flags.log_level),
      {"--threads", &flags.threads, "Threads that serve connections (default: one per core)",
       between(0, 1024)},
  };
}

}  // namespace

Flags server_flags(ServeFlags& flags) {
  return both(both(serving_flags(flags), api_flags(flags.api)), etcd_flags(flags.etcd));
}

Flags up_flags(ServeFlags& flags) {
  flags.metric_resolution = std::chrono::seconds(15);
  // Shares of the disk are for machines that do nothing else: on somebody's own a tenth of it may
  // be plenty, and the first pod would be sent away.
  flags.disk.eviction_hard =
      "imagefs.available<1Gi,imagefs.inodesFree<1%,nodefs.available<1Gi,nodefs.inodesFree<1%";
  return both(
      both(both(server_flags(flags), disk_flags(flags.disk)), autoscaler_flags(flags.autoscaler)),
      {
          {"NAME", &flags.name, "The cluster's name, where this machine has several"},
          {"--config", &flags.config,
           "A YAML file of these flags, and of nodes of several shapes (docs/config.md); a flag "
           "beside it wins",
           kFile},
          {"-d,--detach", &flags.detach, "Go on in the background once the server is ready"},
          {"--wait", &flags.wait, "Be ready only when all nodes are"},
          {"--merge", &flags.merge,
           "Put the cluster into your kubeconfig, too, as its current context"},
          {"--nodes",
           &flags.nodes,
           "Nodes in this process: node-0, node-1, …",
           {.last_wins = true, .least = 0, .most = kMostNodes}},
          {"--node-prefix", &flags.node_prefix, "What their names begin with (default: node-)"},
          {"--drivers", &flags.drivers,
           described("Device drivers of each node, with commas between them, "
                     "NAME:OPTION=VALUE+OPTION=VALUE "
                     "with flags of `dibs driver` for options",
                     drivers::driver_kinds()),
           kCommas},
          {"--driver", &flags.driver_programs,
           "A driver of your own to run beside each node: a program, with arguments behind blanks; "
           "may be repeated"},
          {"--node-address", &flags.node_address,
           "Address where the agents of nodes listen (default: the host of --bind)"},
          cluster_domain(flags.cluster_domain),
          runtime(flags.runtime),
          images(flags.images),
          image_alias(flags.image_aliases),
          insecure_registries(flags.insecure_registries),
          cdi_newest(flags.cdi_newest),
          unsafe_sysctls(flags.allowed_unsafe_sysctls),
          network_namespaces(flags.network_namespaces),
          grace_period(flags.node_monitor_grace_period),
          explain_events(flags.explain_events),
          {"--scheduler-config", &flags.scheduler_config,
           "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)", kFile},
      });
}

Flags controllers_flags(ControllersFlags& flags) {
  return both(
      {
          kubeconfig(flags.kubeconfig),
          context(flags.context),
          {"--use-service-account-credentials", &flags.use_accounts,
           "Let each controller act as its own service account of kube-system"},
          {"--service-account-private-key-file", &flags.account_key_file,
           "PEM of the key that signs service accounts' tokens, for Secrets that hold them"},
          {"--cluster-signing-cert-file", &flags.signing_certificate_file,
           "PEM of the authority that signs CertificateSigningRequests"},
          {"--cluster-signing-key-file", &flags.signing_key_file, "PEM of its key"},
          grace_period(flags.grace_period),
          release_of_gates(flags.release),
          feature_gates(flags.feature_gates),
          metrics_address(flags.metrics_address),
          log_level(flags.log_level),
      },
      both(autoscaler_flags(flags.autoscaler), election_flags(flags.election)));
}

Flags scheduler_flags(SchedulerFlags& flags) {
  return both(
      {
          kubeconfig(flags.kubeconfig),
          context(flags.context),
          {"--config", &flags.config,
           "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)", kFile},
          release_of_gates(flags.release),
          feature_gates(flags.feature_gates),
          explain_events(flags.explain_events),
          metrics_address(flags.metrics_address),
          log_level(flags.log_level),
      },
      election_flags(flags.election));
}

Flags node_flags(NodeFlags& flags) {
  return both(
      {
          kubeconfig(flags.kubeconfig),
          context(flags.context),
          {"--name", &flags.name, "Name of the node (default: the host's)"},
          {"--root-dir", &flags.root_dir, "Folder for pods, plugins and checkpoints"},
          runtime(flags.runtime),
          images(flags.images),
          image_alias(flags.image_aliases),
          insecure_registries(flags.insecure_registries),
          {"--cdi-dirs", &flags.cdi_dirs, "Folders of CDI files (default: /etc/cdi,/var/run/cdi)"},
          {"--log-dir", &flags.log_dir,
           "Folder of containers' logs (default: logs in the root folder)"},
          {"--address", &flags.address, "Address to serve logs, exec and the like on"},
          {"--port", &flags.port, "Port for that; 0 picks a free one, -1 has none",
           between(-1, 65535)},
          {"--node-ip", &flags.node_ip,
           "Address that the node says it has (default: that of the default route)"},
          {"--client-ca-file", &flags.client_ca_file,
           "PEM of the CA whose certificates may use the port", kFile},
          {"--tls-cert-file", &flags.tls_cert_file,
           "Certificate of the port (default: one of its own)", kFile},
          {"--tls-private-key-file", &flags.tls_key_file, "Key of that certificate", kFile},
          {"--node-labels", &flags.labels, "KEY=VALUE, with commas between them", kCommas},
          {"--service-proxy", &flags.service_proxy,
           "Program Services on this machine; false where kube-proxy does", kHasValue},
          {"--service-cluster-ip-range", &flags.service_range,
           "CIDR of the cluster's Service addresses (default: 256 addresses around that of the "
           "Service kubernetes)"},
          {"--cluster-dns", &flags.cluster_dns,
           "Name servers that pods are told of (default: the tenth address of Services, served "
           "here)",
           kCommas},
          cluster_domain(flags.cluster_domain),
          cdi_newest(flags.cdi_newest),
          unsafe_sysctls(flags.allowed_unsafe_sysctls),
          network_namespaces(flags.network_namespaces),
          {"--release", &flags.release, "Kubernetes release to behave as"},
          feature_gates(flags.feature_gates),
          log_level(flags.log_level),
      },
      disk_flags(flags.disk));
}

}  // namespace dibs::cli
