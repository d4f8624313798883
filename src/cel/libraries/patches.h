#pragma once
// What expressions of Kubernetes make to change objects with.
//
//   Object{spec: Object.spec{replicas: 3}}               part of an object, to be laid over another
//   JSONPatch{op: "add", path: "/spec/x", value: 1}      an operation of a JSON patch
//   jsonpatch.escapeKey("a/b")                           a key as paths of operations spell it
//
// Nothing is known of the fields of Object; that the types within it are named after the way from
// the root is looked at when the value is used.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cel/environment.h"

namespace dibs::cel {

void add_patches(Environment& environment);

/// "Object"; its parts are of types "Object.spec", "Object.spec.template", …
Type made_object_type();
Type patch_operation_type();

class MadeObject final : public Opaque {
 public:
  MadeObject(std::string type, std::vector<std::pair<std::string, Value>> fields)
      : type_(std::move(type)), fields_(std::move(fields)) {}
  std::string_view type_name() const override { return type_; }
  bool equals(const Opaque& other) const override;
  bool equals_only_itself() const override { return false; }
  bool field(std::string_view name, Value& out) const override;
  const std::vector<std::pair<std::string, Value>>& fields() const { return fields_; }

 private:
  std::string type_;
  std::vector<std::pair<std::string, Value>> fields_;
};

class PatchOperation final : public Opaque {
 public:
  std::string_view type_name() const override;
  bool equals(const Opaque& other) const override;
  bool equals_only_itself() const override { return false; }
  bool field(std::string_view name, Value& out) const override;

  std::string op, path, from;
  std::optional<Value> value;
};

/// Null when the value is something else.
const MadeObject* made_object(const Value& value);
const PatchOperation* patch_operation(const Value& value);

/// Faults of types within a value of type Object that are not named after their place; none: "".
std::string type_name_faults(const MadeObject& root);

}  // namespace dibs::cel
