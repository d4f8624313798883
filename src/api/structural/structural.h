#pragma once
// Schemas of custom resources: an openAPIV3Schema compiled into api::Schema.
//
// The result is the one description that decoding, defaults, server-side apply and OpenAPI know,
// with the keywords they do not need in Rules. What stands under allOf, anyOf, oneOf and not
// becomes schemas of its own, reached from Rules only.
//
// The root and every embedded resource get the fields apiVersion, kind and metadata, the latter
// always that of meta/v1 ObjectMeta; what the definition says about metadata (limits of the name)
// is kept in Rules::metadata.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/schema/schema.h"
#include "api/structural/pattern.h"
#include "base/result.h"
#include "json/value.h"

namespace dibs::api {

/// What additionalProperties says.
enum class Additional : std::uint8_t {
  unsaid,
  anything,   // true
  forbidden,  // false
  schema,     // Rules::other
};

/// The keywords of a custom resource's schema beyond the type.
struct Rules {
  std::vector<std::string> types;  // empty: any; "integer" and "string" for int-or-string
  std::string format;              // empty when it is not known for the type
  std::optional<double> maximum;
  std::optional<double> minimum;
  std::optional<double> multiple_of;
  bool exclusive_maximum = false;
  bool exclusive_minimum = false;
  std::optional<std::int64_t> max_length;
  std::optional<std::int64_t> min_length;
  std::optional<std::int64_t> max_items;
  std::optional<std::int64_t> min_items;
  std::optional<std::int64_t> max_properties;
  std::optional<std::int64_t> min_properties;
  std::shared_ptr<const Pattern> pattern;
  std::vector<json::Value> enum_values;
  std::vector<std::string> required;
  std::vector<const Schema*> all_of;
  std::vector<const Schema*> any_of;
  std::vector<const Schema*> one_of;
  const Schema* none_of = nullptr;  // "not"
  Additional additional = Additional::unsaid;
  const Schema* other =
      nullptr;  // of properties that are not declared; also Schema::element of a map
  const Schema* items = nullptr;  // of a list; also Schema::element of a list
  bool keyed_list = false;        // x-kubernetes-list-type is map
  /// Of the root or an embedded resource: what is demanded of metadata beyond its being one. May be
  /// null.
  const Schema* metadata = nullptr;
  std::optional<json::Value> default_value;
  /// x-kubernetes-validations, as written; null when there are none. Judged by whoever knows CEL.
  json::Value validations;
};

struct CompileLimits {
  std::size_t depth = 256;
  std::size_t nodes = 200'000;
};

/// Owns all schemas of one definition's version. Immutable.
class CompiledSchema {
 public:
  const Schema& root() const { return *root_; }
  /// The declared schema of .status, or null.
  const Schema* status() const;
  /// Some x-kubernetes-validations somewhere.
  bool has_validations() const { return has_validations_; }

 private:
  friend class SchemaCompiler;
  std::deque<Schema> nodes_;
  const Schema* root_ = nullptr;
  bool has_validations_ = false;
};
using CompiledSchemaPtr = std::shared_ptr<const CompiledSchema>;

/// Errors: invalid, for what no structural schema has ($ref, definitions, a list of items, …) and
/// for schemas that are too deep or too large. A schema that passed the rules of definitions
/// compiles. A null one is that of
/// {"type": "object", "x-kubernetes-preserve-unknown-fields": true}.
Result<CompiledSchemaPtr> compile_schema(const json::Value& schema,
                                         const CompileLimits& limits = {});

/// Whether the schema keeps to the limits; looks at the JSON only and does not recurse.
Result<> check_schema_size(const json::Value& schema, const CompileLimits& limits = {});

}  // namespace dibs::api
