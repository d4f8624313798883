#include "cel/libraries/patches.h"

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::string_view kObject = "Object";
constexpr std::string_view kJsonPatch = "JSONPatch";

Value make_object(const std::string& type, const Value* fields, std::size_t count) {
  std::vector<std::pair<std::string, Value>> made;
  for (std::size_t i = 0; i < count; i += 2) {
    const std::string_view name = fields[i].text();
    // A field that is named twice has its last value.
    bool known = false;
    for (auto& [other, value] : made) {
      if (other != name) continue;
      value = fields[i + 1];
      known = true;
    }
    if (!known) made.emplace_back(name, fields[i + 1]);
  }
  return Value::opaque(new MadeObject(type, std::move(made)));
}

Value make_operation(const std::string&, const Value* fields, std::size_t count) {
  auto made = std::make_unique<PatchOperation>();
  for (std::size_t i = 0; i < count; i += 2) {
    const std::string_view name = fields[i].text();
    const Value& value = fields[i + 1];
    if (name == "value") {
      made->value = value;
      continue;
    }
    if (!value.is(Kind::string)) {
      return Value::error(
          cat("unexpected type ", value.type_name(), " for JSONPatchType '", name, "' field"));
    }
    (name == "op" ? made->op : name == "path" ? made->path : made->from) = value.text();
  }
  return Value::opaque(made.release());
}

Value escape_key(const Value* arguments, std::size_t) {
  std::string made;
  for (const char c : arguments[0].text()) {
    if (c == '/')
      made += "~1";
    else if (c == '~')
      made += "~0";
    else
      made += c;
  }
  return Value::string(std::move(made));
}

void collect_faults(const Value& value, const std::string& expected,
                    std::vector<std::string>& faults) {
  if (const MadeObject* object = made_object(value)) {
    if (object->type_name() != expected) {
      faults.push_back(cat("unexpected type name ", quoted(object->type_name()), ", expected ",
                           quoted(expected),
                           ", which matches field name path from root Object type"));
    }
    for (const auto& [name, field] : object->fields())
      collect_faults(field, cat(expected, ".", name), faults);
  } else if (value.is(Kind::list)) {
    for (std::size_t i = 0; i < value.as_list().size(); ++i)
      collect_faults(value.as_list().at(i), expected, faults);
  } else if (value.is(Kind::map)) {
    for (std::size_t i = 0; i < value.as_map().size(); ++i)
      collect_faults(value.as_map().value_at(i), expected, faults);
  }
}

}  // namespace

Type made_object_type() { return {TypeKind::object, std::string(kObject)}; }
Type patch_operation_type() { return {TypeKind::object, std::string(kJsonPatch)}; }

bool MadeObject::equals(const Opaque& other) const {
  const auto& theirs = static_cast<const MadeObject&>(other);
  if (fields_.size() != theirs.fields_.size()) return false;
  for (const auto& [name, value] : fields_) {
    Value found;
    if (!theirs.field(name, found) || !equal(value, found).is_true()) return false;
  }
  return true;
}

bool MadeObject::field(std::string_view name, Value& out) const {
  for (const auto& [each, value] : fields_) {
    if (each != name) continue;
    out = value;
    return true;
  }
  return false;
}

std::string_view PatchOperation::type_name() const { return kJsonPatch; }

bool PatchOperation::equals(const Opaque& other) const {
  const auto& theirs = static_cast<const PatchOperation&>(other);
  if (op != theirs.op || path != theirs.path || from != theirs.from) return false;
  if (value.has_value() != theirs.value.has_value()) return false;
  return !value || equal(*value, *theirs.value).is_true();
}

bool PatchOperation::field(std::string_view name, Value& out) const {
  if (name == "value") {
    if (!value) return false;
    out = *value;
    return true;
  }
  const std::string& text = name == "op" ? op : name == "path" ? path : from;
  out = Value::string(text);
  return true;
}

const MadeObject* made_object(const Value& value) {
  return value.is(Kind::opaque) ? dynamic_cast<const MadeObject*>(&value.as_opaque()) : nullptr;
}

const PatchOperation* patch_operation(const Value& value) {
  return value.is(Kind::opaque) ? dynamic_cast<const PatchOperation*>(&value.as_opaque()) : nullptr;
}

std::string type_name_faults(const MadeObject& root) {
  std::vector<std::string> faults;
  const std::string name(root.type_name());
  for (const auto& [field, value] : root.fields())
    collect_faults(value, cat(name, ".", field), faults);
  return join(faults, "\n");
}

void add_patches(Environment& environment) {
  environment.object_family(std::string(kObject), {.open = true, .construct = make_object});
  environment.constructible(std::string(kJsonPatch), {.fields = {{"op", TypeKind::string},
                                                                 {"path", TypeKind::string},
                                                                 {"from", TypeKind::string},
                                                                 {"value", TypeKind::dyn}},
                                                      .construct = make_operation});
  environment.function("jsonpatch.escapeKey", {{"string -> string", escape_key, cost_scan_first}});
}

}  // namespace dibs::cel
