#include "api/kinds/workload/parts.h"

#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/pod/spec.h"
#include "base/strings.h"

namespace dibs::api::workload {

bool selector_parses(const Value& selector) {
  FieldErrors faults;
  validate_label_selector(selector, Path("selector"), faults);
  return faults.empty();
}

void check_selector_fits(const Value& spec, const Path& spec_path, FieldErrors& errors) {
  if (!selector_parses(spec["selector"])) return;
  const Value& labels = spec["template"]["metadata"]["labels"];
  if (label_selector_matches(spec["selector"], labels)) return;
  Path pod_template = spec_path.child("template");
  Path metadata = pod_template.child("metadata");
  errors.invalid(metadata.child("labels"), sorted_map(labels),
                 "`selector` does not match template `labels`");
}

void check_restarts_always(const Value& spec, const Path& spec_path, std::string_view kind,
                           FieldErrors& errors) {
  Path pod_template = spec_path.child("template");
  Path pod_spec = pod_template.child("spec");
  const Value& pod = spec["template"]["spec"];
  if (pod["restartPolicy"].as_string() != "Always") {
    errors.not_supported(pod_spec.child("restartPolicy"), pod["restartPolicy"].str(), {"Always"});
  }
  if (is_set(pod, "activeDeadlineSeconds")) {
    errors.forbidden(pod_spec.child("activeDeadlineSeconds"),
                     cat("activeDeadlineSeconds in ", kind, " is not Supported"));
  }
}

bool check_selector(const Value& spec, const Path& spec_path, std::string_view kind,
                    FieldErrors& errors) {
  Path path = spec_path.child("selector");
  if (!is_set(spec, "selector")) {
    errors.required(path);
    return false;
  }
  validate_label_selector(spec["selector"], path, errors);
  if (label_selector_is_empty(spec["selector"])) {
    errors.invalid(path, spec["selector"], cat("empty selector is invalid for ", kind));
  }
  return true;
}

void check_counts(const Value& status, std::initializer_list<std::string_view> keys,
                  FieldErrors& errors) {
  Path path("status");
  for (std::string_view key : keys) check_nonnegative(status, key, path, errors);
}

void check_not_above(const Value& status, std::string_view key, std::string_view limit,
                     std::string_view detail, FieldErrors& errors) {
  if (status[key].as_int() > status[limit].as_int()) {
    Path path("status");
    // An absent count is the number 0, and shown as such.
    errors.invalid(path.child(key), Value(static_cast<long>(status[key].as_int())), detail);
  }
}

void check_collisions(const Value& object, const Value& old, FieldErrors& errors) {
  const Value& count = object["status"]["collisionCount"];
  const Value& before = old["status"]["collisionCount"];
  if (before.is_null() || count.as_int() >= before.as_int()) return;
  Path path("status");
  errors.invalid(path.child("collisionCount"), Value(static_cast<long>(count.as_int())),
                 "cannot be decremented");
}

Value shown_strategy(const Value& strategy, const Value& rolling) {
  return Value::object({{"Type", strategy["type"].str()},
                        {"RollingUpdate", is_set(strategy, "rollingUpdate") ? rolling : Value()}});
}

Value number_or(const Value& value) { return value.is_null() ? Value(0) : value; }

std::vector<std::string> pod_name_warnings(const Value& object) {
  Faults faults = is_dns1123_label(object["metadata"]["name"].as_string());
  if (faults.empty()) return {};
  return {
      cat("metadata.name: this is used in Pod names and hostnames, which can result in "
          "surprising behavior; a DNS label is recommended: [",
          join(faults, " "), "]")};
}

std::vector<std::string> template_warnings(const Value& object, const Value* old) {
  if (old && object["spec"] == (*old)["spec"]) return {};
  Path spec("spec");
  Path path = spec.child("template");
  return pod_template_warnings(object["spec"]["template"], &path,
                               old ? &(*old)["spec"]["template"] : nullptr);
}

KindRules workload_rules() {
  KindRules rules;
  rules.tracks_generation = true;
  rules.has_status = true;
  return rules;
}

}  // namespace dibs::api::workload
