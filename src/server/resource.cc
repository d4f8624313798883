#include "server/resource.h"

#include <algorithm>

#include "base/strings.h"

namespace dibs::server {

bool Resource::has_verb(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

std::string Resource::key(std::string_view name_space, std::string_view name) const {
  return namespaced ? cat(storage_prefix, name_space, "/", name) : cat(storage_prefix, name);
}

std::string Resource::namespace_prefix(std::string_view name_space) const {
  return namespaced && !name_space.empty() ? cat(storage_prefix, name_space, "/") : storage_prefix;
}

bool Resource::shows_stored(const store::ValueBytes& value) const {
  if (!from_storage) return true;
  if (shown_as_stored.empty()) return false;
  constexpr std::size_t kHead = 512;
  return shows_stored(std::string_view(value.head(kHead)));
}

bool Resource::shows_stored(std::string_view bytes) const {
  if (!from_storage) return true;
  if (shown_as_stored.empty()) return false;
  // What is stored begins with its kind and apiVersion.
  constexpr std::string_view kVersion = "\"apiVersion\":\"";
  std::size_t at = bytes.find(kVersion);
  if (at == std::string_view::npos) return false;
  std::string_view rest = bytes.substr(at + kVersion.size());
  return rest.starts_with(shown_as_stored) && rest.substr(shown_as_stored.size()).starts_with('"');
}

ResourcePtr ResourceSet::find(std::string_view group, std::string_view version,
                              std::string_view plural) const {
  auto found = by_path.find(cat(group, "/", version, "/", plural));
  return found == by_path.end() ? nullptr : found->second;
}

ResourcePtr ResourceSet::find_kind(std::string_view group, std::string_view kind) const {
  const api::GroupInfo* found = catalog.group(group);
  if (!found) return nullptr;
  for (const api::VersionInfo& version : found->versions) {
    for (const api::ResourceInfo& resource : version.resources) {
      if (resource.kind == kind) return find(group, version.version, resource.plural);
    }
  }
  return nullptr;
}

ResourcePtr ResourceSet::find_plural(std::string_view group, std::string_view plural) const {
  const api::GroupInfo* found = catalog.group(group);
  if (!found) return nullptr;
  for (const api::VersionInfo& version : found->versions) {
    if (auto resource = find(group, version.version, plural)) return resource;
  }
  return nullptr;
}

}  // namespace dibs::server
