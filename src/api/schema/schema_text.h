#pragma once
// Reads the texts of schema/*.schema (docs/formats/schema.md) into schemas and a catalog. Of this
// library alone.

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/schema/catalog.h"
#include "base/result.h"

namespace dibs::api {

/// Everything that the texts say. Schemas point to each other, so it stays where it was made.
struct SchemaBook {
  std::deque<Schema> schemas;
  std::map<std::string, Schema*, std::less<>> types;        // "core/v1.PodSpec"
  std::map<std::string, const Schema*, std::less<>> kinds;  // "apps/v1/Deployment"; core: "/v1/Pod"
  std::map<std::string, const Schema*, std::less<>> meta_kinds;  // "DeleteOptions"
  std::map<std::string, std::string, std::less<>>
      versions;  // "apps/v1" of (group/version) to package
  Catalog catalog;
};

struct SchemaText {
  std::string_view file;
  std::string_view text;
};

/// As the release of this minor number has it; 0 is the newest with what older ones leave beside.
/// Errors: internal, naming file and line.
Result<std::unique_ptr<SchemaBook>> read_schemas(const std::vector<SchemaText>& texts,
                                                 int minor = 0);

/// The zero value of Go as its encoder writes it; null where it leaves the field out. An object's
/// `empty` must be there.
json::Value zero_value(const Schema& schema);

/// The embedded texts; made by the build.
const std::vector<SchemaText>& schema_texts();
/// The embedded descriptions: lines of `full.name.Type[.field] words`.
std::string_view descriptions_text();

}  // namespace dibs::api
