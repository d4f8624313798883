#include "cli/commands.h"

#include <CLI/CLI.hpp>

#include <iostream>

#include "base/time.h"
#include "cli/bench_allocator.h"
#include "cli/bench_scheduler.h"
#include "cli/image.h"
#include "cli/run_controllers.h"
#include "cli/run_driver.h"
#include "cli/run_node.h"
#include "cli/run_scheduler.h"
#include "cli/select.h"
#include "cli/serve.h"
#include "cli/time_zones.h"
#include "cli/why.h"

namespace dibs::cli {
namespace {

constexpr const char* kVersion = "dibs 0.1.0";

// Flags that several commands have.

template <typename Flags>
void add_cluster_flags(CLI::App& command, Flags& flags) {
  command
      .add_option("--kubeconfig", flags.kubeconfig,
                  "How to reach the API server (default: as kubectl does)")
      ->type_name("FILE");
  command.add_option("--context", flags.context,
                     "Context of the kubeconfig (default: its current one)");
}

template <typename Flags>
void add_runtime_flags(CLI::App& command, Flags& flags) {
  command
      .add_option("--runtime", flags.runtime,
                  "What runs containers; auto: real ones where this machine can")
      ->check(CLI::IsMember({"auto", "oci", "runc", "crun", "sim"}))
      ->capture_default_str();
  command.add_option("--images", flags.images, "Folder of images (default: as `dibs image`)")
      ->envname("DIBS_IMAGES");
}

void add_feature_gates(CLI::App& command, std::string& gates) {
  command.add_option("--feature-gates", gates, "GATE=true|false, with commas between them");
}

template <typename Flags>
void add_gates_of_release(CLI::App& command, Flags& flags) {
  command.add_option("--release", flags.release, "Kubernetes release whose feature gates count")
      ->capture_default_str();
  add_feature_gates(command, flags.feature_gates);
}

void add_store(CLI::App& command, std::string& store) {
  command.add_option("--store", store, "Where objects are kept")
      ->check(CLI::IsMember({"sqlite", "memory"}))
      ->capture_default_str();
}

void add_grace_period(CLI::App& command, std::string& period) {
  command
      .add_option("--node-monitor-grace-period", period,
                  "How long a node may be silent before it counts as unreachable")
      ->capture_default_str();
}

void add_explain_events(CLI::App& command, bool& explain) {
  command.add_flag("--explain-events", explain,
                   "For a pod without a node, a second event that says what every node lacks");
}

void add_log_level(CLI::App& command, std::string& level) {
  command.add_option("--log-level", level, "What to log")
      ->check(CLI::IsMember({"debug", "info", "warn", "error", "off"}))
      ->capture_default_str();
}

// Flags command by command.

void add_server_flags(CLI::App& command, ServeFlags& flags) {
  command
      .add_option("--data-dir", flags.data_dir,
                  "Folder for everything that lasts (default: ~/.local/share/dibs)")
      ->envname("DIBS_DATA_DIR");
  command.add_option("--bind", flags.bind, "HOST:PORT to listen on; port 0 picks a free one")
      ->capture_default_str();
  command.add_option("--kubeconfig-out", flags.kubeconfig_out,
                     "Where to write the kubeconfig (default: kubeconfig in the data folder)");
  add_store(command, flags.store);
  command.add_option("--emulate-release", flags.release,
                     "Kubernetes release to answer as: 1.27, 1.30, 1.32, 1.34, 1.36 or 1.37 "
                     "(default: 1.37, with the "
                     "older versions of resource.k8s.io beside it)");
  add_feature_gates(command, flags.feature_gates);
  command.add_option(
      "--runtime-config", flags.runtime_config,
      "GROUP/VERSION[/RESOURCE]=true|false, api/all|ga|beta|alpha=…, with commas between them");
  command
      .add_option("--enable-admission-plugins", flags.enabled_plugins,
                  "Admission plugins to run (all do)")
      ->delimiter(',');
  command
      .add_option("--disable-admission-plugins", flags.disabled_plugins,
                  "Admission plugins to leave out")
      ->delimiter(',');
  command.add_option("--token-auth-file", flags.token_auth_file,
                     "CSV file of static bearer tokens: token,user,uid,\"group,group\"");
  command
      .add_option("--service-cluster-ip-range", flags.service_range, "CIDR of Service addresses")
      ->capture_default_str();
  command.add_option("--service-account-issuer", flags.issuer, "Issuer of service account tokens")
      ->capture_default_str();
  add_log_level(command, flags.log_level);
  command.add_option("--threads", flags.threads,
                     "Threads that serve connections (default: one per core)");
}

void add_controllers_flags(CLI::App& command, ControllersFlags& flags) {
  add_cluster_flags(command, flags);
  add_grace_period(command, flags.grace_period);
  add_log_level(command, flags.log_level);
}

void add_scheduler_flags(CLI::App& command, SchedulerFlags& flags) {
  add_cluster_flags(command, flags);
  command
      .add_option("--config", flags.config,
                  "A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1)")
      ->type_name("FILE");
  add_gates_of_release(command, flags);
  add_explain_events(command, flags.explain_events);
  command.add_option("--leader-elect", flags.leader_elect, "Run only while this process leads")
      ->capture_default_str();
  add_log_level(command, flags.log_level);
}

void add_up_flags(CLI::App& command, ServeFlags& flags) {
  command.add_option("--nodes", flags.nodes, "Nodes in this process: node-0, node-1, …")
      ->take_last()
      ->capture_default_str();
  command
      .add_option("--drivers", flags.drivers,
                  "Device drivers of each node: gpu, net, cpu; with commas between them")
      ->delimiter(',');
  add_runtime_flags(command, flags);
}

void add_node_flags(CLI::App& command, NodeFlags& flags) {
  add_cluster_flags(command, flags);
  command.add_option("--name", flags.name, "Name of the node (default: the host's)");
  command.add_option("--root-dir", flags.root_dir, "Folder for pods, plugins and checkpoints")
      ->capture_default_str();
  add_runtime_flags(command, flags);
  command.add_option("--cdi-dirs", flags.cdi_dirs,
                     "Folders of CDI files (default: /etc/cdi,/var/run/cdi)");
  command.add_option("--log-dir", flags.log_dir,
                     "Folder of containers' logs (default: logs in the root folder)");
  command.add_option("--address", flags.address, "Address to serve logs, exec and the like on")
      ->capture_default_str();
  command.add_option("--port", flags.port, "Port for that; 0 picks a free one, -1 has none")
      ->capture_default_str();
  command
      .add_option("--client-ca-file", flags.client_ca_file,
                  "PEM of the CA whose certificates may use the port")
      ->type_name("FILE");
  command
      .add_option("--tls-cert-file", flags.tls_cert_file,
                  "Certificate of the port (default: one of its own)")
      ->type_name("FILE");
  command.add_option("--tls-private-key-file", flags.tls_key_file, "Key of that certificate")
      ->type_name("FILE");
  command.add_option("--node-labels", flags.labels, "KEY=VALUE, with commas between them")
      ->delimiter(',');
  command.add_option("--cluster-dns", flags.cluster_dns, "Name servers that pods are told of")
      ->delimiter(',');
  command.add_option("--release", flags.release, "Kubernetes release to behave as");
  add_feature_gates(command, flags.feature_gates);
  add_log_level(command, flags.log_level);
}

void add_select_flags(CLI::App& command, SelectFlags& flags) {
  command.add_option("EXPRESSION", flags.expression,
                     "The selector, as in a DeviceClass or a claim (docs/cel.md)");
  command
      .add_option("-f,--filename", flags.files,
                  "ResourceSlices in YAML or JSON: files, folders, or - for standard input")
      ->type_name("FILE");
  command
      .add_option("--kubeconfig", flags.kubeconfig,
                  "Take the ResourceSlices of this cluster instead")
      ->type_name("FILE");
  command.add_option("--context", flags.context,
                     "Context of the kubeconfig (default: its current one)");
  command.add_option("-o,--output", flags.output, "How to print the devices")
      ->check(CLI::IsMember({"table", "json", "name"}))
      ->capture_default_str();
  command.add_flag("--explain", flags.explain,
                   "Show all devices, with type, estimated and actual costs");
  command.add_flag("--stored", flags.stored, "Read the expression as one that was accepted before");
  command
      .add_option("--release", flags.release,
                  "Kubernetes release whose language is spoken, from 1.31 on")
      ->capture_default_str();
  add_feature_gates(command, flags.feature_gates);
  command
      .add_option("--cases", flags.cases,
                  "Compare with recorded answers in these files (.json, .jsonl) instead")
      ->type_name("FILE");
  command.footer(
      "Exit status: 0 a device matched, 1 none did, 2 wrong usage, expression or input.\n"
      "With --cases: 0 all are the same, 1 some differ, 2 a file cannot be read.");
}

void add_why_flags(CLI::App& command, WhyFlags& flags) {
  command.add_option("WHAT", flags.what, "pod/NAME or claim/NAME")->required();
  command.add_option("-n,--namespace", flags.name_space,
                     "Namespace (default: that of the context)");
  add_cluster_flags(command, flags);
  command.add_option("-o,--output", flags.output, "How to print the answer (docs/why.md)")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command
      .add_option("--config", flags.config,
                  "The scheduler's KubeSchedulerConfiguration, where it has one")
      ->type_name("FILE");
  add_gates_of_release(command, flags);
  command.footer("Exit status: 0 placed or allocated, 1 not found or an error, 2 pending.");
}

void add_bench_scheduler_flags(CLI::App& command, BenchSchedulerFlags& flags) {
  command.add_option("FILE", flags.files, "Workloads: performance-config.yaml of scheduler_perf")
      ->required();
  command.add_option("--workload", flags.workload,
                     "Only those named so: TestCase/workload, or a part of it");
  command.add_option("--label", flags.label, "Only those with this label");
  command.add_option("--emulate-release", flags.release,
                     "Kubernetes release to be (default: 1.37)");
  add_store(command, flags.store);
  command.add_flag("--all-controllers", flags.all_controllers,
                   "Run all controllers, not only that of claims");
  command.add_flag("--list", flags.list, "Name the workloads and their labels, run none");
  command.footer(
      "Exit status: 0 all ran or were skipped, 1 one failed, 2 a file cannot be read. Files of the "
      "store "
      "lie in DIBS_BENCH_DIR (default: /var/tmp) while it runs.");
}

void add_driver_flags(CLI::App& command, DriverFlags& flags) {
  auto& driver = flags.driver;
  auto& process = flags.process;
  command.add_option("--node-name", driver.node_name, "Node whose devices these are")
      ->envname("NODE_NAME")
      ->required();
  add_cluster_flags(command, process);
  command.add_option("--kube-api-qps", flags.api_qps, "Accepted, but not needed")
      ->envname("KUBE_API_QPS")
      ->group("");
  command.add_option("--kube-api-burst", flags.api_burst, "Accepted, but not needed")
      ->envname("KUBE_API_BURST")
      ->group("");
  command.add_option("--device-profile", driver.profile, "What the devices are: gpu, net or cpu")
      ->envname("DEVICE_PROFILE")
      ->capture_default_str();
  command
      .add_option("--driver-name", driver.driver_name,
                  "Name of the driver (default: PROFILE.example.com)")
      ->envname("DRIVER_NAME");
  command.add_option("--num-devices", driver.devices, "How many GPUs or network interfaces")
      ->envname("NUM_DEVICES")
      ->capture_default_str();
  command
      .add_option("--gpu-partitions", driver.gpu_partitions,
                  "Parts that each GPU can be divided into")
      ->envname("GPU_PARTITIONS")
      ->capture_default_str();
  command
      .add_flag("--gpu-allow-multiple-allocations", driver.gpu_allow_multiple_allocations,
                "Let claims share a GPU by memory and compute")
      ->envname("GPU_ALLOW_MULTIPLE_ALLOCATIONS");
  command
      .add_flag("--gpu-device-status", driver.gpu_device_status,
                "Write uuid, model and driver version into the status of claims")
      ->envname("GPU_DEVICE_STATUS");
  command
      .add_flag("--binding-conditions", driver.binding_conditions,
                "Pods wait until their device says that it can be bound")
      ->envname("BINDING_CONDITIONS");
  command
      .add_option("--binding-controller", driver.binding_controller,
                  "With --binding-conditions: let this process say so")
      ->capture_default_str();
  command.add_option("--cpu-numa-nodes", driver.cpu_numa_nodes, "NUMA nodes of the cpu profile")
      ->envname("CPU_NUMA_NODES")
      ->capture_default_str();
  command.add_option("--cpus-per-numa-node", driver.cpus_per_numa_node, "CPUs of each of them")
      ->envname("CPUS_PER_NUMA_NODE")
      ->capture_default_str();
  command
      .add_option("--create-class", driver.create_class, "Make the DeviceClass where there is none")
      ->capture_default_str();
  command.add_option(
      "--extended-resource", driver.extended_resource,
      "Extended resource that pods may ask for instead of a claim, such as example.com/gpu");
  command
      .add_option("--kubelet-registrar-directory-path", driver.registry_dir,
                  "Where the node's agent finds plugins")
      ->envname("KUBELET_REGISTRAR_DIRECTORY_PATH")
      ->capture_default_str();
  command
      .add_option("--kubelet-plugins-directory-path", driver.plugins_dir,
                  "Folder for folders of plugins")
      ->envname("KUBELET_PLUGINS_DIRECTORY_PATH")
      ->capture_default_str();
  command.add_option("--cdi-root", driver.cdi_root, "Folder for CDI files")
      ->envname("CDI_ROOT")
      ->capture_default_str();
  command.add_option("--pod-uid", driver.pod_uid, "Uid of the driver's pod, for rolling updates")
      ->envname("POD_UID");
  command
      .add_option("--healthcheck-port", process.healthcheck_port,
                  "Port of the gRPC health service; below 0: none")
      ->envname("HEALTHCHECK_PORT")
      ->capture_default_str();
  command.add_option("--metrics-port", process.metrics_port, "Port of /metrics; below 0: none")
      ->envname("METRICS_PORT")
      ->capture_default_str();
  add_log_level(command, process.log_level);
}

void add_image_flags(CLI::App& import, CLI::App& list, CLI::App& remove, ImageFlags& flags) {
  for (CLI::App* command : {&import, &list, &remove}) {
    command
        ->add_option("--images", flags.folder,
                     "Folder of the image store (default: the machine's own)")
        ->envname("DIBS_IMAGES");
  }
  import.add_option("FILE", flags.file, "docker archive, OCI archive, or folder of an OCI layout")
      ->required();
  import.add_option("NAME", flags.name,
                    "Name to give it, where it has none or another one is wanted");
  remove.add_option("NAME", flags.names, "Names or ids")->required();
}

/// Of a command that returns its text: print, and exit as it says.
template <typename Outcome>
int print(const Outcome& outcome) {
  std::cout << outcome.output << std::flush;
  std::cerr << outcome.errors;
  return outcome.status;
}

}  // namespace

int run(int argc, char** argv) {
  use_zones_of_this_machine();
  CLI::App app{"Dynamic Resource Allocation for Kubernetes, in one binary.", "dibs"};
  app.require_subcommand(1);
  app.set_version_flag("--version", kVersion);
  app.failure_message(CLI::FailureMessage::help);

  ServeFlags up_flags;
  auto* up = app.add_subcommand("up", "Run a cluster on this machine, until Ctrl-C");
  add_server_flags(*up, up_flags);
  add_up_flags(*up, up_flags);
  std::string grace_period = "50s";
  add_grace_period(*up, grace_period);
  add_explain_events(*up, up_flags.explain_events);
  ServeFlags server_flags;
  auto* apiserver = app.add_subcommand("apiserver", "Run the API server alone");
  add_server_flags(*apiserver, server_flags);
  ControllersFlags controllers_flags;
  auto* controllers = app.add_subcommand("controllers", "Run the controllers of a cluster alone");
  add_controllers_flags(*controllers, controllers_flags);
  SchedulerFlags scheduler_flags;
  auto* scheduler = app.add_subcommand("scheduler", "Run the scheduler of a cluster alone");
  add_scheduler_flags(*scheduler, scheduler_flags);
  NodeFlags node_flags;
  auto* node = app.add_subcommand("node", "Run the agent of a node alone");
  add_node_flags(*node, node_flags);
  SelectFlags select_flags;
  auto* select_command = app.add_subcommand("select", "Show which devices an expression chooses");
  add_select_flags(*select_command, select_flags);
  WhyFlags why_flags;
  auto* why_command = app.add_subcommand(
      "why", "Say why a pod is not placed, or why there; what a claim waits for");
  add_why_flags(*why_command, why_flags);
  auto* driver = app.add_subcommand("driver", "Run a device driver of a node");
  driver->require_subcommand(1);
  DriverFlags driver_flags;
  auto* gpu_driver = driver->add_subcommand("gpu", "Make-believe GPUs, network interfaces or CPUs");
  add_driver_flags(*gpu_driver, driver_flags);
  auto* image = app.add_subcommand("image", "Images that containers on this machine can run");
  image->require_subcommand(1);
  ImageFlags image_flags;
  auto* image_import =
      image->add_subcommand("import", "Take images from an archive or an OCI layout");
  auto* image_list = image->add_subcommand("list", "Show what is there");
  auto* image_remove = image->add_subcommand("rm", "Remove images");
  add_image_flags(*image_import, *image_list, *image_remove, image_flags);
  auto* bench = app.add_subcommand("bench", "Compare with recorded answers, and measure");
  bench->require_subcommand(1);
  std::vector<std::string> allocator_files;
  auto* bench_cases =
      bench->add_subcommand("allocator", "Recorded cases of the allocator of Kubernetes");
  bench_cases->add_option("FILE", allocator_files, "Cases: .json, .jsonl, either packed with gzip")
      ->required();
  bench_cases->footer(
      "Exit status: 0 all are the same, 1 some differ or have no answer, 2 a file cannot be read.");
  BenchSchedulerFlags perf_flags;
  auto* bench_perf = bench->add_subcommand(
      "scheduler-perf", "Scheduling workloads of Kubernetes, on a cluster in here");
  add_bench_scheduler_flags(*bench_perf, perf_flags);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (select_command->parsed()) return print(select(select_flags, std::cin));
  if (why_command->parsed()) return print(why(why_flags));
  if (image_import->parsed()) return import_image(image_flags);
  if (image_list->parsed()) return list_images(image_flags);
  if (image_remove->parsed()) return remove_images(image_flags);
  if (bench_perf->parsed()) return bench_scheduler(perf_flags);
  if (bench_cases->parsed()) return print(bench_allocator(allocator_files));
  if (gpu_driver->parsed()) return run_gpu_driver(std::move(driver_flags));
  if (controllers->parsed()) return run_controllers(controllers_flags);
  if (scheduler->parsed()) return run_scheduler(scheduler_flags);
  if (node->parsed()) return run_node(node_flags);
  if (up->parsed()) {
    auto grace = parse_duration(grace_period);
    if (!grace) {
      std::cerr << "dibs up: --node-monitor-grace-period: " << grace.error().message() << '\n';
      return 2;
    }
    up_flags.whole_cluster = true;
    up_flags.node_monitor_grace_period = *grace;
    return serve(up_flags, "up");
  }
  return serve(server_flags, "apiserver");
}

}  // namespace dibs::cli
