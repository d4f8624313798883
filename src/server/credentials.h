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
  std::string account_key_pem;  // signs service account tokens
};

/// `names`: DNS names and addresses of the server besides the usual ones. Errors name the file.
Result<Credentials> load_credentials(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder,
                                     const std::vector<std::string>& names);

/// A kubeconfig with the admin's certificate.
std::string make_kubeconfig(const Credentials& credentials, std::string_view server_url);

}  // namespace dibs::server
