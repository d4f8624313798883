#pragma once
// The keys and certificates of a cluster, kept in its data folder.
//
// Made on the first start, kept after it, and renewed when less than a third of their life is left.
// Keys are readable by their owner alone.

#include <string>
#include <vector>

#include "base/result.h"
#include "net/x509.h"
#include "runtime/files.h"
#include "runtime/runtime.h"

namespace dibs::server {

struct Credentials {
  net::Credential ca;
  net::Credential server;
  net::Credential admin;        // user kubernetes-admin, group system:masters
  net::Credential node_client;  // what the server shows to nodes; group system:masters
  std::string account_key_pem;  // signs service account tokens
};

/// `names`: DNS names and addresses of the server besides the usual ones. Errors name the file.
Result<Credentials> load_credentials(runtime::Files& files, runtime::Clock& clock,
                                     const std::string& folder,
                                     const std::vector<std::string>& names);

/// A kubeconfig with the admin's certificate.
std::string make_kubeconfig(const Credentials& credentials, std::string_view server_url);

}  // namespace dibs::server
