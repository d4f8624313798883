#include "server/refusal.h"

#include <set>
#include <string>
#include <utility>

#include "server/objects.h"

namespace dibs::server {

Error refusal_of(const Resource& resource, const api::FieldErrors& errors, std::string_view name) {
  constexpr int kFirstToSift = 37;
  if (resource.custom || release_of(resource) < kFirstToSift)
    return errors.to_error(resource.kind, resource.hub_group, name);
  api::FieldErrors distinct;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const api::FieldError& error : errors.errors()) {
    if (seen.emplace(error.field, error.text).second)
      distinct.add(error.fault, api::Path(error.field), error.text);
  }
  return distinct.to_error(resource.kind, resource.hub_group, name);
}

}  // namespace dibs::server
