#pragma once
// Parts of OpenAPI documents. Of this library alone.

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/catalog.h"
#include "json/value.h"

namespace dibs::api::openapi {

enum class Dialect : char { v2, v3 };

/// Collects the types that a document refers to, and what they refer to.
class Definitions {
 public:
  explicit Definitions(Dialect dialect) : dialect_(dialect) {}

  /// {"$ref": "#/components/schemas/NAME"} of a built-in type.
  json::Value ref(const Schema& schema);
  /// A reference to a definition made by the caller, once.
  json::Value ref(const std::string& name, const json::Value& definition);
  bool contains(const std::string& name) const { return made_.contains(name); }

  /// All definitions by name.
  json::Value finish();

  Dialect dialect() const { return dialect_; }

 private:
  json::Value make(const Schema& schema);
  json::Value type_of(const Schema& schema);
  json::Value property(const Schema& holder, const Field& field);

  Dialect dialect_;
  std::map<std::string, json::Value> made_;
  std::map<std::string, const Schema*> wanted_;
};

/// {"$ref"} in the dialect's place.
json::Value reference(Dialect dialect, std::string_view name);

/// Puts the paths of a resource into `paths`.
void add_paths(json::Value& paths, const ResourceInfo& resource, Definitions& definitions);

/// The definition of a custom resource and of its list.
json::Value custom_ref(const ResourceInfo& resource, bool list, Definitions& definitions);

json::Value group_version_kind(const GroupVersionKind& kind);

}  // namespace dibs::api::openapi
