#pragma once
// Port-forward: connections to ports of a pod, many over one upgraded connection.
//
// Over SPDY each connection is a pair of streams, data and error, that the client opens with the
// port and a request id. Over a plain WebSocket (the old way, chosen by ?port=) each port has two
// channels, and their first message names the port.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/http.h"
#include "net/spdy_connection.h"
#include "node/streams/stream_host.h"

namespace dibs::node {

inline constexpr std::string_view kPortForwardProtocol = "portforward.k8s.io";
inline constexpr std::string_view kPortForwardTunnel = "SPDY/3.1+portforward.k8s.io";

/// Both return at once; `sandbox` is the runtime's id.
void forward_ports(const StreamHost& host, std::string sandbox,
                   std::shared_ptr<net::SpdyConnection> connection);
void forward_ports(const StreamHost& host, std::string sandbox,
                   std::shared_ptr<net::WebSocket> socket, bool base64,
                   const std::vector<int>& ports);

}  // namespace dibs::node
