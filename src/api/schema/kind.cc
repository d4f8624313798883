#include "api/schema/kind.h"

#include "base/strings.h"

namespace dibs::api {

std::string GroupVersionKind::api_version() const {
  return group.empty() ? version : cat(group, '/', version);
}

}  // namespace dibs::api
