#pragma once
// `dibs node`: a node's agent in a process of its own, for this API server or a real one.

#include <string>
#include <vector>

#include "base/result.h"
#include "client/kubeconfig.h"
#include "net/x509.h"
#include "node/disk_options.h"

namespace dibs::cli {

struct NodeFlags {
  std::string kubeconfig;
  std::string context;
  /// The kubeconfig is the node's own (node_kubeconfig()): its certificate is renewed there, and
  /// its authority may use the port.
  bool joined = false;
  std::string name;  // "": the host's
  std::string root_dir = "/var/lib/kubelet";
  std::string runtime = "auto";
  std::string images;
  std::vector<std::string> image_aliases;
  std::vector<std::string> insecure_registries;
  node::DiskOptions disk;
  std::string cdi_dirs;  // "": /etc/cdi,/var/run/cdi
  std::string log_dir;
  std::string address = "0.0.0.0";
  int port = 10250;
  std::string node_ip;
  std::string client_ca_file;
  std::string tls_cert_file;
  std::string tls_key_file;
  std::vector<std::string> labels;       // key=value
  std::vector<std::string> cluster_dns;  // none: the tenth address of Services
  std::string cluster_domain = "cluster.local";
  bool service_proxy = true;
  std::string service_range;  // "": 256 addresses around that of the Service kubernetes
  std::string cdi_newest;     // "": any version of CDI files
  std::vector<std::string> allowed_unsafe_sysctls;
  std::vector<std::string> network_namespaces = {"kube-system"};
  std::string release;
  std::string feature_gates;
  std::string log_level = "info";
};

/// Returns the exit status.
int run_node(const NodeFlags& flags);

/// Its parts, for a node that joins (join.h). begin_process() comes before run_agent().
std::string node_name(const NodeFlags& flags);
/// What can be wrong with the flags before anything is made.
Result<> check_node(const NodeFlags& flags);
std::string node_kubeconfig(const NodeFlags& flags);
Result<> write_node_kubeconfig(const NodeFlags& flags, const client::Access& access,
                               const net::Credential& credential);
Result<> run_agent(const NodeFlags& flags);

}  // namespace dibs::cli
