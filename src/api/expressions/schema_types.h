#pragma once
// What a structural schema is to expressions: declared types, and bounds on how large values get.
//
// The bounds decide which rules are accepted, so they are computed as upstream computes them: from
// maxItems, maxProperties, maxLength and enum, else from how often a value fits into the largest
// request. A schema whose values expressions cannot see has no type; its parents leave it out.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cel/cost/cost_estimate.h"
#include "cel/environment.h"
#include "cel/type.h"
#include "json/value.h"

namespace dibs::api {

/// The largest request that is taken.
inline constexpr std::uint64_t kMaxRequestBytes = 3 * 1024 * 1024;

/// A property's name as expressions spell it: "a-b" is a__dash__b, "if" is __if__. Nothing when it
/// cannot be spelled.
std::optional<std::string> escape_name(std::string_view name);
/// The reverse; nothing for what escape_name() never makes.
std::optional<std::string> unescape_name(std::string_view escaped);

enum class TypedShape : std::uint8_t {
  unknown,  // preserved, but not to be looked into
  object,
  map,
  list,
  int_or_string,
  string,
  bytes,
  date,
  date_time,
  duration,
  boolean,
  integer,
  number,
};

enum class TypedList : std::uint8_t { atomic, set, keyed };

/// One schema and those inside it. Immutable once made.
struct TypedSchema {
  TypedShape shape = TypedShape::unknown;
  bool nullable = false;
  TypedList list_type = TypedList::atomic;
  std::vector<std::string> keys;  // of a keyed list: names of properties
  /// By their names in objects. Resources have apiVersion, kind, metadata.name and
  /// metadata.generateName, whether declared or not, and nothing else in metadata.
  std::map<std::string, std::unique_ptr<TypedSchema>, std::less<>> properties;
  std::unique_ptr<TypedSchema> items;
  std::unique_ptr<TypedSchema> values;  // of a map
  /// As written.
  json::Value source;

  /// False: expressions know nothing of such values; the rest is then unset.
  bool has_type = false;
  cel::Type type;
  /// Elements, entries, characters or bytes; 0 for what has no size.
  std::uint64_t max_size = 0;
  /// Of its JSON.
  std::uint64_t min_bytes = 0;
  /// Properties with a type, by their names in expressions.
  std::map<std::string, const TypedSchema*, std::less<>> fields;
  /// "object", "string", …; "" where none is declared.
  std::string_view declared_type() const { return source["type"].as_string(); }
  const json::Value& rules() const { return source["x-kubernetes-validations"]; }
};

/// `name`: of the type, where it is an object; types inside are named after it. `is_resource`: the
/// root of a custom resource; embedded resources are found out.
std::unique_ptr<TypedSchema> make_typed_schema(const json::Value& schema, bool is_resource,
                                               const std::string& name);

/// Makes the object types of the schema known to an environment.
void declare_types(const TypedSchema& schema, cel::Environment& environment);

/// Bounds for an expression whose variables all are of the schema. A path that begins with no
/// variable (a loop over a literal) is taken for one that does, as upstream has it.
cel::SizeBound size_bound(const TypedSchema& schema);

}  // namespace dibs::api
