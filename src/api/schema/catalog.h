#pragma once
// What is served under which names: groups, versions, resources, and the schema of every kind.
//
// The built-in catalog (builtin.h) is made once from the schema texts. A server that serves less of
// it, or custom resources beside it, makes a Catalog of its own; discovery and OpenAPI documents
// are functions of a Catalog.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/kind.h"
#include "api/schema/schema.h"

namespace dibs::api {

struct SubresourceInfo {
  std::string name;
  GroupVersionKind kind;  // of the body
  std::vector<std::string> verbs;
};

struct ResourceInfo {
  std::string group;
  std::string version;
  std::string plural;
  std::string singular;
  std::string kind;
  std::string list_kind;  // "" where it cannot be listed
  bool namespaced = false;
  std::vector<std::string> short_names;
  std::vector<std::string> categories;
  std::vector<std::string> verbs;
  std::vector<SubresourceInfo> subresources;
  const Schema* schema = nullptr;  // null for custom resources
  /// Of its keys: "/registry/pods/"; "" where nothing is stored.
  std::string storage_prefix;
  /// The version that storageVersionHash names; upstream's choice.
  std::string storage_version;
  /// The group-version in which objects are stored here: all versions of a resource have the same.
  std::string hub_group;
  std::string hub_version;
  bool custom = false;
  /// The minor number of the release whose schemas these are; 0 where none is emulated.
  int release = 0;
  json::Value openapi;  // of a custom resource: its openAPIV3Schema, or null

  std::string api_version() const { return group.empty() ? version : group + "/" + version; }
  const SubresourceInfo* subresource(std::string_view name) const;
};

struct VersionInfo {
  std::string version;
  /// Minor numbers of the releases that serve it; 0 is open.
  int first_release = 0;
  int last_release = 0;
  std::vector<ResourceInfo> resources;  // sorted by plural
};

struct GroupInfo {
  std::string name;  // "" is core
  bool custom = false;
  std::vector<VersionInfo> versions;  // the preferred one first

  const VersionInfo* version(std::string_view name) const;
};

struct Catalog {
  std::vector<GroupInfo> groups;  // in the order of discovery, core first

  const GroupInfo* group(std::string_view name) const;
  const ResourceInfo* find(std::string_view group, std::string_view version,
                           std::string_view plural) const;
  /// By kind; resources only.
  const ResourceInfo* find_kind(std::string_view group, std::string_view version,
                                std::string_view kind) const;

  /// Puts a resource in, with its group and version where they are new (at the end).
  void add(ResourceInfo resource);
};

/// Orders versions as the API does: v2, v1, v11beta2, v3beta1, v12alpha1, then other names.
bool version_before(std::string_view a, std::string_view b);

/// The hash of a storage version in discovery.
std::string storage_version_hash(const ResourceInfo& resource);

}  // namespace dibs::api
