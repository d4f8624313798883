#pragma once
// How far the server goes for an address that the status of a pod or a slice of endpoints has.

#include <string_view>

#include "json/value.h"
#include "net/reach.h"

namespace dibs::server {

/// Its Node's own address, as pods of the machine's network have it, is as far as any machine's;
/// every other is one of the cluster. `node`: the Node of the pod or endpoint, null where there is
/// none.
net::Reach reach_of(std::string_view address, const json::Value& node);

/// Its containers have no processes: nobody listens at the addresses of its pods.
bool is_simulated(const json::Value& node);

}  // namespace dibs::server
