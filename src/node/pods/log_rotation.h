#pragma once
// Logs of containers in files of bounded size and number.
//
// A log that has grown too large gets the time behind its name and the container goes on in a new
// file; older ones are packed, the oldest removed. Who follows the log reads on in the new file
// (streams/log_stream.h). Between two looks a log may grow beyond its size, but not without bound:
// the runtime starts a log anew that is ten times too large.

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct LogPolicy {
  std::int64_t max_size = 10 << 20;
  int max_files = 5;  // the one that is written included
};

/// From --container-log-max-size and --container-log-max-files; errors name the flag.
Result<LogPolicy> parse_log_policy(const std::string& max_size, int max_files);

/// What is due of the logs of all running containers. Blocks.
void rotate_logs(ContainerRuntime& containers, const LogPolicy& policy, Time now);

}  // namespace dibs::node
