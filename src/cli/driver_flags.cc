#include "cli/driver_flags.h"

#include <algorithm>

#include "base/plug_points.h"
#include "base/strings.h"
#include "cli/common_flags.h"
#include "drivers/gpu/profile.h"

namespace dibs::cli {
namespace {

/// Each can be given by a variable of its name in capitals, as those of upstream's driver can.
Flags with_variables(Flags flags) {
  for (Flag& flag : flags) {
    flag.form.env = to_upper(flag.name.substr(2));
    std::replace(flag.form.env.begin(), flag.form.env.end(), '-', '_');
  }
  return flags;
}

// Those of several drivers.

Flag registry(std::string& folder) {
  return {"--kubelet-registrar-directory-path", &folder, "Where the node's agent finds plugins"};
}

Flag plugins(std::string& folder) {
  return {"--kubelet-plugins-directory-path", &folder, "Folder for folders of plugins"};
}

Flag cdi_root(std::string& folder) { return {"--cdi-root", &folder, "Folder for CDI files"}; }

Flag pod_uid(std::string& uid) {
  return {"--pod-uid", &uid, "Uid of the driver's pod, for rolling updates"};
}

Flag healthcheck_port(int& port) {
  return {"--healthcheck-port", &port, "Port of the gRPC health service; below 0: none",
          between(-1, 65535)};
}

Flag metrics_port(int& port) {
  return {"--metrics-port", &port, "Port of /metrics; below 0: none", between(-1, 65535)};
}

Flag device_metadata(bool& on) {
  return {"--device-metadata", &on,
          "Let containers read what their devices are, from files that the API names"};
}

Flag faults(bool& on) {
  return {"--faults", &on,
          "Let `dibs device` give devices faults (docs/device-faults.md); wants to watch nodes",
          kHasValue};
}

}  // namespace

Flags driver_flags(DriverFlags& flags) {
  auto& driver = flags.driver;
  auto& process = flags.process;
  return both(
      with_variables({
          {"--node-name", &driver.node_name, "Node whose devices these are", kRequired},
          {"--kube-api-qps", &flags.api_qps, "Has no effect", kHidden},
          {"--kube-api-burst", &flags.api_burst, "Has no effect", kHidden},
          {"--device-profile", &driver.profile, "What the devices are",
           one_of(names_of(drivers::profile_kinds()))},
          {"--driver-name", &driver.driver_name,
           "Name of the driver (default: PROFILE.example.com)"},
          {"--num-devices", &driver.devices, "How many GPUs or network interfaces",
           between(0, 128)},
          {"--gpu-partitions", &driver.gpu_partitions, "Parts that each GPU can be divided into",
           between(0, 128)},
          {"--gpu-pcie-roots", &driver.gpu_pcie_roots,
           "PCIe roots of the GPUs in turn, such as pci0000:80, with commas between them (default: "
           "they do not say)",
           kCommas},
          {"--gpu-allow-multiple-allocations", &driver.gpu_allow_multiple_allocations,
           "Let claims share a GPU by memory and compute"},
          {"--gpu-device-status", &driver.gpu_device_status,
           "Write uuid, model and driver version into the status of claims"},
          device_metadata(driver.device_metadata),
          {"--binding-conditions", &driver.binding_conditions,
           "Pods wait until their device says that it can be bound"},
          {"--cpu-numa-nodes", &driver.cpu_numa_nodes, "NUMA nodes of the cpu profile",
           between(0, 128)},
          {"--cpus-per-numa-node", &driver.cpus_per_numa_node, "CPUs of each of them",
           between(0, 100'000)},
          registry(driver.registry_dir),
          plugins(driver.plugins_dir),
          cdi_root(driver.cdi_root),
          pod_uid(driver.pod_uid),
          healthcheck_port(process.healthcheck_port),
          metrics_port(process.metrics_port),
      }),
      {
          kubeconfig(process.kubeconfig),
          context(process.context),
          {"--binding-controller", &driver.binding_controller,
           "With --binding-conditions: let this process say so", kHasValue},
          {"--create-class", &driver.create_class, "Make the driver's class where there is none",
           kHasValue},
          faults(driver.faults),
          {"--named-resources", &driver.named_resources,
           "Let the node's agent publish the devices, as in release 1.30 (v1alpha2)"},
          {"--old-agents", &driver.old_agents,
           "Register with agents of releases 1.26 to 1.31, too"},
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
          registry(node.registry_dir),
          plugins(node.plugins_dir),
          cdi_root(node.cdi_root),
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
          pod_uid(node.pod_uid),
          {"--leader-election", &control.election.leader_election,
           "With --controller: several instances may run, one of them works"},
          {"--leader-election-namespace", &control.election.lease_namespace,
           "Where their lease is"},
          healthcheck_port(process.healthcheck_port),
          metrics_port(process.metrics_port),
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

Flags nvidia_driver_flags(NvidiaDriverFlags& flags) {
  auto& driver = flags.driver;
  auto& process = flags.process;
  return both(
      with_variables({
          {"--node-name", &driver.node_name, "Node whose GPUs these are", kRequired},
          {"--nvml-library", &driver.nvml_library,
           "NVIDIA's management library (default: libnvidia-ml.so.1 of the driver's root)"},
          {"--driver-root", &driver.driver_root,
           "Where NVIDIA's driver is installed, such as /run/nvidia/driver"},
          {"--dev-root", &driver.dev_root,
           "Folder that has dev/nvidiactl (default: the driver's root, or /)"},
          {"--proc-root", &driver.proc_root,
           "Folder that has proc/driver/nvidia (default: the driver's root, or /)"},
          {"--sysfs-root", &driver.sysfs_root,
           "Where the hardware is described (default: sys of the driver's root, or /sys)"},
          {"--mig", &driver.mig,
           "Make MIG instances for claims and destroy them (dynamic), or offer those that somebody "
           "else has made (static)",
           one_of({"dynamic", "static"})},
          {"--additional-xids-to-ignore", &driver.ignored_xids,
           "Numbers of errors, besides those that programs cause, that make no GPU unfit", kCommas},
          {"--container-env", &driver.container_env,
           "NAME=VALUE that containers with a GPU get, too; may be repeated"},
          {"--container-mounts", &driver.container_mounts,
           "Files or folders of the machine that they get at the same path, to read", kCommas},
          device_metadata(driver.device_metadata),
          {"--usage-every", &driver.usage_every,
           "How often memory and utilization are looked at, for `dibs top devices`; 0s: never"},
          registry(driver.registry_dir),
          plugins(driver.plugins_dir),
          cdi_root(driver.cdi_root),
          pod_uid(driver.pod_uid),
          healthcheck_port(process.healthcheck_port),
          metrics_port(process.metrics_port),
      }),
      {
          kubeconfig(process.kubeconfig),
          context(process.context),
          {"--create-classes", &driver.create_classes,
           "Make the classes gpu.nvidia.com and mig.nvidia.com where they are not", kHasValue},
          {"--extended-resource", &driver.extended_resource,
           "Extended resource that pods may ask for instead of a claim on a whole GPU"},
          faults(driver.faults),
          log_level(process.log_level),
      });
}

}  // namespace dibs::cli
