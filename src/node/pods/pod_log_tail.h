#pragma once
// The end of a container's log: what stands in its status when it failed without a message.

#include <string>

namespace dibs::node {

/// The last 80 lines, at most 2048 bytes, without times and stream names; "" when there is none.
std::string log_tail(const std::string& path);

}  // namespace dibs::node
