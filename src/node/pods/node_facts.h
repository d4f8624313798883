#pragma once
// What a node's parts know of the node they serve: its name, its folders, its network settings.
//
// Filled in once by the agent before anything starts, and shared by all parts; never changes.

#include <cstdint>
#include <string>
#include <vector>

#include "node/pods/sysctl_rules.h"

namespace dibs::node {

/// A folder of a kubelet's machine, and where this node has it.
struct NodePlace {
  std::string path = {};
  std::string folder = {};
};

struct NodeFacts {
  std::string name = {};
  /// The kubelet's root directory: <root>/pods/<uid> is a pod's folder.
  std::string root = {};
  /// See node_paths.h.
  std::vector<NodePlace> places = {};
  /// The cluster's name server. A real one need not answer: pods are told of it all the same.
  std::vector<std::string> cluster_dns = {"10.0.0.10"};
  std::string cluster_domain = "cluster.local";
  /// Where name servers and search domains of the host are read for dnsPolicy Default.
  std::string resolv_conf = "/etc/resolv.conf";
  /// Addresses of the node, the first one first: status.hostIP.
  std::vector<std::string> addresses = {};
  /// What containers get that have no limit of their own, where they ask for it by
  /// resourceFieldRef; and the base of the out-of-memory score.
  std::int64_t allocatable_milli_cpu = 0;
  std::int64_t memory_bytes = 0;
  /// The kernel knows labels of SELinux, which containers do not get.
  bool selinux = true;
  /// Out-of-memory scores below this one cannot be given to containers here.
  std::int64_t lowest_oom_score = -1000;
  /// Where localhost seccomp profiles lie; "" : <root>/seccomp.
  std::string seccomp_folder = {};
  /// Kernel settings that pods may ask for.
  SysctlRules sysctls = {};
  /// Namespaces whose networks every pod may name; "*": all of them.
  std::vector<std::string> network_namespaces = {"kube-system"};
  /// No file is written and nothing is mounted: a simulated node.
  bool simulated = false;
};

/// <root>/pods/<uid>
std::string pod_folder(const NodeFacts& facts, const std::string& pod_uid);

}  // namespace dibs::node
