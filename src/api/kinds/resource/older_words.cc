#include "api/kinds/resource/older_words.h"

#include "api/kinds/resource/versions/conversion.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
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
