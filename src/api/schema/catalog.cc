#include "api/schema/catalog.h"

#include <openssl/sha.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace dibs::api {
namespace {

struct ParsedVersion {
  bool known = false;
  int stage = 0;  // 2 stable, 1 beta, 0 alpha
  int major = 0;
  int minor = 0;
};

bool take_number(std::string_view& text, int& number) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || text.empty() || text[0] < '1' || text[0] > '9') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

ParsedVersion parse_version(std::string_view text) {
  ParsedVersion v;
  if (text.empty() || text[0] != 'v') return v;
  text.remove_prefix(1);
  if (!take_number(text, v.major)) return v;
  v.stage = 2;
  if (text.empty()) {
    v.known = true;
    return v;
  }
  if (text.starts_with("alpha")) {
    v.stage = 0;
    text.remove_prefix(5);
  } else if (text.starts_with("beta")) {
    v.stage = 1;
    text.remove_prefix(4);
  } else {
    return {};
  }
  v.known = take_number(text, v.minor) && text.empty();
  return v;
}

}  // namespace

const SubresourceInfo* ResourceInfo::subresource(std::string_view name) const {
  for (const SubresourceInfo& sub : subresources) {
    if (sub.name == name) return &sub;
  }
  return nullptr;
}

const VersionInfo* GroupInfo::version(std::string_view name) const {
  for (const VersionInfo& info : versions) {
    if (info.version == name) return &info;
  }
  return nullptr;
}

const GroupInfo* Catalog::group(std::string_view name) const {
  for (const GroupInfo& info : groups) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

const ResourceInfo* Catalog::find(std::string_view group_name, std::string_view version_name,
                                  std::string_view plural) const {
  const GroupInfo* group_info = group(group_name);
  const VersionInfo* version_info = group_info ? group_info->version(version_name) : nullptr;
  if (version_info == nullptr) return nullptr;
  for (const ResourceInfo& resource : version_info->resources) {
    if (resource.plural == plural) return &resource;
  }
  return nullptr;
}

const ResourceInfo* Catalog::find_kind(std::string_view group_name, std::string_view version_name,
                                       std::string_view kind) const {
  const GroupInfo* group_info = group(group_name);
  const VersionInfo* version_info = group_info ? group_info->version(version_name) : nullptr;
  if (version_info == nullptr) return nullptr;
  for (const ResourceInfo& resource : version_info->resources) {
    if (resource.kind == kind) return &resource;
  }
  return nullptr;
}

void Catalog::add(ResourceInfo resource) {
  auto group_at = std::find_if(groups.begin(), groups.end(),
                               [&](const GroupInfo& g) { return g.name == resource.group; });
  if (group_at == groups.end()) {
    groups.push_back({resource.group, resource.custom, {}});
    group_at = groups.end() - 1;
  }
  auto& versions = group_at->versions;
  auto version_at = std::find_if(versions.begin(), versions.end(), [&](const VersionInfo& v) {
    return v.version == resource.version;
  });
  if (version_at == versions.end()) {
    VersionInfo info;
    info.version = resource.version;
    // Custom groups prefer by the order of versions, built-in ones as they were given.
    auto place = versions.end();
    if (group_at->custom) {
      place = std::find_if(versions.begin(), versions.end(), [&](const VersionInfo& v) {
        return version_before(resource.version, v.version);
      });
    }
    version_at = versions.insert(place, std::move(info));
  }
  auto& resources = version_at->resources;
  auto place = std::find_if(resources.begin(), resources.end(),
                            [&](const ResourceInfo& r) { return resource.plural < r.plural; });
  resources.insert(place, std::move(resource));
}

bool version_before(std::string_view a, std::string_view b) {
  ParsedVersion left = parse_version(a);
  ParsedVersion right = parse_version(b);
  if (left.known != right.known) return left.known;
  if (!left.known) return a < b;
  if (left.stage != right.stage) return left.stage > right.stage;
  if (left.major != right.major) return left.major > right.major;
  return left.minor > right.minor;
}

std::string storage_version_hash(const ResourceInfo& resource) {
  std::string text = cat(resource.group, '/', resource.storage_version, '/', resource.kind);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return base64_encode({reinterpret_cast<const char*>(digest), 8});
}

}  // namespace dibs::api
