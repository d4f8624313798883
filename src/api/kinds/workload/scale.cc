#include "api/kinds/workload/scale.h"

#include <string>
#include <vector>

#include "api/kinds/checks.h"
#include "base/strings.h"
#include "json/go_print.h"

namespace dibs::api {
namespace {

/// No number that anybody asks for: what the Scale of an object without replicas has while it is
/// patched. A number that is left out is 0.
constexpr long kNoReplicas = -2147483648;

Value make_scale(const Value& object, Value spec, std::int64_t current, std::string selector) {
  const Value& from = object["metadata"];
  Value metadata = Value::object();
  for (std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Value* value = from.find(key)) metadata.set(key, *value);
  }
  Value status = Value::object({{"replicas", Value(static_cast<long>(current))}});
  if (!selector.empty()) status.set("selector", selector);
  return Value::object({{"kind", "Scale"},
                        {"apiVersion", "autoscaling/v1"},
                        {"metadata", std::move(metadata)},
                        {"spec", std::move(spec)},
                        {"status", std::move(status)}});
}

Value spec_of(std::int64_t replicas) {
  Value spec = Value::object();
  if (replicas != 0) spec.set("replicas", static_cast<long>(replicas));
  return spec;
}

/// The write is conditional only if the Scale names a version.
void take_preconditions(Value& object, const Value& scale) {
  Value& metadata = object.mut("metadata");
  const Value& from = scale["metadata"];
  if (from["resourceVersion"].as_string().empty()) {
    metadata.erase("resourceVersion");
  } else {
    metadata.set("resourceVersion", from["resourceVersion"]);
  }
  if (!from["uid"].as_string().empty()) metadata.set("uid", from["uid"]);
}

std::vector<std::string_view> steps_of(std::string_view path) {
  if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  return split(path, '.');
}

const Value& at(const Value& object, std::string_view path) {
  const Value* value = &object;
  for (std::string_view step : steps_of(path)) value = &(*value)[step];
  return *value;
}

std::string type_text(std::string_view path, const Value& value, std::string_view wanted) {
  return cat(path, " accessor error: ", go_value(value), " is of the type ", go_type(value),
             ", expected ", wanted);
}

}  // namespace

Value scale_of(const Value& object) {
  const Value& spec = object["spec"];
  const Value& selector = spec["selector"];
  // A ReplicationController's selector is the map of labels itself.
  bool is_plain = !selector["matchLabels"].is_object() && !selector["matchExpressions"].is_array();
  std::string text = is_plain ? selector_text(Value::object({{"matchLabels", selector}}))
                              : selector_text(selector);
  return make_scale(object, spec_of(spec["replicas"].as_int()),
                    object["status"]["replicas"].as_int(), std::move(text));
}

Result<Value> apply_scale(const Value& object, const Value& scale) {
  std::int64_t replicas = scale["spec"]["replicas"].as_int();
  FieldErrors errors;
  Path spec("spec");
  check_nonnegative(scale["spec"], "replicas", spec, errors);
  if (!errors.empty()) {
    return errors.to_error("Scale", "autoscaling", object["metadata"]["name"].as_string());
  }
  Value changed = object;
  changed.mut("spec").set("replicas", static_cast<long>(replicas));
  take_preconditions(changed, scale);
  return changed;
}

Result<Value> scale_of_custom(const Value& object, const ScalePaths& paths, bool for_update) {
  const Value& wanted = at(object, paths.spec_replicas);
  const Value& current = at(object, paths.status_replicas);
  if (!wanted.is_null() && !wanted.is_integer()) {
    return Error::plain(type_text(paths.spec_replicas, wanted, "int64"));
  }
  if (!current.is_null() && !current.is_integer()) {
    return Error::plain(type_text(paths.status_replicas, current, "int64"));
  }
  std::string selector;
  if (!paths.label_selector.empty()) {
    const Value& text = at(object, paths.label_selector);
    if (!text.is_null() && !text.is_string()) {
      return Error::plain(type_text(paths.label_selector, text, "string"));
    }
    selector = text.str();
  }
  if (wanted.is_null() && !for_update) {
    std::string text =
        cat("the spec replicas field ", quoted(paths.spec_replicas), " does not exist");
    ErrorDetails details;
    details.causes.push_back({"", text, ""});
    return Error(Code::internal, cat("Internal error occurred: ", text), std::move(details));
  }
  Value spec = spec_of(wanted.as_int());
  return make_scale(object, std::move(spec), current.as_int(), std::move(selector));
}

void mark_without_replicas(Value& scale, const Value& object, const ScalePaths& paths) {
  if (at(object, paths.spec_replicas).is_null()) scale.mut("spec").set("replicas", kNoReplicas);
}

Result<Value> apply_scale_custom(const Value& object, const Value& scale, const ScalePaths& paths) {
  const Value& wanted = scale["spec"]["replicas"];
  if (wanted.as_int() == kNoReplicas) {
    return Error::bad_request(
        cat("the spec replicas field ", quoted(paths.spec_replicas), " cannot be empty"));
  }
  Value changed = object;
  Value* target = &changed;
  for (std::string_view step : steps_of(paths.spec_replicas)) target = &target->mut(step);
  *target = Value(static_cast<long>(wanted.as_int()));
  const Value& version = scale["metadata"]["resourceVersion"];
  if (!version.as_string().empty()) changed.mut("metadata").set("resourceVersion", version);
  return changed;
}

}  // namespace dibs::api
