#pragma once
// Custom resources: what a CustomResourceDefinition makes of the generic machinery.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/workload/scale.h"
#include "api/print/table.h"
#include "api/schema/kind.h"
#include "base/result.h"
#include "base/time.h"
#include "server/resource.h"

namespace dibs::server {

class Conversions;  // conversion.h

/// A definition, compiled. Immutable.
struct CustomKind {
  struct Version;
  Value definition;
  std::map<std::string, std::shared_ptr<const Version>, std::less<>> versions;
  std::shared_ptr<const ConversionWebhook> conversion;  // null: versions differ in their name alone

  ~CustomKind();
};

/// `conversions` outlives it. Errors: invalid, for a definition that validation should not have let
/// pass.
Result<std::shared_ptr<const CustomKind>> compile_definition(const Value& definition,
                                                             Conversions& conversions);

/// The served resources of a definition. `ending`: it is being deleted, so that no more objects are
/// made.
std::vector<ResourcePtr> custom_resources(const std::shared_ptr<const CustomKind>& kind,
                                          bool ending);

/// Pruned and checked for the types of metadata; unknown fields go to `strict`. A version that the
/// definition does not have has no fields of its own.
Result<Value> decode_custom(const CustomKind& kind, std::string_view version, const Value& raw,
                            std::vector<std::string>& strict);
/// The same of what a client sent, by the version that it names itself; of another group or kind
/// the metadata alone is looked at.
Result<Value> decode_custom_body(const CustomKind& kind, const Value& raw,
                                 std::vector<std::string>& strict);
/// Objects in any version of the kind, in that one: by its webhook where it has one. Errors: of the
/// webhook.
Result<std::vector<Value>> convert_custom(const CustomKind& kind, std::string_view version,
                                          std::vector<Value> objects);
void apply_custom_defaults(const CustomKind& kind, std::string_view version, Value& object);

const std::vector<api::Column>& custom_columns(const CustomKind& kind, std::string_view version);
Value custom_cells(const CustomKind& kind, std::string_view version, const Value& object, Time now);

/// Null where the version has no scale sub-resource.
const api::ScalePaths* scale_paths(const CustomKind& kind, std::string_view version);

}  // namespace dibs::server
