#pragma once
// OpenAPI documents, made from a Catalog.
//
// Version 3 is one document per path of the index ("api/v1", "apis/apps/v1", "version"); version 2
// is one document for all. Making one takes milliseconds: a server keeps what it made until its
// catalog changes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/catalog.h"
#include "json/value.h"

namespace dibs::api {

/// The keys of the index, sorted.
std::vector<std::string> openapi_v3_paths(const Catalog& catalog);
/// A digest of what the document of a path is made of (upper-case hex). Cheap: the document itself
/// is not made.
std::string openapi_v3_hash(const Catalog& catalog, std::string_view path);
/// GET /openapi/v3: {"paths": {"apis/apps/v1": {"serverRelativeURL":
/// "/openapi/v3/apis/apps/v1?hash=…"}}}
json::Value openapi_v3_index(const Catalog& catalog);
/// GET /openapi/v3/PATH; nothing when there is no such path. `release` is shown as info.version:
/// "v1.37.0".
std::optional<json::Value> openapi_v3(const Catalog& catalog, std::string_view path,
                                      std::string_view release);

/// GET /openapi/v2.
json::Value openapi_v2(const Catalog& catalog, std::string_view release);
/// The same as a gnostic openapi.v2.Document message.
std::string openapi_v2_protobuf(const json::Value& document);

}  // namespace dibs::api
