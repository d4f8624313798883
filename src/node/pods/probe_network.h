#pragma once
// Probes over the network: HTTP, TCP, gRPC health. Each blocks up to its timeout and words failures
// as Go's network library does, since users read them in events.

#include <string>
#include <string_view>

#include "base/time.h"
#include "json/value.h"
#include "node/pods/probes.h"

namespace dibs::node {

/// `probe` is the httpGet part; the port is resolved by the caller.
ProbeAnswer probe_http(const json::Value& probe, const std::string& host, int port,
                       Duration timeout);
ProbeAnswer probe_tcp(const std::string& host, int port, Duration timeout);
ProbeAnswer probe_grpc(const std::string& host, int port, const std::string& service,
                       Duration timeout);

}  // namespace dibs::node
