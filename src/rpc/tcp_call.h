#pragma once
// One gRPC call to a TCP port, without encryption: what a health probe makes.

#include <string>
#include <string_view>

#include "base/time.h"
#include "rpc/channel.h"

namespace dibs::rpc {

/// `address` is "host:port". Connects, calls, closes. Blocks up to `deadline`. While it cannot
/// connect, it tries again until then, and says deadline_exceeded.
Reply call_tcp(const std::string& address, const std::string& method, std::string_view request,
               Duration deadline, const std::string& user_agent = {});

}  // namespace dibs::rpc
