#pragma once
// The rules of a custom kind, made from one version of its definition.

#include <functional>
#include <optional>

#include "api/kinds/workload/scale.h"
#include "api/schema/field_error.h"
#include "api/schema/kind.h"
#include "api/structural/structural.h"

namespace dibs::api {

/// Evaluates x-kubernetes-validations; `old` is null on create. Called only when nothing was found
/// that would make the rules meaningless.
using CelValidator =
    std::function<void(const Value& object, const Value* old, FieldErrors& errors)>;

struct CustomVersion {
  CompiledSchemaPtr schema;
  bool has_status = false;
  std::optional<ScalePaths> scale;
  CelValidator cel;  // may be empty
  /// JSON paths as the definition writes them: ".spec.color".
  std::vector<std::string> selectable;
};

/// Defaults, validation with ratcheting, warnings, selectable fields. As for every kind, metadata
/// is judged by the caller first; decoding is decode_custom()'s.
KindRules make_custom_rules(CustomVersion version);

/// The value of a simple path (".spec.color") as a field selector sees it; "" when absent.
std::string selectable_value(const Value& object, std::string_view path);

}  // namespace dibs::api
