#include "api/expressions/schema_types.h"

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Value;

// Sizes of JSON texts; those of strings count the quotes.
constexpr std::uint64_t kDurationMin = 3;
constexpr std::uint64_t kDurationMax = 32;
constexpr std::uint64_t kDateSize = 12;
constexpr std::uint64_t kDateTimeMin = 21;
constexpr std::uint64_t kDateTimeMax = 32;
constexpr std::uint64_t kStringMin = 2;
constexpr std::uint64_t kStringMax = kMaxRequestBytes - 2;
constexpr std::uint64_t kBoolMin = 4;
constexpr std::uint64_t kNumberMin = 1;
constexpr std::uint64_t kContainerMin = 2;
constexpr std::uint64_t kBytesPerCharacter = 4;
constexpr std::int64_t kNameMax = 253;

constexpr std::array<std::string_view, 21> kReserved = {
    "true",     "false", "null",    "in",        "as",       "break", "const",
    "continue", "else",  "for",     "if",        "function", "let",   "import",
    "var",      "loop",  "package", "namespace", "return",   "void",  "while"};

bool is_reserved(std::string_view name) {
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::optional<std::uint64_t> limit(const Value& schema, std::string_view key) {
  const Value& value = schema[key];
  if (!value.is_number()) return std::nullopt;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(value.as_int(), 0));
}

bool is_type(const Value& schema, std::string_view type) {
  return schema["type"].as_string() == type;
}

Value capped_string(const Value& declared, std::int64_t cap) {
  const Value& length = declared["maxLength"];
  if (length.is_number()) cap = std::min(cap, length.as_int());
  Value made = Value::object({{"type", "string"}, {"maxLength", cap}});
  if (const Value* rules = declared.find("x-kubernetes-validations"))
    made.set("x-kubernetes-validations", *rules);
  return made;
}

Value with_rules_of(Value made, const Value& declared) {
  if (const Value* rules = declared.find("x-kubernetes-validations"))
    made.set("x-kubernetes-validations", *rules);
  return made;
}

/// What every resource has, in place of what is declared for it.
Value resource_schema(const Value& schema) {
  const Value& declared = schema["properties"];
  const Value& metadata = declared["metadata"];
  if (is_type(declared["kind"], "string") && is_type(declared["apiVersion"], "string") &&
      is_type(metadata, "object") && is_type(metadata["properties"]["name"], "string") &&
      is_type(metadata["properties"]["generateName"], "string"))
    return schema;
  const Value text = Value::object({{"type", "string"}});
  const Value& names = metadata["properties"];
  // A generated name has one more character at least.
  const Value own = Value::object(
      {{"type", "object"},
       {"properties",
        Value::object({{"name", capped_string(names["name"], kNameMax)},
                       {"generateName", capped_string(names["generateName"], kNameMax - 1)}})}});
  Value properties = declared.is_object() ? declared : Value::object();
  properties.set("kind", with_rules_of(text, declared["kind"]));
  properties.set("apiVersion", with_rules_of(text, declared["apiVersion"]));
  properties.set("metadata", with_rules_of(own, metadata));
  Value made = schema;
  made.set("properties", std::move(properties));
  return made;
}

void set_type(TypedSchema& schema, cel::Type type, std::uint64_t min_bytes,
              std::uint64_t max_size = 0) {
  schema.has_type = true;
  schema.type = std::move(type);
  schema.min_bytes = min_bytes;
  schema.max_size = max_size;
}

std::uint64_t longest_enum(const Value& values) {
  std::uint64_t longest = 0;
  for (const Value& value : values.items())
    longest = std::max<std::uint64_t>(longest, value.as_string().size());
  return longest;
}

void make_string(TypedSchema& schema) {
  const Value& source = schema.source;
  const std::string_view format = source["format"].as_string();
  const auto length = limit(source, "maxLength");
  if (format == "byte") {
    schema.shape = TypedShape::bytes;
    return set_type(schema, cel::TypeKind::bytes, kStringMin, length.value_or(kStringMax));
  }
  if (format == "duration") {
    schema.shape = TypedShape::duration;
    return set_type(schema, cel::TypeKind::duration, kDurationMin, kDurationMax);
  }
  if (format == "date") {
    schema.shape = TypedShape::date;
    return set_type(schema, cel::TypeKind::timestamp, kDateSize, kDateSize);
  }
  if (format == "date-time") {
    schema.shape = TypedShape::date_time;
    return set_type(schema, cel::TypeKind::timestamp, kDateTimeMin, kDateTimeMax);
  }
  schema.shape = TypedShape::string;
  const std::uint64_t longest = length                   ? *length * kBytesPerCharacter
                                : source["enum"].empty() ? kStringMax
                                                         : longest_enum(source["enum"]);
  set_type(schema, cel::TypeKind::string, kStringMin, longest);
}

std::unique_ptr<TypedSchema> make_inner(const Value& schema, const std::string& name) {
  return make_typed_schema(schema, schema["x-kubernetes-embedded-resource"].as_bool(), name);
}

void make_list(TypedSchema& schema, const std::string& name) {
  const Value& source = schema.source;
  schema.shape = TypedShape::list;
  const std::string_view list_type = source["x-kubernetes-list-type"].as_string();
  if (list_type == "set") schema.list_type = TypedList::set;
  if (list_type == "map") {
    schema.list_type = TypedList::keyed;
    for (const Value& key : source["x-kubernetes-list-map-keys"].items())
      schema.keys.push_back(key.str());
  }
  if (!source["items"].is_object()) return;
  schema.items = make_inner(source["items"], cat(name, ".@idx"));
  if (!schema.items->has_type) return;
  // One comma each, and the brackets.
  const std::uint64_t fits = (kMaxRequestBytes - 2) / (schema.items->min_bytes + 1);
  set_type(schema, cel::Type::list(schema.items->type), kContainerMin,
           limit(source, "maxItems").value_or(fits));
}

void make_map(TypedSchema& schema, const std::string& name) {
  const Value& source = schema.source;
  schema.shape = TypedShape::map;
  schema.values = make_inner(source["additionalProperties"], cat(name, ".@elem"));
  if (!schema.values->has_type) return;
  // Key, quotes, colon and comma.
  const std::uint64_t fits = (kMaxRequestBytes - 2) / (schema.values->min_bytes + 6);
  set_type(schema, cel::Type::map(cel::TypeKind::string, schema.values->type), kContainerMin,
           limit(source, "maxProperties").value_or(fits));
}

void make_object(TypedSchema& schema, const std::string& name) {
  const Value& source = schema.source;
  schema.shape = TypedShape::object;
  std::uint64_t bytes = kContainerMin;
  const auto required = source["required"].items();
  for (const auto& [key, property] : source["properties"].members()) {
    const auto escaped = escape_name(key);
    auto made = make_inner(property, cat(name, ".", escaped ? *escaped : std::string(key)));
    if (made->has_type) {
      if (escaped) schema.fields[*escaped] = made.get();
      const bool demanded =
          std::any_of(required.begin(), required.end(),
                      [key = key](const Value& one) { return one.as_string() == key; });
      if (demanded && property["default"].is_null()) bytes += key.size() + made->min_bytes + 4;
    }
    schema.properties[std::string(key)] = std::move(made);
  }
  set_type(schema, {cel::TypeKind::object, name}, bytes);
}

}  // namespace

std::optional<std::string> escape_name(std::string_view name) {
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return std::nullopt;
  if (is_reserved(name)) return cat("__", name, "__");
  std::string made;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '_' && i + 1 < name.size() && name[i + 1] == '_') {
      made += "__underscores__";
      ++i;
    } else if (c == '_' || is_letter_or_digit(c)) {
      made += c;
    } else if (c == '.') {
      made += "__dot__";
    } else if (c == '-') {
      made += "__dash__";
    } else if (c == '/') {
      made += "__slash__";
    } else {
      return std::nullopt;
    }
  }
  return made;
}

std::optional<std::string> unescape_name(std::string_view escaped) {
  std::string made;
  for (std::size_t i = 0; i < escaped.size();) {
    const bool opens = escaped.substr(i, 2) == "__";
    const std::size_t word = i + 2;
    const std::size_t end = opens ? escaped.find('_', word) : std::string_view::npos;
    if (!opens || end == std::string_view::npos || end == word || escaped.substr(end, 2) != "__") {
      made += escaped[i++];
      continue;
    }
    const std::string_view inner = escaped.substr(word, end - word);
    if (inner == "underscores") {
      made += "__";
    } else if (inner == "dot") {
      made += '.';
    } else if (inner == "dash") {
      made += '-';
    } else if (inner == "slash") {
      made += '/';
    } else if (is_reserved(inner) && inner.size() + 4 == escaped.size()) {
      made += inner;
    } else {
      return std::nullopt;
    }
    i = end + 2;
  }
  return made;
}

std::unique_ptr<TypedSchema> make_typed_schema(const Value& schema, bool is_resource,
                                               const std::string& name) {
  auto made = std::make_unique<TypedSchema>();
  const bool int_or_string = schema["x-kubernetes-int-or-string"].as_bool();
  made->source = is_resource && !int_or_string ? resource_schema(schema) : schema;
  made->nullable = schema["nullable"].as_bool();
  const std::string_view type = schema["type"].as_string();
  if (int_or_string) {
    made->shape = TypedShape::int_or_string;
    const auto length = limit(schema, "maxLength");
    set_type(*made, cel::TypeKind::dyn, kNumberMin,
             length ? *length * kBytesPerCharacter : kStringMax);
  } else if (type == "array") {
    make_list(*made, name);
  } else if (type == "object") {
    if (made->source["additionalProperties"].is_object())
      make_map(*made, name);
    else
      make_object(*made, name);
  } else if (type == "string") {
    make_string(*made);
  } else if (type == "boolean") {
    made->shape = TypedShape::boolean;
    set_type(*made, cel::TypeKind::boolean, kBoolMin);
  } else if (type == "number") {
    made->shape = TypedShape::number;
    set_type(*made, cel::TypeKind::real, kNumberMin);
  } else if (type == "integer") {
    made->shape = TypedShape::integer;
    set_type(*made, cel::TypeKind::integer, kNumberMin);
  }
  return made;
}

void declare_types(const TypedSchema& schema, cel::Environment& environment) {
  if (schema.items) declare_types(*schema.items, environment);
  if (schema.values) declare_types(*schema.values, environment);
  for (const auto& [name, property] : schema.properties) declare_types(*property, environment);
  if (!schema.has_type || schema.shape != TypedShape::object) return;
  std::map<std::string, cel::Type> fields;
  for (const auto& [name, field] : schema.fields) {
    fields.emplace(name, field->type);
    // Reserved words that the grammar takes for fields may be written plainly, too.
    if (const auto plain = unescape_name(name); plain && is_reserved(*plain))
      fields.emplace(*plain, field->type);
  }
  environment.object(schema.type.name(), std::move(fields));
}

cel::SizeBound size_bound(const TypedSchema& schema) {
  return [&schema](const cel::ValuePath& path) -> std::optional<std::uint64_t> {
    const TypedSchema* at = &schema;
    for (std::size_t i = 1; i < path.size(); ++i) {
      const std::string& step = path[i];
      if (step == "@items" || step == "@values") {
        at = at->items ? at->items.get() : at->values.get();
      } else if (step == "@keys") {
        // Keys are strings of no declared length, which upstream counts as nothing.
        if (!at->values || i + 1 < path.size()) return std::nullopt;
        return 0;
      } else {
        const auto found = at->fields.find(step);
        at = found == at->fields.end() ? nullptr : found->second;
      }
      if (at == nullptr) return std::nullopt;
    }
    return at->max_size;
  };
}

}  // namespace dibs::api
