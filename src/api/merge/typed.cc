#include "api/merge/typed.h"

#include <algorithm>

#include "api/schema/decode.h"
#include "base/strings.h"
#include "json/go_print.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Field field_named(std::string name, const Schema* schema) {
  Field field;
  field.name = std::move(name);
  field.schema = schema;
  return field;
}

struct MetaSchemas {
  Schema string, integer, time, any, strings, owner, owners, finalizers, managed, meta;

  MetaSchemas() {
    string.shape = Shape::string;
    integer.shape = Shape::int64;
    time.shape = Shape::time;
    any.shape = Shape::any;
    strings.shape = Shape::map;
    strings.element = &string;
    owner.shape = Shape::object;
    owner.atomic = true;
    owner.fields = {field_named("apiVersion", &string), field_named("blockOwnerDeletion", &any),
                    field_named("controller", &any),    field_named("kind", &string),
                    field_named("name", &string),       field_named("uid", &string)};
    owners.shape = Shape::list;
    owners.list_type = ListType::map;
    owners.map_keys = {"uid"};
    owners.element = &owner;
    finalizers.shape = Shape::list;
    finalizers.list_type = ListType::set;
    finalizers.element = &string;
    managed.shape = Shape::list;
    managed.element = &any;
    meta.shape = Shape::object;
    meta.name = "ObjectMeta";
    meta.fields = {field_named("annotations", &strings),
                   field_named("creationTimestamp", &time),
                   field_named("deletionGracePeriodSeconds", &integer),
                   field_named("deletionTimestamp", &time),
                   field_named("finalizers", &finalizers),
                   field_named("generateName", &string),
                   field_named("generation", &integer),
                   field_named("labels", &strings),
                   field_named("managedFields", &managed),
                   field_named("name", &string),
                   field_named("namespace", &string),
                   field_named("ownerReferences", &owners),
                   field_named("resourceVersion", &string),
                   field_named("selfLink", &string),
                   field_named("uid", &string)};
  }
};

const MetaSchemas& meta_schemas() {
  static const MetaSchemas schemas;
  return schemas;
}

bool is_loose(SchemaPtr schema) {
  return schema == nullptr || schema->shape == Shape::any || schema->shape == Shape::fields_v1;
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) {
    if (out.size() > 1) out.push_back(' ');
    out.append(quoted(name));
  }
  out.push_back(']');
  return out;
}

// The value in the way messages of the typed layer hold it.
std::string shown(const Value& value) { return cat("&{", go_value(value), '}'); }

// The way to the value in hand; text is made of it only when there is a fault to tell.
struct Trail {
  const Trail* up = nullptr;
  std::string_view name;
  std::string_view element;  // spelled
  std::size_t index = 0;

  void append_to(std::string& out) const {
    if (up != nullptr) up->append_to(out);
    if (!element.empty()) {
      append_spelled(out, element);
    } else if (up != nullptr && name.data() != nullptr) {
      append(out, '.', name);
    } else if (up != nullptr) {
      append(out, '[', index, ']');
    }
  }
};

// Those whose element an earlier item has already, sorted by address.
std::vector<const ListItem*> repeated_items(const std::vector<ListItem>& items) {
  std::vector<const ListItem*> sorted;
  for (const ListItem& item : items) sorted.push_back(&item);
  std::stable_sort(sorted.begin(), sorted.end(), [](const ListItem* a, const ListItem* b) {
    return compare_spelled(a->spelling(), b->spelling()) < 0;
  });
  std::vector<const ListItem*> repeated;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (compare_spelled(sorted[i - 1]->spelling(), sorted[i]->spelling()) == 0) {
      repeated.push_back(sorted[i]);
    }
  }
  std::sort(repeated.begin(), repeated.end());
  return repeated;
}

class Checker {
 public:
  void check(SchemaPtr schema, const Value& value, const Trail& trail, bool is_root) {
    if (is_loose(schema)) return;
    switch (atom_of(schema, value)) {
      case Atom::scalar:
        return check_scalar(*schema, value, trail);
      case Atom::list:
        return check_list(*schema, value, trail);
      case Atom::map:
        return check_map(*schema, value, trail, is_root);
    }
  }

  Result<> result() const {
    if (faults_.empty()) return success();
    if (faults_.size() == 1) return Error::plain(faults_.front());
    return Error::plain(cat("errors:\n  ", join(faults_, "\n  ")));
  }

 private:
  void fault(const Trail& trail, std::string_view text) {
    std::string out;
    trail.append_to(out);
    append(out, out.empty() ? "" : ": ", text);
    faults_.push_back(std::move(out));
  }

  void check_scalar(const Schema& schema, const Value& value, const Trail& trail) {
    if (value.is_null()) return;
    switch (schema.shape) {
      case Shape::string:
      case Shape::bytes:
        if (!value.is_string()) {
          fault(trail,
                cat("expected string, got &value.valueUnstructured{Value:", go_syntax(value), '}'));
        }
        return;
      case Shape::boolean:
        if (!value.is_boolean()) fault(trail, cat("expected boolean, got ", shown(value)));
        return;
      case Shape::int32:
      case Shape::int64:
      case Shape::number:
        if (!value.is_number()) {
          fault(trail, cat("expected numeric (int or float), got ", go_type(value)));
        }
        return;
      default:
        if (value.is_array() || value.is_object()) {
          fault(trail, cat("expected any scalar, got ", shown(value)));
        }
    }
  }

  void check_list(const Schema& schema, const Value& value, const Trail& trail) {
    if (value.is_null()) return;
    if (!value.is_array()) return fault(trail, cat("expected list, got ", shown(value)));
    if (is_atomic_list(&schema)) {
      std::size_t index = 0;
      for (const Value& item : value.items()) {
        check(schema.element, item, Trail{&trail, {}, {}, index++}, false);
      }
      return;
    }
    auto items = list_items(&schema, value);
    if (!items.ok()) return fault(trail, items.error().message());
    const auto repeated = repeated_items(*items);
    for (const ListItem& item : *items) {
      if (std::binary_search(repeated.begin(), repeated.end(), &item)) {
        std::string text = "duplicate entries for key ";
        append_spelled(text, item.spelling());
        fault(trail, text);
      }
      check(schema.element, *item.value, Trail{&trail, {}, item.spelling(), 0}, false);
    }
  }

  void check_map(const Schema& schema, const Value& value, const Trail& trail, bool is_root) {
    if (value.is_null()) return;
    if (!value.is_object()) return fault(trail, cat("expected map, got ", shown(value)));
    for (const auto& [key, item] : value.members()) {
      const ChildSchema child = child_of(&schema, key, is_root);
      const Trail here{&trail, key, {}, 0};
      if (!child.known) {
        // What follows an unknown field is not looked at.
        fault(here, "field not declared in schema");
        return;
      }
      check(child.schema, item, here, false);
    }
  }

  std::vector<std::string> faults_;
};

/// What a key of a list stands for where an element leaves it out. Go's fields that are written
/// even when zero have that as their default.
const Value* key_default(const Field& field) {
  if (field.default_value) return &*field.default_value;
  if (field.pointer || field.zero != Zero::keep) return nullptr;
  static const Value kText("");
  static const Value kNumber(0);
  switch (field.schema->shape) {
    case Shape::string:
      return &kText;
    case Shape::int32:
    case Shape::int64:
      return &kNumber;
    default:
      return nullptr;
  }
}

}  // namespace

Atom atom_of(SchemaPtr schema, const Value& value) {
  if (is_loose(schema)) {
    if (value.is_array()) return Atom::list;
    return value.is_object() || value.is_null() ? Atom::map : Atom::scalar;
  }
  switch (schema->shape) {
    case Shape::object:
    case Shape::map:
      return Atom::map;
    case Shape::list:
      return Atom::list;
    default:
      return Atom::scalar;
  }
}

ChildSchema child_of(SchemaPtr schema, std::string_view name, bool is_root) {
  if (is_root) {
    const Field* field = schema == nullptr ? nullptr : schema->field(name);
    const bool described = field != nullptr && field->schema != nullptr &&
                           !(name == "metadata" && field->schema->fields.empty());
    if (described) return {field->schema, true, true};
    if (name == "metadata") return {&meta_schemas().meta, true, true};
    if (name == "apiVersion" || name == "kind") return {&meta_schemas().string, true, true};
  }
  if (is_loose(schema)) return {};
  if (schema->shape == Shape::map) return {schema->element, false, true};
  if (const Field* field = schema->field(name)) return {field->schema, true, true};
  return {nullptr, false, schema->preserve_unknown};
}

SchemaPtr element_of(SchemaPtr schema) { return is_loose(schema) ? nullptr : schema->element; }

bool is_atomic_list(SchemaPtr schema) {
  return is_loose(schema) || schema->list_type == ListType::atomic;
}

bool is_atomic_map(SchemaPtr schema) {
  if (!is_loose(schema)) return schema->atomic;
  return schema != nullptr && !schema->preserve_unknown;
}

Result<std::vector<ListItem>> list_items(SchemaPtr list, const Value& value) {
  std::vector<ListItem> items;
  items.reserve(value.size());
  std::string text;
  const auto fail = [&](std::string_view why) {
    return Error::plain(cat("element ", items.size(), ": ", why));
  };
  if (list->list_type == ListType::set) {
    for (const Value& item : value.items()) {
      if (item.is_object()) {
        return fail("associative list without keys has an element that's a map type");
      }
      if (item.is_array()) return fail("not supported: associative list with lists as elements");
      if (item.is_null()) {
        return fail("associative list without keys has an element that's an explicit null");
      }
      text = "v:";
      json::write_to(text, item, true);
      items.push_back({Value(text), &item});
    }
    return items;
  }
  std::vector<std::string> sorted;
  if (!std::is_sorted(list->map_keys.begin(), list->map_keys.end())) {
    sorted = list->map_keys;
    std::sort(sorted.begin(), sorted.end());
  }
  const std::vector<std::string>& names = sorted.empty() ? list->map_keys : sorted;
  for (const Value& item : value.items()) {
    if (item.is_null()) return fail("associative list with keys may not have a null element");
    if (!item.is_object()) return fail("associative list with keys may not have non-map elements");
    text = "k:";
    for (const std::string& name : names) {
      const Value* key = item.find(name);
      if (key == nullptr && list->element != nullptr) {
        const Field* field = list->element->field(name);
        if (field != nullptr) key = key_default(*field);
      }
      if (key == nullptr) continue;
      text.push_back(text.size() == 2 ? '{' : ',');
      json::write_to(text, Value(name), true);
      text.push_back(':');
      json::write_to(text, *key, true);
    }
    if (text.size() == 2) {
      return fail(cat("associative list with keys has an element that omits all key fields ",
                      quoted_list(list->map_keys),
                      " (and doesn't have default values for any key fields)"));
    }
    text.push_back('}');
    items.push_back({Value(text), &item});
  }
  return items;
}

Value zero_object(const Schema& schema, std::string_view api_version, std::string_view kind) {
  std::vector<std::string> unknown;
  auto zero = decode(Value::object(), schema, Strictness::ignore, unknown);
  Value object = zero.ok() ? std::move(zero).value() : Value::object();
  object.set("apiVersion", api_version);
  object.set("kind", kind);
  return object;
}

Result<> check_typed(const Value& object, const Schema& schema) {
  Checker checker;
  checker.check(&schema, object, Trail{}, true);
  return checker.result();
}

void Comparison::ignore(const FieldSet& ignored) {
  removed = removed.without_all_below(ignored);
  modified = modified.without_all_below(ignored);
  added = added.without_all_below(ignored);
}

}  // namespace dibs::api
