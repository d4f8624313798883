#pragma once
// What an API server is told at its start.

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/pod_security/pod_security.h"
#include "base/ipv4.h"
#include "base/result.h"
#include "base/time.h"
#include "json/value.h"
#include "server/audit_log.h"
#include "server/auth/issuers.h"
#include "server/auth/request_header.h"
#include "server/extension_transport.h"
#include "server/webhook_transport.h"

namespace dibs::server {

/// Whose watches are those of all nodes of a fleet.
inline constexpr std::string_view kFleetUser = "system:dibs:nodes";

class KeySource;

/// A driver that runs in this process.
struct DriverAccount {
  std::string account;  // in kube-system
  std::string driver;   // the name in its slices; "": it has none
  /// `rules` of a ClusterRole that it has besides; null: none.
  json::Value rules = {};
};

/// A part of the cluster beside the server, as componentstatuses tell of it.
struct Component {
  std::string name;
  std::string lease;  // in kube-system, of where it runs elsewhere
  /// Empty: whoever holds the lease is well.
  std::function<Result<>()> health = {};
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
  /// What is not answered by then is a 504, unless it is a watch or the like.
  Duration request_timeout = std::chrono::seconds(60);
  /// Watches that name no time end after this, or up to twice as much.
  Duration min_watch_time = std::chrono::seconds(1800);
  Duration event_ttl = std::chrono::hours(1);
  /// Requests that come while the server ends are a 429, not a 503.
  bool sends_retry_after = false;
  /// Of service account tokens: the first is in new ones, all are believed.
  std::string issuer = "https://kubernetes.default.svc";
  std::vector<std::string> more_issuers = {};
  /// Whom tokens must be meant for to be of use here; none: the issuers.
  std::vector<std::string> api_audiences = {};
  /// The longest life that a token is given; 0: as asked for.
  Duration max_token_life{0};
  /// Tokens that kubelets ask for go on for a year, see auth/tokens.h.
  bool extend_tokens = true;
  /// In the discovery document; "": where this server has its keys.
  std::string jwks_uri = {};
  std::string service_range = kDefaultServiceRange;
  /// The address of the Service kube-dns: the cluster's names are served there. "": nobody does.
  std::string cluster_dns = {};
  /// Contents of a --token-auth-file: token,user,uid,"group,group" a line.
  std::string static_tokens;
  /// Issuers of tokens outside of the cluster, and who needs none.
  auth::AuthenticationConfiguration authentication = {};
  /// How issuers are asked for their keys; null: over HTTPS.
  std::shared_ptr<KeySource> issuer_keys = {};
  /// PEM of the key that signs service account tokens, which verifies them too, and of others that
  /// do.
  std::string account_key_pem;
  std::string account_verifying_pem = {};
  /// PEM of the CA that clients are given (kube-root-ca.crt).
  std::string ca_pem;
  /// PEM of the CAs that clients' certificates are of; "": as ca_pem.
  std::string client_ca_pem = {};
  /// Client certificate and key (PEM) that this server shows to nodes, and the CA that nodes'
  /// certificates must be of; without a CA they are not checked.
  std::string node_client_certificate_pem;
  std::string node_client_key_pem;
  std::string node_ca_pem;
  /// Whom front proxies vouch for, and what this server shows when it is one itself: to API servers
  /// that it hands requests on to.
  auth::RequestHeaderOptions front_proxies = {};
  std::string proxy_client_certificate_pem = {};
  std::string proxy_client_key_pem = {};
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
  /// How admission and conversion webhooks are reached; null: over HTTPS.
  std::shared_ptr<WebhookTransport> webhooks = {};
  /// How the servers of APIServices are reached; null: over HTTPS.
  std::shared_ptr<ExtensionTransport> extensions = {};
  /// How often what nodes use is measured, for metrics.k8s.io; 0: not at all, and it is not served.
  Duration metric_resolution{0};
  /// Where it is recorded who holds which devices (usage/recorder.h), and how many bytes of it
  /// moment by moment; "": nowhere.
  std::string usage_folder = {};
  std::size_t usage_bytes = std::size_t{256} << 20;
  /// What componentstatuses show beside the store.
  std::vector<Component> components = {{"controller-manager", "kube-controller-manager"},
                                       {"scheduler", "kube-scheduler"}};
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
