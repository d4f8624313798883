#pragma once
// What the flags of `dibs up` and `dibs server` come to, as options of the parts of a cluster,
// before anything is made.

#include "base/result.h"
#include "cli/listen_address.h"
#include "cli/serve.h"
#include "cluster/cluster.h"
#include "net/http_server.h"

namespace dibs::cli {

/// What the flags alone say: the options of all parts. Nothing is made, and whatever is wrong is
/// wrong usage, a file that cannot be read as well.
Result<ListenAddress> judge_flags(const ServeFlags& flags, cluster::Options& options);

net::ServerOptions port_options(const ServeFlags& flags, const ListenAddress& address);

/// Whether pods of this process have a network on this machine.
bool has_pod_network(const ServeFlags& flags);

}  // namespace dibs::cli
