#pragma once
// What an API server is told at its start.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/pod_security/pod_security.h"
#include "base/ipv4.h"
#include "json/value.h"
#include "server/audit_log.h"

namespace dibs::server {

/// Whose watches are those of all nodes of a fleet.
inline constexpr std::string_view kFleetUser = "system:dibs:nodes";

/// A driver that runs in this process.
struct DriverAccount {
  std::string account;  // in kube-system
  std::string driver;   // the name in its slices; "": it has none
  /// `rules` of a ClusterRole that it has besides; null: none.
  json::Value rules = {};
};

struct Options {
  /// The release to answer as, exactly; "" is the newest, with all that is older beside it.
  std::string release;
  /// "Gate=true,…", changes to the release's defaults.
  std::string feature_gates;
  /// "group/version=false,group/version/resource=true,api/beta=false,…"
  std::string runtime_config;
  /// Names of admission plugins; all are on unless disabled.
  std::vector<std::string> enabled_plugins;
  std::vector<std::string> disabled_plugins;
  /// Of the plugin PodSecurity (admission_configuration.h).
  api::PodSecurityConfiguration pod_security;
  /// Seats that requests share (fairness.h).
  unsigned seats = 600;
  std::string issuer = "https://kubernetes.default.svc";
  std::string service_range = kDefaultServiceRange;
  /// The address of the Service kube-dns: the cluster's names are served there. "": nobody does.
  std::string cluster_dns = {};
  /// Contents of a --token-auth-file: token,user,uid,"group,group" a line.
  std::string static_tokens;
  /// PEM of the key that signs service account tokens, and of what else may verify them.
  std::string account_key_pem;
  /// PEM of the CA that clients are given (kube-root-ca.crt).
  std::string ca_pem;
  /// Client certificate and key (PEM) that this server shows to nodes, and the CA that nodes'
  /// certificates must be of; without a CA they are not checked.
  std::string node_client_certificate_pem;
  std::string node_client_key_pem;
  std::string node_ca_pem;
  /// What else runs in this process and has to be somebody: service accounts of kube-system, and
  /// those whose roles are not among Kubernetes' own (auth::own_roles).
  std::vector<std::string> accounts = {};
  std::vector<DriverAccount> drivers = {};
  bool fleet = false;
  /// A new cluster gets a default StorageClass whose volumes are folders on nodes.
  bool local_path_class = false;
  /// Nodes in this process, and the host where they listen; others are reached at the address that
  /// they tell.
  std::vector<std::string> own_nodes = {};
  std::string own_nodes_host = {};
  /// Contents of an --audit-policy-file, and where to write what it wants written.
  std::string audit_policy = {};
  AuditLogOptions audit_log = {};
  /// host:port that clients reach, for discovery and the kubernetes Service.
  std::string advertise = "127.0.0.1:6443";
  /// host:port by which pods of this machine, and nobody else, reach it: what the kubernetes
  /// Service leads to where `advertise` is a loopback address. "": nothing but that.
  std::string pods_place = {};

  std::string_view answers_as() const {
    return release.empty() ? std::string_view("1.37") : std::string_view(release);
  }
  /// 37 for "1.37".
  int minor() const { return std::atoi(std::string(answers_as().substr(2)).c_str()); }
};

}  // namespace dibs::server
