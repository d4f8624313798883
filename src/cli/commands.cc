#include "cli/commands.h"
#include "bench/allocator.h"
#include "bench/scheduler.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/plug_points.h"
#include "cdi/spec.h"
#include "cli/backup.h"
#include "cli/command_line.h"
#include "cli/etcd_flags.h"
#include "cli/image.h"
#include "cli/pki.h"
#include "cli/process.h"
#include "cli/run_controllers.h"
#include "cli/run_driver.h"
#include "cli/run_node.h"
#include "cli/run_scheduler.h"
#include "cli/select.h"
#include "cli/serve.h"
#include "cli/store_commands.h"
#include "cli/why.h"
#include "drivers/drivers.h"
#include "drivers/gpu/profile.h"
#include "drivers/net/cni/plugins.h"
#include "node/runtime/pick_runtime.h"
#include "store/stores.h"

namespace dibs::cli {
namespace {

constexpr const char* kVersion = "dibs 0.1.0";

const Flag::Form kFile = {.type = "FILE"};
const Flag::Form kRequired = {.required = true};
const Flag::Form kHidden = {.hidden = true};
const Flag::Form kHasValue = {.has_value = true};
const Flag::Form kCommas = {.commas = true};
const Flag::Form kLastWins = {.last_wins = true};
Flag::Form env(const char* variable) { return {.env = variable}; }
Flag::Form one_of(std::vector<std::string> words) { return {.one_of = std::move(words)}; }

Flags both(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Flags that several commands have.

Flag kubeconfig(std::string& file) {
  return {"--kubeconfig", &file, "How to reach the API server (default: as kubectl does)", kFile};
}

Flag context(std::string& name) {
  return {"--context", &name, "Context of the kubeconfig (default: its current one)"};
}

Flag data_dir(std::string& folder) {
  return {"--data-dir", &folder, "Folder for everything that lasts (default: ~/.local/share/dibs)",
          env("DIBS_DATA_DIR")};
}

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

Flag insecure_registries(std::vector<std::string>& registries) {
  return {"--insecure-registries", &registries,
          "HOST:PORT of registries to ask without TLS, or whatever their certificate is", kCommas};
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
       "Percentage of their disk in use above which unused images are removed; 100: never"},
      {"--image-gc-low-threshold", &disk.image_gc_low, "Percentage at which that ends"},
      {"--container-log-max-size", &disk.log_max_size,
       "Size at which a container's log is rotated"},
      {"--container-log-max-files", &disk.log_max_files, "Log files that a container has at most"},
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

Flag store(std::string& name) {
  return {"--store", &name, described("Where objects are kept", store::store_kinds()),
          one_of(names_of(store::store_kinds()))};
}

Flag feature_gates(std::string& gates) {
  return {"--feature-gates", &gates, "GATE=true|false, with commas between them"};
}

Flag release_of_gates(std::string& release) {
  return {
      "--release", &release,
      "Kubernetes release whose feature gates and ways count (default: the gates of 1.37, the ways "
      "with classic claims of the server)"};
}

Flag grace_period(Duration& period) {
  return {"--node-monitor-grace-period", &period,
          "How long a node may be silent before it counts as unreachable"};
}

Flag explain_events(bool& explain) {
  return {"--explain-events", &explain,
          "For a pod without a node, a second event that says what every node lacks"};
}

Flag log_level(std::string& level) {
  return {"--log-level", &level, "What to log", one_of({"debug", "info", "warn", "error", "off"})};
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

// Flags command by command.

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
       "Kubernetes release to answer as: 1.27, 1.30, 1.32, 1.34, 1.36 or 1.37 (default: 1.37, with "
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
      {"--max-requests-inflight", &flags.max_requests,
       "Seats of requests that are worked on at once, with those of the next flag", kLastWins},
      {"--max-mutating-requests-inflight", &flags.max_mutating_requests,
       "More of them: all are shared by priority, not by verb", kLastWins},
      {"--token-auth-file", &flags.token_auth_file,
       "CSV file of static bearer tokens: token,user,uid,\"group,group\""},
      {"--audit-log-path", &flags.audit_log_path,
       "File for the audit log, a line of JSON for each event; - is standard output"},
      {"--audit-policy-file", &flags.audit_policy_file,
       "Policy of audit.k8s.io/v1 that says what the audit log tells"},
      {"--audit-log-maxsize", &flags.audit_log_maxsize,
       "Megabytes at which the audit log's file is moved aside; 0: never"},
      {"--audit-log-maxage", &flags.audit_log_maxage,
       "Days that files moved aside are kept; 0: for ever"},
      {"--audit-log-maxbackup", &flags.audit_log_maxbackup,
       "Files moved aside that are kept; 0: all"},
      {"--encryption-provider-config", &flags.encryption_provider_config,
       "EncryptionConfiguration of apiserver.config.k8s.io/v1: which resources are encrypted on "
       "the "
       "disk, and how"},
      {"--service-cluster-ip-range", &flags.service_range,
       "CIDR of Service addresses, for the cluster's life; 10.0.0.0/24, or another where that is "
       "not free on this machine"},
      {"--service-account-issuer", &flags.issuer, "Issuer of service account tokens"},
      {"--shutdown-delay-duration", &flags.shutdown_delay,
       "How long it goes on serving after SIGTERM while /readyz says that it ends"},
      log_level(flags.log_level),
      {"--threads", &flags.threads, "Threads that serve connections (default: one per core)"},
  };
}

Flags server_flags(ServeFlags& flags) { return both(serving_flags(flags), etcd_flags(flags.etcd)); }

Flags up_flags(ServeFlags& flags) {
  return both(
      both(server_flags(flags), disk_flags(flags.disk)),
      {
          {"--nodes", &flags.nodes, "Nodes in this process: node-0, node-1, …", kLastWins},
          {"--node-prefix", &flags.node_prefix, "What their names begin with (default: node-)"},
          {"--drivers", &flags.drivers,
           described("Device drivers of each node, with commas between them",
                     drivers::driver_kinds()),
           kCommas},
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
          grace_period(flags.grace_period),
          log_level(flags.log_level),
      },
      election_flags(flags.election));
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
          {"--port", &flags.port, "Port for that; 0 picks a free one, -1 has none"},
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

Flags select_flags(SelectFlags& flags) {
  return {
      {"EXPRESSION", &flags.expression,
       "The selector, as in a DeviceClass or a claim (docs/cel.md)"},
      {"-f,--filename", &flags.files,
       "ResourceSlices in YAML or JSON: files, folders, or - for standard input", kFile},
      {"--kubeconfig", &flags.kubeconfig, "Take the ResourceSlices of this cluster instead", kFile},
      context(flags.context),
      {"-o,--output", &flags.output, "How to print the devices", one_of({"table", "json", "name"})},
      {"--explain", &flags.explain, "Show all devices, with type, estimated and actual costs"},
      {"--stored", &flags.stored, "Read the expression as one that was accepted before"},
      {"--release", &flags.release, "Kubernetes release whose language is spoken, from 1.31 on"},
      feature_gates(flags.feature_gates),
      {"--cases", &flags.cases,
       "Compare with recorded answers in these files (.json, .jsonl) instead", kFile},
  };
}

Flags why_flags(WhyFlags& flags) {
  return {
      {"WHAT", &flags.what, "pod/NAME or claim/NAME", kRequired},
      {"-n,--namespace", &flags.name_space, "Namespace (default: that of the context)"},
      kubeconfig(flags.kubeconfig),
      context(flags.context),
      {"-o,--output", &flags.output, "How to print the answer (docs/why.md)",
       one_of({"text", "json"})},
      {"--config", &flags.config, "The scheduler's KubeSchedulerConfiguration, where it has one",
       kFile},
      release_of_gates(flags.release),
      feature_gates(flags.feature_gates),
  };
}

/// Each can be given by a variable of its name in capitals, as those of upstream's driver can.
Flags with_variables(Flags flags) {
  for (Flag& flag : flags) {
    flag.form.env = to_upper(flag.name.substr(2));
    std::replace(flag.form.env.begin(), flag.form.env.end(), '-', '_');
  }
  return flags;
}

Flags driver_flags(DriverFlags& flags) {
  auto& driver = flags.driver;
  auto& process = flags.process;
  return both(
      with_variables({
          {"--node-name", &driver.node_name, "Node whose devices these are", kRequired},
          {"--kube-api-qps", &flags.api_qps, "Accepted, but not needed", kHidden},
          {"--kube-api-burst", &flags.api_burst, "Accepted, but not needed", kHidden},
          {"--device-profile", &driver.profile,
           cat("What the devices are: ", any_name_of(drivers::profile_kinds()))},
          {"--driver-name", &driver.driver_name,
           "Name of the driver (default: PROFILE.example.com)"},
          {"--num-devices", &driver.devices, "How many GPUs or network interfaces"},
          {"--gpu-partitions", &driver.gpu_partitions, "Parts that each GPU can be divided into"},
          {"--gpu-pcie-roots", &driver.gpu_pcie_roots,
           "PCIe roots of the GPUs in turn, such as pci0000:80, with commas between them (default: "
           "they do not say)",
           kCommas},
          {"--gpu-allow-multiple-allocations", &driver.gpu_allow_multiple_allocations,
           "Let claims share a GPU by memory and compute"},
          {"--gpu-device-status", &driver.gpu_device_status,
           "Write uuid, model and driver version into the status of claims"},
          {"--device-metadata", &driver.device_metadata,
           "Let containers read what their devices are, from files that the API names"},
          {"--binding-conditions", &driver.binding_conditions,
           "Pods wait until their device says that it can be bound"},
          {"--cpu-numa-nodes", &driver.cpu_numa_nodes, "NUMA nodes of the cpu profile"},
          {"--cpus-per-numa-node", &driver.cpus_per_numa_node, "CPUs of each of them"},
          {"--kubelet-registrar-directory-path", &driver.registry_dir,
           "Where the node's agent finds plugins"},
          {"--kubelet-plugins-directory-path", &driver.plugins_dir,
           "Folder for folders of plugins"},
          {"--cdi-root", &driver.cdi_root, "Folder for CDI files"},
          {"--pod-uid", &driver.pod_uid, "Uid of the driver's pod, for rolling updates"},
          {"--healthcheck-port", &process.healthcheck_port,
           "Port of the gRPC health service; below 0: none"},
          {"--metrics-port", &process.metrics_port, "Port of /metrics; below 0: none"},
      }),
      {
          kubeconfig(process.kubeconfig),
          context(process.context),
          {"--binding-controller", &driver.binding_controller,
           "With --binding-conditions: let this process say so", kHasValue},
          {"--create-class", &driver.create_class, "Make the driver's class where there is none",
           kHasValue},
          {"--named-resources", &driver.named_resources,
           "Let the node's agent publish the devices, as in release 1.30 (v1alpha2)"},
          {"--extended-resource", &driver.extended_resource,
           "Extended resource that pods may ask for instead of a claim, such as example.com/gpu"},
          log_level(process.log_level),
      });
}

Flags net_driver_flags(NetDriverFlags& flags) {
  auto& node = flags.node;
  auto& control = flags.control;
  auto& process = flags.process;
  auto& selection = flags.ipam.selection;
  return both(
      with_variables({
          {"--node-name", &node.node_name, "Node whose interfaces these are (needed for a node)"},
          {"--kubelet-registrar-directory-path", &node.registry_dir,
           "Where the node's agent finds plugins"},
          {"--kubelet-plugins-directory-path", &node.plugins_dir, "Folder for folders of plugins"},
          {"--cdi-root", &node.cdi_root, "Folder for CDI files"},
          {"--host-device-path", &node.host_device_path,
           "Library that containers get for rdmaAcc (default: none)"},
          {"--ipam-socket", &node.ipam_socket, "Where CNI plugins of the node ask for addresses"},
          {"--network-devices", &node.network_devices,
           "Where the node's agent looks for devices that interfaces of pods are to be"},
          {"--sysfs-root", &node.roots.sysfs, "Where the hardware is described"},
          {"--dev-root", &node.roots.dev, "Where the files of RDMA devices are"},
          {"--recorded-links", &node.recorded_links,
           "Interfaces as `ip -j -d address show` prints them, in a file (default: the kernel's)"},
          {"--resource-pools", &node.resource_pools,
           "File that says which devices make up which resources (default: none)"},
          {"--include-interfaces", &node.include_interfaces,
           "Patterns of interfaces that count although they look like those of pods", kCommas},
          {"--exclude-interfaces", &node.exclude_interfaces,
           "Patterns of interfaces that do not count", kCommas},
          {"--pod-uid", &node.pod_uid, "Uid of the driver's pod, for rolling updates"},
          {"--leader-election", &control.election.leader_election,
           "With --controller: several instances may run, one of them works"},
          {"--leader-election-namespace", &control.election.lease_namespace,
           "Where their lease is"},
          {"--healthcheck-port", &process.healthcheck_port,
           "Port of the gRPC health service; below 0: none"},
          {"--metrics-port", &process.metrics_port, "Port of /metrics; below 0: none"},
      }),
      {
          {"--install-namespace", &selection.install_namespace,
           "Namespace of SpiderMultusConfigs where none is said"},
          {"--cluster-network", &selection.cluster_network,
           "NAMESPACE/NAME of the network of eth0 where a pod names none (default: the node's)"},
          {"--subnet-match", &flags.subnet_match,
           "Whether a pool's subnet must be one of the interface on the node",
           one_of({"auto", "strict", "off"})},
          {"--multus-name-selects", &selection.multus_name_selects,
           "Choose a pool for the networks that it names where nothing else chooses one",
           kHasValue},
          {"--enable-ipv4", &selection.ipv4, "Give IPv4 addresses", kHasValue},
          {"--enable-ipv6", &selection.ipv6, "Give IPv6 addresses", kHasValue},
          {"--enable-spidersubnet", &selection.subnets,
           "Let pods name subnets, which make pools for them", kHasValue},
          {"--enable-statefulset", &flags.ipam.stateful_sets,
           "Let pods of a StatefulSet keep their addresses", kHasValue},
          {"--controller", &flags.controller,
           "Run the half for the whole cluster, not that of a node"},
          {"--allow-immediate", &control.allow_immediate,
           "With --controller: allocate classic claims that wait for no pod, too"},
          kubeconfig(process.kubeconfig),
          context(process.context),
          log_level(process.log_level),
      });
}

Flag image_folder(ImageFlags& flags) {
  return {"--images", &flags.folder, "Folder of the image store (default: the machine's own)",
          env("DIBS_IMAGES")};
}

Flags import_flags(ImageFlags& flags) {
  return {
      image_folder(flags),
      {"FILE", &flags.file, "docker archive, OCI archive, or folder of an OCI layout", kRequired},
      {"NAME", &flags.name, "Name to give it, where it has none or another one is wanted"},
  };
}

Flags list_flags(ImageFlags& flags) { return {image_folder(flags)}; }

Flags remove_flags(ImageFlags& flags) {
  return {image_folder(flags), {"NAME", &flags.names, "Names or ids", kRequired}};
}

// Flags of commands about places where objects are kept.

Flags place_flags(PlaceFlags& flags) {
  Flags etcd = etcd_flags(flags.etcd);
  // The place says that.
  std::erase_if(etcd, [](const Flag& flag) { return flag.name.starts_with("--etcd-endpoints"); });
  return both(std::move(etcd),
              {
                  {"--encryption-provider-config", &flags.encryption_provider_config,
                   "EncryptionConfiguration that values are encrypted with", kFile},
              });
}

Flag resume(bool& resume) {
  return {"--resume", &resume, "Go on with what was begun and not ended"};
}

Flag overwrite(bool& overwrite) {
  return {"--overwrite", &overwrite, "Replace what is there already"};
}

Flags copy_flags(CopyFlags& flags) {
  return both({{"--from", &flags.from, "sqlite:FOLDER or etcd:URL,URL", kRequired},
               {"--to", &flags.to, "The same, and empty", kRequired},
               resume(flags.resume),
               overwrite(flags.overwrite)},
              place_flags(flags.place));
}

Flags check_flags(CheckFlags& flags) {
  return both({{"PLACE", &flags.place_text, "sqlite:FOLDER or etcd:URL,URL", kRequired}},
              place_flags(flags.place));
}

Flags backup_flags(BackupFlags& flags) {
  return both({{"--to",
                &flags.to,
                "File to write, mode 0600; it holds all secrets",
                {.type = "FILE", .required = true}},
               kubeconfig(flags.kubeconfig),
               context(flags.context),
               {"--from", &flags.from, "sqlite:FOLDER or etcd:URL,URL, where no server runs"},
               {"--data-dir", &flags.data_dir,
                "Data folder of the server, whose keys and certificates (pki) go into it, too"}},
              place_flags(flags.place));
}

Flags restore_flags(RestoreFlags& flags) {
  return both(
      {{"--from", &flags.from, "File that `dibs backup` wrote", {.type = "FILE", .required = true}},
       {"--data-dir", &flags.data_dir, "Data folder to make: objects, keys and certificates"},
       {"--to", &flags.to, "sqlite:FOLDER or etcd:URL,URL for the objects instead, empty"},
       {"--kubeconfig", &flags.kubeconfig, "Restore on this live server instead", kFile},
       context(flags.context),
       resume(flags.resume),
       overwrite(flags.overwrite),
       {"--abandon", &flags.abandon,
        "With --kubeconfig: end a restore that was begun, as far as it came"}},
      place_flags(flags.place));
}

Flags pki_flags(PkiFlags& flags) { return {data_dir(flags.data_dir)}; }

Flags pki_kubeconfig_flags(PkiFlags& flags) {
  return {
      {"WHO", &flags.who, "node/NAME, scheduler or controllers", kRequired},
      data_dir(flags.data_dir),
      {"--server", &flags.server,
       "URL of the server (default: that of the kubeconfig in the data folder)"},
      {"--out", &flags.out, "File to write, mode 0600 (default: standard output)"},
  };
}

using Files = std::vector<std::string>;

Flags bench_allocator_flags(Files& files) {
  return {
      {"FILE", &files, "Cases: .json, .jsonl, either packed with gzip", kRequired},
  };
}

Flags bench_scheduler_flags(bench::SchedulerOptions& flags) {
  return {
      {"FILE", &flags.files, "Workloads: performance-config.yaml of scheduler_perf", kRequired},
      {"--workload", &flags.workload, "Only those named so: TestCase/workload, or a part of it"},
      {"--label", &flags.label, "Only those with this label"},
      {"--emulate-release", &flags.release, "Kubernetes release to be (default: 1.37)"},
      store(flags.store),
      {"--etcd-endpoints", &flags.etcd_endpoints, "With --store etcd: URLs of its members",
       kCommas},
      {"--all-controllers", &flags.all_controllers, "Run all controllers, not only that of claims"},
      {"--kubeconfig", &flags.kubeconfig,
       "Of an empty cluster that runs with its scheduler, instead of one in here"},
      {"--list", &flags.list, "Name the workloads and their labels, run none"},
  };
}

/// Of a command that returns its text: print, and exit as it says.
template <typename Outcome>
int print(const Outcome& outcome) {
  std::cout << outcome.output << std::flush;
  std::cerr << outcome.errors;
  return outcome.status;
}

int bench_scheduler(const bench::SchedulerOptions& options) {
  begin_process("error");
  return print(bench::bench_scheduler(options, [](const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }));
}

/// `table` names the flags, `run` takes what they were set to.
template <typename Values, typename Run>
Command command(const char* path, const char* about, Flags (*table)(Values&), Run run,
                const char* footer = "") {
  const auto values = std::make_shared<Values>();
  return {path, about, table(*values), [values, run] { return run(*values); }, footer};
}

int up(ServeFlags& flags) {
  flags.whole_cluster = true;
  return serve(flags, "up");
}

Command cni_command(const std::string& name, const char* about) {
  return {cat("cni ", name), about, {}, [name] { return drivers::net::run_cni_plugin(name); }};
}

std::vector<Command> all_commands() {
  return {
      command("up", "Run a cluster on this machine, until Ctrl-C", up_flags, up),
      command("apiserver", "Run the API server alone", server_flags,
              [](const ServeFlags& flags) { return serve(flags, "apiserver"); }),
      command("controllers", "Run the controllers of a cluster alone", controllers_flags,
              run_controllers),
      command("scheduler", "Run the scheduler of a cluster alone", scheduler_flags, run_scheduler),
      command("node", "Run the agent of a node alone", node_flags, run_node),
      command(
          "select", "Show which devices an expression chooses", select_flags,
          [](const SelectFlags& flags) { return print(select(flags, std::cin)); },
          "Exit status: 0 a device matched, 1 none did, 2 wrong usage, expression or input.\n"
          "With --cases: 0 all are the same, 1 some differ, 2 a file cannot be read."),
      command(
          "why", "Say why a pod is not placed, or why there; what a claim waits for", why_flags,
          [](const WhyFlags& flags) { return print(why(flags)); },
          "Exit status: 0 placed or allocated, 1 not found or an error, 2 pending."),
      command("driver gpu", "Make-believe GPUs, network interfaces or CPUs", driver_flags,
              run_gpu_driver),
      command("driver net", "Interfaces and addresses of the machines' networks, as Spiderpool",
              net_driver_flags, run_net_driver),
      cni_command("spiderpool", "CNI plugin: addresses from pools"),
      cni_command("coordinator", "CNI plugin: ways to the host, routes of several interfaces"),
      cni_command("ifacer", "CNI plugin: bonds and VLAN devices of the host"),
      command("store copy", "Copy a cluster's objects from one place to another, and compare",
              copy_flags, copy_store),
      command("store check", "Say what is wrong with a cluster's objects where they are kept",
              check_flags, check_store,
              "Nothing is changed; a server may be running on it.\n"
              "Exit status: 0 nothing is wrong, 1 something is or it cannot be read."),
      command("backup", "Write all objects of a cluster to a file", backup_flags, take_backup),
      command("restore", "Make a cluster of what `dibs backup` wrote", restore_flags,
              restore_backup),
      command("image import", "Take images from an archive or an OCI layout", import_flags,
              import_image),
      command("image list", "Show what is there", list_flags, list_images),
      command("image rm", "Remove images", remove_flags, remove_images),
      command("pki export", "Print the keys that all servers of a cluster share, into a pipe",
              pki_flags, export_pki),
      command("pki import", "Take them, before this machine's first server starts", pki_flags,
              import_pki),
      command("pki kubeconfig", "Make a kubeconfig for a part of the cluster on another machine",
              pki_kubeconfig_flags, make_part_kubeconfig),
      command(
          "bench allocator", "Recorded cases of the allocator of Kubernetes", bench_allocator_flags,
          [](const Files& files) { return print(bench::bench_allocator(files)); },
          "Exit status: 0 all are the same, 1 some differ or have no answer, 2 a file cannot be "
          "read."),
      command("bench scheduler-perf", "Scheduling workloads of Kubernetes, on a cluster in here",
              bench_scheduler_flags, bench_scheduler,
              "Exit status: 0 all ran or were skipped, 1 one failed, 2 a file cannot be read. "
              "Files of "
              "the store lie in DIBS_BENCH_DIR (default: /var/tmp) while it runs."),
  };
}

}  // namespace

int run(int argc, char** argv) {
  // Under the name of a plugin it is that plugin.
  const std::string called = std::filesystem::path(argc > 0 ? argv[0] : "").filename();
  const auto plugins = drivers::net::cni_plugin_names();
  if (std::find(plugins.begin(), plugins.end(), called) != plugins.end()) {
    return drivers::net::run_cni_plugin(called);
  }
  const CommandLine line = {
      "dibs",
      "Dynamic Resource Allocation for Kubernetes, in one binary.",
      kVersion,
      {{"driver", "Run a device driver of a node"},
       {"cni", "What CNI runtimes call as a plugin, by a link of that name"},
       {"store", "Where the objects of a cluster are kept"},
       {"image", "Images that containers on this machine can run"},
       {"pki", "Keys of the cluster, for more machines"},
       {"bench", "Compare with recorded answers, and measure"}},
      all_commands(),
  };
  return run(line, argc, argv);
}

}  // namespace dibs::cli
