#pragma once
// Who a container's process runs as: the pod's wish, else the image's, with names looked up in the
// image's /etc/passwd and /etc/group.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/runtime/container_runtime.h"

namespace dibs::node {

struct OciUser {
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  std::vector<std::int64_t> groups = {};  // with gid, each once
  std::string home = {};                  // "" where the image does not say
};

/// `image_user` is config.User of the image: "", "name", "1000", "name:group", "1000:1000".
Result<OciUser> resolve_user(const ContainerSecurity& security, std::string_view image_user,
                             std::string_view passwd, std::string_view group);

}  // namespace dibs::node
