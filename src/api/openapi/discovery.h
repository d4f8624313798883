#pragma once
// The documents by which clients learn what is served. All are functions of a Catalog.

#include <string_view>

#include "api/schema/catalog.h"
#include "json/value.h"

namespace dibs::api {

/// GET /api: APIVersions.
json::Value api_versions(std::string_view server_address);
/// GET /apis: APIGroupList, without core.
json::Value api_group_list(const Catalog& catalog);
/// GET /apis/GROUP: APIGroup.
json::Value api_group(const GroupInfo& group);
/// GET /api/v1, /apis/GROUP/VERSION: APIResourceList.
json::Value api_resource_list(const GroupInfo& group, const VersionInfo& version);

/// GET /api (core) or /apis (all other groups) as APIGroupDiscoveryList of apidiscovery.k8s.io;
/// `version` is "v2" or "v2beta1".
json::Value aggregated_discovery(const Catalog& catalog, bool core, std::string_view version);

}  // namespace dibs::api
