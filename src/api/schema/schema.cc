#include "api/schema/schema.h"

#include <algorithm>

namespace dibs::api {

const Field* Schema::field(std::string_view name) const {
  auto it = std::lower_bound(fields.begin(), fields.end(), name,
                             [](const Field& f, std::string_view n) { return f.name < n; });
  return it != fields.end() && it->name == name ? &*it : nullptr;
}

}  // namespace dibs::api
