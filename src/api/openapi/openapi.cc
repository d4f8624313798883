#include "api/openapi/openapi.h"

#include <openssl/sha.h>

#include <algorithm>

#include "api/openapi/build.h"
#include "api/schema/builtin.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;
using openapi::Definitions;
using openapi::Dialect;

std::string version_path(const GroupInfo& group, const VersionInfo& version) {
  return group.name.empty() ? cat("api/", version.version)
                            : cat("apis/", group.name, '/', version.version);
}

struct Found {
  const GroupInfo* group = nullptr;
  const VersionInfo* version = nullptr;
};

Found find_version(const Catalog& catalog, std::string_view path) {
  for (const GroupInfo& group : catalog.groups) {
    for (const VersionInfo& version : group.versions) {
      if (version_path(group, version) == path) return {&group, &version};
    }
  }
  return {};
}

/// Paths beside the group-versions: discovery of a group, all groups, the server's version.
bool is_plain_path(const Catalog& catalog, std::string_view path) {
  if (path == "api" || path == "apis" || path == "version") return true;
  if (!path.starts_with("apis/")) return false;
  const GroupInfo* group = catalog.group(path.substr(5));
  return group != nullptr && !group->custom && !group->name.empty();
}

std::string security_words() { return "Bearer Token authentication"; }

Value info(std::string_view release) {
  return Value::object({{"title", "Kubernetes"}, {"version", Value(release)}});
}

Value v3_document(std::string_view release, Value paths, Value schemas) {
  Value scheme = Value::object({{"type", "apiKey"},
                                {"description", Value(security_words())},
                                {"name", "authorization"},
                                {"in", "header"}});
  return Value::object(
      {{"openapi", "3.0.0"},
       {"info", info(release)},
       {"paths", std::move(paths)},
       {"components", Value::object({{"schemas", std::move(schemas)},
                                     {"securitySchemes",
                                      Value::object({{"BearerToken", std::move(scheme)}})}})}});
}

Value plain_operation(Dialect dialect, std::string_view words, const Value& schema) {
  Value ok = Value::object({{"description", "OK"}});
  if (dialect == Dialect::v3) {
    ok.set("content", Value::object({{"application/json", Value::object({{"schema", schema}})}}));
  } else {
    ok.set("schema", schema);
  }
  return Value::object(
      {{"description", Value(words)},
       {"responses",
        Value::object({{"200", ok}, {"401", Value::object({{"description", "Unauthorized"}})}})}});
}

void add_plain_path(Value& paths, std::string_view path, Dialect dialect) {
  std::string url = path == "version" ? "/version/" : cat('/', path, '/');
  Value answer = Value::object({{"type", "object"}});
  std::string_view words = path == "version" ? "The version of the server"
                           : path == "api"   ? "The versions of the core API"
                           : path == "apis"  ? "The groups that are served"
                                             : "One group and its versions";
  paths.set(url, Value::object({{"get", plain_operation(dialect, words, answer)}}));
}

void digest_resource(std::string& out, const ResourceInfo& resource) {
  append(out, resource.release, '\n', resource.plural, '\n', resource.kind, '\n',
         resource.namespaced, '\n', join(resource.verbs, ","), '\n');
  for (const SubresourceInfo& sub : resource.subresources) {
    append(out, sub.name, ' ', sub.kind.api_version(), ' ', sub.kind.kind, ' ',
           join(sub.verbs, ","), '\n');
  }
  if (!resource.openapi.is_null()) json::write_to(out, resource.openapi);
}

std::string upper_digest(std::string_view text) {
  unsigned char bytes[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes);
  return to_upper(hex_encode({reinterpret_cast<const char*>(bytes), sizeof bytes}));
}

}  // namespace

std::vector<std::string> openapi_v3_paths(const Catalog& catalog) {
  std::vector<std::string> paths = {"api", "apis", "version"};
  for (const GroupInfo& group : catalog.groups) {
    if (!group.name.empty() && !group.custom) paths.push_back(cat("apis/", group.name));
    for (const VersionInfo& version : group.versions) paths.push_back(version_path(group, version));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string openapi_v3_hash(const Catalog& catalog, std::string_view path) {
  std::string text = cat(builtin_digest(), path, '\n');
  if (Found found = find_version(catalog, path); found.version != nullptr) {
    for (const ResourceInfo& resource : found.version->resources) digest_resource(text, resource);
  }
  return upper_digest(text);
}

Value openapi_v3_index(const Catalog& catalog) {
  Value paths = Value::object();
  for (const std::string& path : openapi_v3_paths(catalog)) {
    paths.set(path,
              Value::object({{"serverRelativeURL", Value(cat("/openapi/v3/", path, "?hash=",
                                                             openapi_v3_hash(catalog, path)))}}));
  }
  return Value::object({{"paths", std::move(paths)}});
}

std::optional<Value> openapi_v3(const Catalog& catalog, std::string_view path,
                                std::string_view release) {
  Value paths = Value::object();
  Found found = find_version(catalog, path);
  if (found.version == nullptr) {
    if (!is_plain_path(catalog, path)) return std::nullopt;
    add_plain_path(paths, path, Dialect::v3);
    return v3_document(release, std::move(paths), Value::object());
  }
  Definitions definitions(Dialect::v3);
  add_plain_path(paths, path, Dialect::v3);
  for (const ResourceInfo& resource : found.version->resources)
    openapi::add_paths(paths, resource, definitions);
  return v3_document(release, std::move(paths), definitions.finish());
}

Value openapi_v2(const Catalog& catalog, std::string_view release) {
  Definitions definitions(Dialect::v2);
  Value paths = Value::object();
  for (const std::string& path : openapi_v3_paths(catalog))
    add_plain_path(paths, path, Dialect::v2);
  for (const GroupInfo& group : catalog.groups) {
    for (const VersionInfo& version : group.versions) {
      for (const ResourceInfo& resource : version.resources)
        openapi::add_paths(paths, resource, definitions);
    }
  }
  Value scheme = Value::object({{"description", Value(security_words())},
                                {"type", "apiKey"},
                                {"name", "authorization"},
                                {"in", "header"}});
  return Value::object(
      {{"swagger", "2.0"},
       {"info", info(release)},
       {"paths", std::move(paths)},
       {"definitions", definitions.finish()},
       {"securityDefinitions", Value::object({{"BearerToken", std::move(scheme)}})},
       {"security", Value::array({Value::object({{"BearerToken", Value::array()}})})}});
}

}  // namespace dibs::api
