#include "api/openapi/discovery.h"

#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

Value strings(const std::vector<std::string>& texts) {
  Value list = Value::array();
  for (const std::string& text : texts) list.push(Value(text));
  return list;
}

Value group_version(const GroupInfo& group, const VersionInfo& version) {
  return Value::object({{"groupVersion", Value(cat(group.name, '/', version.version))},
                        {"version", Value(version.version)}});
}

Value group_body(const GroupInfo& group, Value out) {
  out.set("name", Value(group.name));
  Value versions = Value::array();
  for (const VersionInfo& version : group.versions) versions.push(group_version(group, version));
  out.set("versions", std::move(versions));
  if (!group.versions.empty()) out.set("preferredVersion", group_version(group, group.versions[0]));
  return out;
}

Value resource_entry(const ResourceInfo& resource) {
  Value out = Value::object({{"name", Value(resource.plural)},
                             {"singularName", Value(resource.singular)},
                             {"namespaced", Value(resource.namespaced)},
                             {"kind", Value(resource.kind)},
                             {"verbs", strings(resource.verbs)}});
  if (!resource.short_names.empty()) out.set("shortNames", strings(resource.short_names));
  if (!resource.categories.empty()) out.set("categories", strings(resource.categories));
  if (!resource.list_kind.empty())
    out.set("storageVersionHash", Value(storage_version_hash(resource)));
  return out;
}

bool is_foreign(const ResourceInfo& resource, const GroupVersionKind& kind) {
  return kind.group != resource.group || kind.version != resource.version;
}

Value subresource_entry(const ResourceInfo& resource, const SubresourceInfo& sub) {
  Value out = Value::object({{"name", Value(cat(resource.plural, '/', sub.name))},
                             {"singularName", ""},
                             {"namespaced", Value(resource.namespaced)}});
  if (is_foreign(resource, sub.kind)) {
    out.set("group", Value(sub.kind.group));
    out.set("version", Value(sub.kind.version));
  }
  out.set("kind", Value(sub.kind.kind));
  out.set("verbs", strings(sub.verbs));
  return out;
}

/// Empty group and version stand for those around; custom resources spell them out.
Value response_kind(const ResourceInfo& resource, const GroupVersionKind& kind) {
  bool spelled = resource.custom || is_foreign(resource, kind);
  return Value::object({{"group", spelled ? Value(kind.group) : Value("")},
                        {"version", spelled ? Value(kind.version) : Value("")},
                        {"kind", Value(kind.kind)}});
}

Value aggregated_resource(const ResourceInfo& resource) {
  Value out = Value::object(
      {{"resource", Value(resource.plural)},
       {"responseKind", response_kind(resource, {resource.group, resource.version, resource.kind})},
       {"scope", resource.namespaced ? "Namespaced" : "Cluster"},
       {"singularResource", Value(resource.singular)},
       {"verbs", strings(resource.verbs)}});
  if (!resource.short_names.empty()) out.set("shortNames", strings(resource.short_names));
  if (!resource.categories.empty()) out.set("categories", strings(resource.categories));
  if (!resource.subresources.empty()) {
    Value subs = Value::array();
    for (const SubresourceInfo& sub : resource.subresources) {
      subs.push(Value::object({{"subresource", Value(sub.name)},
                               {"responseKind", response_kind(resource, sub.kind)},
                               {"verbs", strings(sub.verbs)}}));
    }
    out.set("subresources", std::move(subs));
  }
  return out;
}

}  // namespace

Value api_versions(std::string_view server_address) {
  return Value::object(
      {{"kind", "APIVersions"},
       {"versions", Value::array({"v1"})},
       {"serverAddressByClientCIDRs",
        Value::array({Value::object(
            {{"clientCIDR", "0.0.0.0/0"}, {"serverAddress", Value(server_address)}})})}});
}

Value api_group_list(const Catalog& catalog) {
  Value groups = Value::array();
  for (const GroupInfo& group : catalog.groups) {
    if (!group.name.empty()) groups.push(group_body(group, Value::object()));
  }
  return Value::object(
      {{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", std::move(groups)}});
}

Value api_group(const GroupInfo& group) {
  return group_body(group, Value::object({{"kind", "APIGroup"}, {"apiVersion", "v1"}}));
}

Value api_resource_list(const GroupInfo& group, const VersionInfo& version) {
  Value out = Value::object({{"kind", "APIResourceList"}});
  // The core group's list has never had one.
  if (!group.name.empty()) out.set("apiVersion", "v1");
  out.set("groupVersion", group.name.empty() ? Value(version.version)
                                             : Value(cat(group.name, '/', version.version)));
  Value resources = Value::array();
  for (const ResourceInfo& resource : version.resources) {
    resources.push(resource_entry(resource));
    for (const SubresourceInfo& sub : resource.subresources)
      resources.push(subresource_entry(resource, sub));
  }
  out.set("resources", std::move(resources));
  return out;
}

Value aggregated_discovery(const Catalog& catalog, bool core, std::string_view version) {
  Value items = Value::array();
  for (const GroupInfo& group : catalog.groups) {
    if (group.name.empty() != core) continue;
    Value versions = Value::array();
    for (const VersionInfo& info : group.versions) {
      Value resources = Value::array();
      for (const ResourceInfo& resource : info.resources)
        resources.push(aggregated_resource(resource));
      versions.push(Value::object({{"version", Value(info.version)},
                                   {"resources", std::move(resources)},
                                   {"freshness", "Current"}}));
    }
    Value metadata = Value::object();
    if (!core) metadata.set("name", Value(group.name));
    items.push(
        Value::object({{"metadata", std::move(metadata)}, {"versions", std::move(versions)}}));
  }
  return Value::object({{"kind", "APIGroupDiscoveryList"},
                        {"apiVersion", Value(cat("apidiscovery.k8s.io/", version))},
                        {"metadata", Value::object()},
                        {"items", std::move(items)}});
}

}  // namespace dibs::api
