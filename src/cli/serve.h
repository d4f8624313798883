#pragma once
// Runs an API server in this process until a signal ends it.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "cli/api_flags.h"
#include "cli/etcd_flags.h"
#include "cluster/nodes.h"
#include "controllers/controller.h"
#include "node/disk_options.h"

namespace dibs::cli {

struct ServeFlags {
  std::string name;  // of the cluster (clusters.h); "": the one without
  /// A file that says all this instead (up_config.h), and where it says it, by flag.
  std::string config;
  std::map<std::string, std::string, std::less<>> places = {};
  std::string data_dir;
  std::string bind = "127.0.0.1:6443";
  std::string advertise_address;  // "": where it listens
  std::vector<std::string> tls_sans = {};
  std::string kubeconfig_out;
  std::string store = "sqlite";
  EtcdFlags etcd;
  ApiFlags api;
  std::string release;
  std::string feature_gates;
  std::string runtime_config;
  std::vector<std::string> enabled_plugins;
  std::vector<std::string> disabled_plugins;
  std::string admission_config_file;
  unsigned max_requests = 400;
  unsigned max_mutating_requests = 200;
  std::string token_auth_file;
  std::string audit_policy_file;
  std::string audit_log_path;
  int audit_log_maxsize = 100;    // megabytes
  int audit_log_maxage = 366;     // days
  int audit_log_maxbackup = 100;  // files
  unsigned usage_size = 256;      // megabytes
  std::string encryption_provider_config;
  std::string service_range;   // "": the cluster's, or one that is free here
  Duration shutdown_delay{0};  // how long it is not ready, before it ends
  std::string log_level = "info";
  unsigned threads = 0;  // 0: by the number of cores
  bool detach = false;
  bool wait = false;
  bool merge = false;  // into the user's kubeconfig
  /// Controllers, scheduler and nodes too, not the server alone.
  bool whole_cluster = false;
  unsigned nodes = 1;
  std::string node_prefix;                // of their names
  std::vector<std::string> drivers = {};  // of each node: "gpu", …
  std::vector<std::string> driver_programs = {};
  std::vector<std::string> idle = {};  // flags of nodes that were given where there are none
  /// Of the file, with their drivers; none: those that the three before say.
  std::vector<cluster::NodeGroup> groups = {};
  std::string runtime = "auto";  // of containers
  std::string node_address;      // where agents listen; "": the host of `bind`
  std::string cluster_domain = "cluster.local";
  std::string images;  // folder of images; "": the machine's own
  std::vector<std::string> image_aliases;
  std::vector<std::string> insecure_registries;
  node::DiskOptions disk;
  std::string cdi_newest;  // "": any version of CDI files
  std::vector<std::string> allowed_unsafe_sysctls;
  std::vector<std::string> network_namespaces = {"kube-system"};
  Duration node_monitor_grace_period = std::chrono::seconds(50);
  Duration metric_resolution{0};
  controllers::AutoscalerOptions autoscaler;
  bool explain_events = false;   // of the scheduler
  std::string scheduler_config;  // file of its KubeSchedulerConfiguration
};

/// `command` is what the user called it by, for messages. Returns the exit status.
int serve(const ServeFlags& flags, std::string_view command);

}  // namespace dibs::cli
