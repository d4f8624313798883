#pragma once
// What flags of `dibs up` and `dibs apiserver` say is judged before anything is made: no folder, no
// key and no bridge is left behind by a mistyped word.

#include "base/result.h"
#include "cli/listen_address.h"
#include "cli/serve.h"
#include "cluster/cluster.h"

namespace dibs::cli {

/// `options` are made of the flags, without keys and addresses. Errors name the flag.
Result<> check_server(const ServeFlags& flags, const server::Options& options);
/// Files and addresses of this machine, for a cluster in `folder`: whether they can be had.
Result<> check_places(const ServeFlags& flags, const ListenAddress& address,
                      const std::string& folder);
Result<> check_nodes(const cluster::NodesOptions& nodes, const server::Options& server);

}  // namespace dibs::cli
