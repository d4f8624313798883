#pragma once
// Where a driver's two sockets lie: one in the agent's registry folder, by which it is found, and
// one in its own folder, by which it is called.
//
// During a rolling update two instances of a driver live on one node; the uid of the instance's pod
// then stands in both names. A Unix socket's path has at most 107 bytes.

#include <string>
#include <string_view>

#include "base/result.h"

namespace dibs::driver {

inline constexpr std::size_t kMaxSocketPath = 107;

struct SocketPaths {
  std::string registration = {};
  std::string service = {};
};

/// Names that do not fit are replaced by hashes where upstream does so. Errors: invalid, naming the
/// folder that is too long.
Result<SocketPaths> socket_paths(const std::string& registry_dir, const std::string& data_dir,
                                 std::string_view driver, std::string_view pod_uid);

}  // namespace dibs::driver
