#include "api/structural/crd_parts.h"

#include <set>

#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "api/structural/crd_schema.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

constexpr std::size_t kMaxSelectableFields = 8;

void check_kind(const Value& value, const Path& path, FieldErrors& errors) {
  const auto text = value.as_string();
  if (text.empty()) return;
  if (const auto faults = is_dns1035_label(to_lower(text)); !faults.empty()) {
    errors.invalid(path, value,
                   cat("may have mixed case, but should otherwise match: ", join(faults, ",")));
  }
}

void check_labels(const Value& list, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (const auto faults = is_dns1035_label(list[i].as_string()); !faults.empty()) {
      errors.invalid(path.index(i), list[i], join(faults, ","));
    }
  }
}

/// True when the path was in order.
bool check_simple_path(const Value& value, const Path& path, FieldErrors& errors) {
  if (value.as_string().starts_with('.')) return true;
  errors.invalid(path, value, "must be a simple json path starting with .");
  return false;
}

void validate_column(const Value& column, const Path& path, FieldErrors& errors) {
  constexpr std::string_view kTypes = "must be one of boolean,date,integer,number,string";
  if (column["name"].as_string().empty()) errors.required(path.child("name"));
  const auto type = column["type"].as_string();
  if (type.empty()) {
    errors.required(path.child("type"), kTypes);
  } else if (!is_one_of(type, {"boolean", "date", "integer", "number", "string"})) {
    errors.invalid(path.child("type"), type, kTypes);
  }
  const auto format = column["format"].as_string();
  if (!format.empty() && !is_one_of(format, {"byte", "date", "date-time", "double", "float",
                                             "int32", "int64", "password"})) {
    errors.invalid(path.child("format"), format,
                   "must be one of byte,date,date-time,double,float,int32,int64,password");
  }
  if (column["jsonPath"].as_string().empty()) {
    errors.required(path.child("JSONPath"));
  } else {
    check_simple_path(column["jsonPath"], path.child("JSONPath"), errors);
  }
}

}  // namespace

void check_definition_label(const Value& value, const Path& path, FieldErrors& errors) {
  const auto text = value.as_string();
  if (text.empty()) return;
  if (const auto faults = is_dns1035_label(text); !faults.empty())
    errors.invalid(path, value, join(faults, ","));
}

void validate_definition_names(const Value& names, const Path& path, FieldErrors& errors) {
  check_definition_label(names["plural"], path.child("plural"), errors);
  check_definition_label(names["singular"], path.child("singular"), errors);
  check_kind(names["kind"], path.child("kind"), errors);
  check_kind(names["listKind"], path.child("listKind"), errors);
  check_labels(names["shortNames"], path.child("shortNames"), errors);
  if (!names["kind"].as_string().empty() && names["kind"] == names["listKind"]) {
    errors.invalid(path.child("listKind"), names["listKind"],
                   "kind and listKind may not be the same");
  }
  check_labels(names["categories"], path.child("categories"), errors);
}

void validate_scale(const Value& scale, const Path& path, FieldErrors& errors) {
  if (scale.is_null()) return;
  auto check = [&](std::string_view name, std::string_view prefix) {
    const Path at = path.child(name);
    const Value& value = scale[name.substr(name.find('.') + 1)];
    if (value.as_string().empty()) {
      errors.required(at);
    } else if (check_simple_path(value, at, errors) && !value.as_string().starts_with(prefix)) {
      errors.invalid(at, value,
                     cat("should be a json path under ", prefix.substr(0, prefix.size() - 1)));
    }
  };
  check("scale.specReplicasPath", ".spec.");
  check("scale.statusReplicasPath", ".status.");
  const Value& selector = scale["labelSelectorPath"];
  const auto text = selector.as_string();
  const Path at = path.child("scale.labelSelectorPath");
  if (!text.empty() && check_simple_path(selector, at, errors) && !text.starts_with(".spec.") &&
      !text.starts_with(".status.")) {
    errors.invalid(at, selector, "should be a json path under either .spec or .status");
  }
}

void validate_columns(const Value& columns, const Path& path, FieldErrors& errors) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    validate_column(columns[i], path.index(i), errors);
}

void validate_selectable(const Value& fields, const Value& schema, const Path& path,
                         FieldErrors& errors) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Path item = path.index(i);
    const Path at = item.child("jsonPath");
    const Value& value = fields[i]["jsonPath"];
    const auto text = value.as_string();
    if (text.empty()) {
      errors.required(at);
      continue;
    }
    const auto found = schema_at_path(text, schema, false);
    if (!found.ok()) {
      errors.invalid(at, value, cat("is an invalid path: ", found.error().message()));
      continue;
    }
    if (text == ".metadata" || text.starts_with(".metadata.")) {
      errors.invalid(at, value, "must not point to fields in metadata");
    }
    if (!is_one_of((**found)["type"].as_string(), {"string", "boolean", "integer"})) {
      errors.invalid(at, value,
                     "must point to a field of type string, boolean or integer. Enum string fields "
                     "and strings with "
                     "formats are allowed.");
    }
    if (!seen.insert(std::string(text)).second) errors.duplicate(at, value);
  }
  if (seen.size() > kMaxSelectableFields) errors.too_many(path, seen.size(), kMaxSelectableFields);
}

void check_deprecation(const Value& version, const Path& path, FieldErrors& errors) {
  const Value* warning = version.find("deprecationWarning");
  if (warning == nullptr || warning->is_null()) return;
  if (!version["deprecated"].as_bool()) {
    errors.invalid(path, *warning, "can only be set for deprecated versions");
    return;
  }
  const auto text = warning->as_string();
  if (text.size() > 256) errors.invalid(path, *warning, "must be <= 256 characters long");
  if (text.empty()) errors.invalid(path, *warning, "must not be an empty string");
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool is_c1 =
        c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c >= 0x20 && c != 0x7f && !is_c1) continue;
    errors.invalid(
        path, *warning,
        cat("must only contain printable UTF-8 characters; non-printable character found at index ",
            i));
    break;
  }
}

}  // namespace dibs::api
