#include "api/structural/custom_rules.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/structural/defaults.h"
#include "api/structural/embedded.h"
#include "api/structural/list_types.h"
#include "api/structural/validate.h"
#include "base/finalizers.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using VersionPtr = std::shared_ptr<const CustomVersion>;

/// Faults of a kind that rules written for valid objects could trip over.
bool blocks_rules(const FieldErrors& errors) {
  return std::any_of(errors.errors().begin(), errors.errors().end(), [](const FieldError& error) {
    return error.fault == Fault::not_supported || error.fault == Fault::required ||
           error.fault == Fault::too_long || error.fault == Fault::too_many ||
           error.fault == Fault::type_invalid;
  });
}

void judge_cel(const CustomVersion& version, const Value& object, const Value* old,
               FieldErrors& errors) {
  if (!version.schema->has_validations()) return;
  if (blocks_rules(errors)) {
    errors.invalid(Path(), nullptr,
                   "some validation rules were not checked because the object was invalid; correct "
                   "the existing "
                   "errors to complete validation");
  } else if (version.cel) {
    version.cel(object, old, errors);
  }
}

/// Duplicates that were there before are forgiven, all together.
void judge_list_types(const CustomVersion& version, const Value& object, const Value* old,
                      FieldErrors& errors) {
  FieldErrors found;
  validate_list_types(object, version.schema->root(), found);
  if (found.empty()) return;
  if (old != nullptr) {
    FieldErrors before;
    validate_list_types(*old, version.schema->root(), before);
    if (!before.empty()) return;
  }
  for (const FieldError& error : found.errors())
    errors.add(error.fault, Path(error.field), error.text);
}

/// The value at ".spec.replicas", or null. A value on the way that is no object is told, and then
/// there is nothing.
std::optional<Value> value_at(const Value& object, const std::string& path, const Value& zero,
                              FieldErrors& errors) {
  const Value* at = &object;
  std::string seen;
  for (std::string_view name :
       split(std::string_view(path).substr(path.starts_with('.') ? 1 : 0), '.')) {
    if (!at->is_object()) {
      errors.invalid(Path(path), zero,
                     cat(seen, " accessor error: ", go_value(*at), " is of the type ", go_type(*at),
                         ", expected map[string]interface{}"));
      return std::nullopt;
    }
    at = at->find(name);
    if (at == nullptr) return Value();
    append(seen, ".", name);
  }
  return *at;
}

void judge_replicas(const Value& object, const std::string& path, FieldErrors& errors) {
  const auto value = value_at(object, path, 0, errors);
  if (!value || value->is_null()) return;
  if (!value->is_integer()) {
    errors.invalid(Path(path), 0,
                   cat(path.starts_with('.') ? "" : ".", path, " accessor error: ",
                       go_value(*value), " is of the type ", go_type(*value), ", expected int64"));
  } else if (value->as_int() < 0) {
    errors.invalid(Path(path), *value, "should be a non-negative integer");
  } else if (value->as_int() > std::numeric_limits<std::int32_t>::max()) {
    errors.invalid(Path(path), *value, "should be less than or equal to 2147483647");
  }
}

void judge_scale_status(const ScalePaths& scale, const Value& object, FieldErrors& errors) {
  judge_replicas(object, scale.status_replicas, errors);
  if (scale.label_selector.empty()) return;
  const auto selector = value_at(object, scale.label_selector, "", errors);
  if (selector && !selector->is_null() && !selector->is_string()) {
    errors.invalid(Path(scale.label_selector), "",
                   cat(scale.label_selector, " accessor error: ", go_value(*selector),
                       " is of the type ", go_type(*selector), ", expected string"));
  }
}

void judge(const CustomVersion& version, const Value& object, const Value* old,
           FieldErrors& errors) {
  const Schema& root = version.schema->root();
  if (old == nullptr) {
    validate_value(object, root, Path(), errors);
  } else {
    // Upstream judges the metadata of a changed custom object three times; one of them is done for
    // every kind.
    validate_metadata_update(object, *old, errors, false);
    validate_metadata_update(object, *old, errors, false);
    validate_changed_value(object, *old, root, Path(), errors);
  }
  if (version.scale) {
    judge_replicas(object, version.scale->spec_replicas, errors);
    judge_scale_status(*version.scale, object, errors);
  }
  validate_embedded(object, root, errors);
  judge_list_types(version, object, old, errors);
  judge_cel(version, object, old, errors);
}

void judge_status(const CustomVersion& version, const Value& object, const Value& old,
                  FieldErrors& errors) {
  const Value* status = object.find("status");
  const Schema* schema = version.schema->status();
  if (status != nullptr && schema != nullptr) {
    validate_changed_value(*status, old["status"], *schema, Path("status"), errors);
  }
  if (version.scale) judge_scale_status(*version.scale, object, errors);
  judge_list_types(version, object, &old, errors);
  judge_cel(version, object, &old, errors);
}

/// Finalizers that are new and not well spelled.
std::vector<std::string> finalizer_warnings(const Value& object, const Value* old) {
  std::vector<std::string> added;
  for (const Value& finalizer : object["metadata"]["finalizers"].items()) {
    const auto before = old == nullptr ? json::Items() : (*old)["metadata"]["finalizers"].items();
    if (std::find(before.begin(), before.end(), finalizer) == before.end())
      added.push_back(finalizer.str());
  }
  std::sort(added.begin(), added.end());
  added.erase(std::unique(added.begin(), added.end()), added.end());
  std::vector<std::string> warnings;
  for (const std::string& name : added) {
    const std::string begin = cat("metadata.finalizers: ", quoted(name), ": ");
    for (const std::string& fault : is_qualified_name(name)) warnings.push_back(begin + fault);
    if (name.find('/') != std::string::npos || is_plain_finalizer(name)) continue;
    warnings.push_back(cat(begin, "prefer a domain-qualified finalizer name ",
                           name.find('.') != std::string::npos ? "including a path (/) " : "",
                           "to avoid accidental conflicts with other finalizer writers"));
  }
  return warnings;
}

}  // namespace

std::string selectable_value(const Value& object, std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  const Value* at = &object;
  for (std::string_view name : split(path, '.')) at = &(*at)[name];
  if (at->is_null()) return "";
  if (at->is_string()) return at->str();
  return at->kind() == json::Kind::number ? json::go_float(at->as_double()) : json::write(*at);
}

KindRules make_custom_rules(CustomVersion version) {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = version.has_status;
  rules.allow_unconditional_update = false;
  rules.allow_create_on_update = false;
  rules.any_finalizers = true;
  for (const std::string& path : version.selectable) {
    SelectableField field;
    field.label = path.starts_with('.') ? path.substr(1) : path;
    field.get = [path](const Value& object) { return selectable_value(object, path); };
    rules.selectable.push_back(std::move(field));
  }
  const VersionPtr shared = std::make_shared<const CustomVersion>(std::move(version));
  rules.set_defaults = [shared](Value& object) {
    apply_custom_defaults(object, shared->schema->root());
  };
  rules.validate = [shared](const Value& object, FieldErrors& errors) {
    judge(*shared, object, nullptr, errors);
  };
  rules.validate_update = [shared](const Value& object, const Value& old, FieldErrors& errors) {
    judge(*shared, object, &old, errors);
  };
  rules.validate_status = [shared](const Value& object, const Value& old, FieldErrors& errors) {
    judge_status(*shared, object, old, errors);
  };
  rules.warnings = finalizer_warnings;
  return rules;
}

}  // namespace dibs::api
