#pragma once
// Container edits, applied to an OCI runtime configuration (config.json).

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "cdi/spec.h"
#include "json/value.h"

namespace dibs::cdi {

/// A device node of the host.
struct HostNode {
  char type = 'c';  // 'b', 'c' or 'p'
  std::int64_t major = 0;
  std::int64_t minor = 0;
  std::uint32_t file_mode = 0;
};

using HostNodes = std::function<Result<HostNode>(const std::string& path)>;

/// The machine's own, without following links.
Result<HostNode> host_node(const std::string& path);

/// Env entries replace those of the same name, mounts and devices those of the same place; the rest
/// is added. Mounts are then in the order of their depth. On an error `config` is as it was.
Result<> apply(const ContainerEdits& edits, json::Value& config,
               const HostNodes& nodes = host_node);

}  // namespace dibs::cdi
