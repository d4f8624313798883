#pragma once
// The keys and certificates of a cluster, kept in its data folder.
//
// Made on the first start, kept after it, and renewed when less than a third of their life is left.
// Keys are readable by their owner alone.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/x509.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::server {

/// May use the ports of nodes and nothing else (the role system:kubelet-api-admin), so that a
/// request which is led astray on its way to a node opens nothing.
inline constexpr std::string_view kNodeClientUser = "kube-apiserver-kubelet-client";

struct Credentials {
  net::Credential ca;
  net::Credential server;
  net::Credential admin;        // user kubernetes-admin, group system:masters
  net::Credential node_client;  // what the server shows to nodes: kNodeClientUser, of no group
  /// Of front proxies, of this server alone: others hear of it by the ConfigMap
  /// extension-apiserver-authentication.
  net::Credential front_proxy_ca;
  net::Credential front_proxy_client;  // what the server shows as one: auth::kFrontProxyClient
  std::string account_key_pem;         // signs service account tokens
};

/// `names`: DNS names and addresses of the server besides the usual ones. Errors name the file.
Result<Credentials> load_credentials(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder,
                                     const std::vector<std::string>& names);

/// The names of all files that load_credentials() makes in its folder.
std::vector<std::string> credential_files();

/// What all servers of a cluster have in common: the authority with its key, and the key of service
/// accounts, as PEM. Who has it is the cluster. Errors: not_found where there is none.
Result<std::string> export_authority(runtime::Files& files, const std::string& folder);
/// Writes what export_authority() made, for a server that joins. The rest is issued at its start.
/// Errors: invalid for another text or an expired authority; conflict where the folder has another
/// authority or key. Then nothing is written.
Result<> import_authority(runtime::Files& files, runtime::Clock& clock, const std::string& folder,
                          std::string_view pem);

/// Of a part of the cluster in a process of its own: the common name is the user, the organizations
/// are the groups. Lasts a year. Errors: not_found where the folder has no authority.
Result<net::Credential> issue_client(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder, std::string_view user,
                                     const std::vector<std::string>& groups);
/// PEM of the authority's certificate. Errors: not_found.
Result<std::string> authority_of(runtime::Files& files, const std::string& folder);

/// A kubeconfig whose cluster, user and context have that name. `server_name` is what the server is
/// asked for and must be, where that is not the host of the URL.
std::string make_kubeconfig(std::string_view ca_pem, std::string_view name,
                            const net::Credential& client, std::string_view server_url,
                            std::string_view server_name = {});

}  // namespace dibs::server
