// APIServices: who serves a group in a version.
#include "api/kinds/checks.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"
#include "base/time.h"

namespace dibs::api {
namespace {

void check_bound(const Value& spec, std::string_view field, std::int64_t most,
                 FieldErrors& errors) {
  const std::int64_t value = spec[field].as_int();
  if (value > 0 && value <= most) return;
  errors.invalid(Path("spec").child(field), value, cat("must be positive and less than ", most));
}

void check_local(const Value& spec, FieldErrors& errors) {
  const Path path("spec");
  if (const std::string_view bundle = spec["caBundle"].as_string(); !bundle.empty()) {
    std::string bytes;
    (void)base64_decode(bundle, bytes);
    errors.invalid(path.child("caBundle"), cat(bytes.size(), " bytes"),
                   "local APIServices may not have a caBundle");
  }
  if (spec["insecureSkipTLSVerify"].as_bool()) {
    errors.invalid(path.child("insecureSkipTLSVerify"), true,
                   "local APIServices may not have insecureSkipTLSVerify");
  }
}

void check_remote(const Value& spec, FieldErrors& errors) {
  const Path path("spec");
  const Path at = path.child("service");
  const Value& service = spec["service"];
  for (std::string_view field : {"namespace", "name"}) {
    if (service[field].as_string().empty()) errors.required(at.child(field));
  }
  if (const auto faults = is_port_number(service["port"].as_int()); !faults.empty()) {
    errors.invalid(at.child("port"), service["port"].as_int(),
                   cat("port is not valid: ", join(faults, ", ")));
  }
  if (spec["insecureSkipTLSVerify"].as_bool() && !spec["caBundle"].as_string().empty()) {
    errors.invalid(path.child("insecureSkipTLSVerify"), true,
                   "may not be true if caBundle is present");
  }
}

void validate(const Value& object, FieldErrors& errors) {
  const Value& spec = object["spec"];
  const Path path("spec");
  const std::string_view group = spec["group"].as_string();
  const std::string_view version = spec["version"].as_string();
  const std::string wanted = cat(version, ".", group);
  if (object["metadata"]["name"].as_string() != wanted) {
    errors.invalid(Path("metadata").child("name"), object["metadata"]["name"],
                   cat("must be `spec.version+\".\"+spec.group`: ", quoted(wanted)));
  }
  if (group.empty() && version != "v1") {
    errors.required(path.child("group"),
                    "only v1 may have an empty group and it better be legacy kube");
  }
  if (!group.empty()) {
    add_invalid(is_dns1123_subdomain(group), spec["group"], path.child("group"), errors);
  }
  add_invalid(is_dns1035_label(version), Value(version), path.child("version"), errors);
  check_bound(spec, "groupPriorityMinimum", 20000, errors);
  check_bound(spec, "versionPriority", 1000, errors);
  if (spec["service"].is_null()) {
    check_local(spec, errors);
  } else {
    check_remote(spec, errors);
  }
}

void validate_status(const Value& object, const Value&, FieldErrors& errors) {
  const Path path = Path("status").child("conditions");
  std::size_t i = 0;
  for (const Value& condition : object["status"]["conditions"].items()) {
    const std::string_view status = condition["status"].as_string();
    const Path at = path.index(i++).child("status");
    if (status == "True" || status == "False" || status == "Unknown") continue;
    errors.not_supported(at, condition["status"], {"True", "False", "Unknown"});
  }
}

/// What this server serves itself is there at once.
void prepare_create(Value& object, const RuleContext& context) {
  object.set("status", Value::object());
  if (!object["spec"]["service"].is_null()) return;
  object.mut("status").set(
      "conditions",
      Value::array({Value::object({{"type", "Available"},
                                   {"status", "True"},
                                   {"lastTransitionTime", format_rfc3339(context.now)},
                                   {"reason", "Local"},
                                   {"message", "Local APIServices are always available"}})}));
}

}  // namespace

void add_api_service_rules(RuleTable& table) {
  KindRules& rules = table[{"apiregistration.k8s.io", "APIService"}];
  rules.set_defaults = [](Value& object) {
    const Value& service = object["spec"]["service"];
    if (service.is_object() && service["port"].is_null())
      object.mut("spec").mut("service").set("port", 443);
  };
  rules.prepare_create = prepare_create;
  rules.validate = validate;
  rules.validate_update = [](const Value& object, const Value&, FieldErrors& errors) {
    validate(object, errors);
  };
  rules.validate_status = validate_status;
  rules.name_rule = NameRule::path_segment;
  rules.has_status = true;
  rules.allow_unconditional_update = false;
}

}  // namespace dibs::api
