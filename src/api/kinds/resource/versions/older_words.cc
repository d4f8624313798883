#include "api/kinds/resource/versions/older_words.h"

#include <algorithm>
#include <cctype>
#include <vector>

#include "api/kinds/resource/versions/conversion.h"
#include "api/schema/builtin.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr int kNestedFormSince = 34;

struct Wording {
  std::string_view now;
  std::string_view then;
};

constexpr Wording kWordings[] = {
    {" or the name of a request and a subrequest separated by '/'", ""},
    {"a fully qualified name must be a domain and a name separated by a slash",
     "must include a domain"},
    {"\"<value omitted>\": must be a valid JSON object",
     "\"<value omitted>\": parameters must be a valid JSON object"},
};

void replace(std::string& text, std::string_view from, std::string_view to) {
  if (auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
}

/// The field is `…NAME[i]` itself, nothing in it.
bool is_item_of(std::string_view field, std::string_view list) {
  auto open = field.rfind('[');
  return field.ends_with(']') && open != std::string_view::npos &&
         field.substr(0, open).ends_with(list);
}

void to_flat_path(std::string& field) {
  replace(field, "].exactly.", "].");
  constexpr std::string_view kDevices = "spec.devices[";
  if (!field.starts_with(kDevices)) return;
  auto close = field.find("].");
  if (close == std::string::npos) return;
  std::string_view rest = std::string_view(field).substr(close + 2);
  if (rest.starts_with("attributes") || rest.starts_with("capacity"))
    field.insert(close + 2, "basic.");
}

FieldError retold(const FieldError& error, std::string_view shown_spec) {
  FieldError out = error;
  to_flat_path(out.field);
  for (const Wording& wording : kWordings) replace(out.text, wording.now, wording.then);
  if (is_item_of(out.field, "devices.requests")) {
    if (error.fault == Fault::required) {
      out.field += ".deviceClassName";
      out.text = "Required value";
    } else if (error.fault == Fault::duplicate) {
      out.field += ".name";
    }
  }
  constexpr std::string_view kImmutable = ": field is immutable";
  if (out.field == "spec" && !shown_spec.empty() && out.text.ends_with(kImmutable))
    out.text = cat("Invalid value: ", shown_spec, kImmutable);
  return out;
}

std::string go_name(std::string_view name) {
  if (name == "cel") return "CEL";
  if (name == "uid") return "UID";
  std::string out(name);
  if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

/// Internal types have the package of their group.
std::string go_type(const Schema& schema) {
  constexpr std::string_view kVersioned = "v1beta1.";
  const std::string& name = schema.go_type;
  if (schema.full_name.starts_with("io.k8s.api.resource.")) return cat("resource.", schema.name);
  if (schema.shape == Shape::list && !schema.element->full_name.empty())
    return cat("[]", go_type(*schema.element));
  if (name.starts_with(kVersioned)) return cat("resource.", name.substr(kVersioned.size()));
  return name;
}

std::string go_list(const Value& value, const Schema& schema) {
  std::string out = cat(go_type(schema), "{");
  bool first = true;
  for (const Value& item : value.items()) {
    append(out, first ? "" : ", ", go_syntax(item, *schema.element));
    first = false;
  }
  return out + "}";
}

std::string go_map(const Value& value, const Schema& schema) {
  std::vector<std::string> entries;
  for (const auto& [key, item] : value.members())
    entries.push_back(cat(quoted(key), ":", go_syntax(item, *schema.element)));
  std::sort(entries.begin(), entries.end());
  return cat(go_type(schema), "{", join(entries, ", "), "}");
}

std::string go_member(const Value& value, const Field& field) {
  const Schema& schema = *field.schema;
  bool absent = value.is_null();
  if (schema.shape == Shape::time && absent) {
    return field.pointer ? "<nil>" : "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)";
  }
  // An address would follow, which says nothing.
  if (field.pointer) return cat("(*", go_type(schema), ")(", absent ? "nil" : "0x0", ")");
  if (absent && (schema.shape == Shape::list || schema.shape == Shape::map))
    return cat(go_type(schema), "(nil)");
  return go_syntax(value, schema);
}

std::string go_object(const Value& value, const Schema& schema) {
  // Structures of Go have their members in the order of the wire.
  struct Member {
    std::uint32_t number;
    std::string text;
  };
  std::vector<Member> members;
  for (const Field& field : schema.fields) {
    if (field.proto != 0)
      members.push_back(
          {field.proto, cat(go_name(field.name), ":", go_member(value[field.name], field))});
  }
  for (const Inlined& part : schema.inlined) {
    members.push_back(
        {part.proto, cat(part.schema->name, ":resource.", part.schema->name,
                         go_object(value, *part.schema).substr(go_type(*part.schema).size()))});
  }
  std::sort(members.begin(), members.end(),
            [](const Member& a, const Member& b) { return a.number < b.number; });
  std::string out = cat(go_type(schema), "{");
  for (std::size_t i = 0; i < members.size(); ++i) append(out, i == 0 ? "" : ", ", members[i].text);
  // The one member that the structure has before its own.
  replace(out, "TemplateSpec{Metadata:", "TemplateSpec{ObjectMeta:");
  return out + "}";
}

/// The spec as the release's own structures would be shown.
std::string shown_spec(std::string_view kind, const Value& object, int minor) {
  if (kind != "ResourceClaim" && kind != "ResourceClaimTemplate") return {};
  const Schema* schema = builtin_schema("resource.k8s.io", "v1beta1", kind, minor);
  if (!schema || object["apiVersion"].as_string() != "resource.k8s.io/v1") return {};
  Value shown = Conversion(kind, "v1beta1", minor).show(object);
  return go_syntax(shown["spec"], *schema->field("spec")->schema);
}

void retell(const FieldErrors& from, FieldErrors& to, std::string_view spec) {
  for (const FieldError& error : from.errors()) {
    FieldError out = retold(error, spec);
    to.add(out.fault, Path(out.field), out.text);
  }
  for (const std::string& warning : from.warnings()) to.warn(warning);
}

}  // namespace

std::string go_syntax(const Value& value, const Schema& schema) {
  switch (schema.shape) {
    case Shape::object:
      return go_object(value, schema);
    case Shape::list:
      return go_list(value, schema);
    case Shape::map:
      return go_map(value, schema);
    case Shape::boolean:
      return value.as_bool() ? "true" : "false";
    case Shape::int32:
    case Shape::int64:
      return cat(value.as_int());
    default:
      return quoted(value.as_string());
  }
}

KindRules in_words_of_release(KindRules rules, std::string_view kind, int minor) {
  if (minor >= kNestedFormSince) return rules;
  if (auto validate = rules.validate) {
    rules.validate = [validate](const Value& object, FieldErrors& errors) {
      FieldErrors found;
      validate(object, found);
      retell(found, errors, {});
    };
  }
  for (auto* judge : {&rules.validate_update, &rules.validate_status}) {
    auto inner = *judge;
    if (!inner) continue;
    *judge = [inner, name = std::string(kind), minor](const Value& object, const Value& old,
                                                      FieldErrors& errors) {
      FieldErrors found;
      inner(object, old, found);
      retell(found, errors, found.empty() ? std::string() : shown_spec(name, object, minor));
    };
  }
  return rules;
}

}  // namespace dibs::api
