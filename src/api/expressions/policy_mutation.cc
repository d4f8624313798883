#include "api/expressions/policy_mutation.h"

#include <string>
#include <vector>

#include "api/merge/merge.h"
#include "base/strings.h"
#include "cel/json_value.h"
#include "cel/libraries/patches.h"
#include "json/patch.h"

namespace dibs::api {
namespace {

using json::Value;

Error fault(std::string message) { return Error::bad_request(std::move(message)); }

void find_atomics(SchemaPtr schema, const Value& value, const std::string& path, bool is_root,
                  std::vector<std::string>& found) {
  if (value.is_object() && atom_of(schema, value) == Atom::map) {
    if (is_atomic_map(schema)) found.push_back(path);
    for (const auto& [key, member] : value.members()) {
      const ChildSchema child = child_of(schema, key, is_root);
      if (child.declared) find_atomics(child.schema, member, cat(path, ".", key), false, found);
    }
  } else if (value.is_array() && atom_of(schema, value) == Atom::list) {
    if (is_atomic_list(schema)) found.push_back(path);
    std::size_t i = 0;
    for (const Value& item : value.items())
      find_atomics(element_of(schema), item, cat(path, "[", i++, "]"), false, found);
  }
}

Result<> check_type_names(const cel::MadeObject& object) {
  std::string faults = cel::type_name_faults(object);
  if (!faults.empty()) return fault(cat("type mismatch: ", faults));
  return success();
}

Result<Value> json_operation(const cel::PatchOperation& operation) {
  Value made = Value::object({{"op", operation.op}, {"path", operation.path}});
  if (!operation.from.empty()) made.set("from", operation.from);
  if (!operation.value) return made;
  if (const cel::MadeObject* object = cel::made_object(*operation.value))
    DIBS_CHECK(check_type_names(*object));
  auto value = cel::to_json(*operation.value);
  if (!value.ok()) {
    return fault(
        cat("JSONPath valueExpression evaluated to a type that could not marshal to JSON: ",
            value.error().message()));
  }
  made.set("value", std::move(value).value());
  return made;
}

}  // namespace

Result<Value> lay_configuration(const Value& object, const cel::Value& configuration,
                                const Schema& schema) {
  const cel::MadeObject* made = cel::made_object(configuration);
  if (made == nullptr) {
    return fault(cat("unsupported return type from ApplyConfiguration expression: ",
                     configuration.type_name()));
  }
  DIBS_CHECK(check_type_names(*made));
  DIBS_TRY(Value patch, cel::to_json(configuration));
  for (std::string_view key : {"apiVersion", "kind"}) patch.set(key, object[key]);
  constexpr std::string_view kFailed = "error applying patch: ";
  if (auto fits = check_typed(patch, schema); !fits.ok()) {
    return fault(
        cat(kFailed, "failed to convert patch object to typed object: ", fits.error().message()));
  }
  std::vector<std::string> atomics;
  find_atomics(&schema, patch, "", true, atomics);
  if (!atomics.empty()) {
    return fault(cat(kFailed,
                     "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ",
                     join(atomics, ", ")));
  }
  auto merged = merge_objects(object, patch, schema);
  if (!merged.ok()) return fault(cat(kFailed, "failed to merge patch: ", merged.error().message()));
  return merged;
}

Result<Value> apply_operations(const Value& object, const cel::Value& operations) {
  if (!operations.is(cel::Kind::list))
    return fault("type mismatch: JSONPatchType.expression should evaluate to array");
  Value patch = Value::array();
  for (std::size_t i = 0; i < operations.as_list().size(); ++i) {
    const cel::Value item = operations.as_list().at(i);
    const cel::PatchOperation* operation = cel::patch_operation(item);
    if (operation == nullptr) {
      return fault(
          cat("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got "
              "element of ",
              item.type_name()));
    }
    DIBS_TRY(Value one, json_operation(*operation));
    patch.push(std::move(one));
  }
  json::PatchFailure failure;
  auto patched = json::apply_json_patch(object, patch, &failure);
  if (patched.ok()) return patched;
  if (failure.is_test) return object;
  return fault(cat("JSON Patch: ", failure.why.empty() ? patched.error().message() : failure.why));
}

}  // namespace dibs::api
