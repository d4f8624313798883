#include <set>
#include <vector>

#include "api/kinds/admission/expressions.h"
#include "api/kinds/admission/parts.h"
#include "api/kinds/checks.h"
#include "api/kinds/metadata.h"
#include "api/kinds/names.h"
#include "api/kinds/rule_table.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

using namespace admission;

/// What an older configuration may keep doing wrong.
struct HookOptions {
  bool require_no_side_effects = true;
  bool require_known_versions = true;
  bool require_unique_names = true;
  bool allow_invalid_labels = false;
  bool skip_conditions = false;
};

void set_webhook_defaults(Value& object, bool is_mutating) {
  if (object["webhooks"].empty()) return;
  Value& hooks = object.mut("webhooks");
  for (std::size_t i = 0; i < hooks.size(); ++i) {
    Value& hook = hooks.mut(i);
    set_default(hook, "failurePolicy", "Fail");
    set_default(hook, "matchPolicy", "Equivalent");
    set_default(hook, "namespaceSelector", Value::object());
    set_default(hook, "objectSelector", Value::object());
    set_default(hook, "timeoutSeconds", 10);
    if (is_mutating) set_default(hook, "reinvocationPolicy", "Never");
    if (is_set(hook["clientConfig"], "service")) {
      set_default(hook.mut("clientConfig").mut("service"), "port", 443);
    }
    set_rule_defaults(hook, "rules");
  }
}

void check_hook_name(const Value& name, const Path& path, FieldErrors& errors) {
  std::string_view text = name.as_string();
  if (text.empty()) {
    errors.required(path);
  } else if (Faults faults = is_dns1123_subdomain(text); !faults.empty()) {
    errors.invalid(path, name, join(faults, ","));
  } else if (split(text, '.').size() < 3) {
    errors.invalid(path, name, "should be a domain with at least three segments separated by dots");
  }
}

void check_review_versions(const Value& versions, bool require_known, const Path& path,
                           FieldErrors& errors) {
  if (versions.empty()) {
    errors.required(path, "must specify one of v1, v1beta1");
    return;
  }
  std::set<std::string_view> seen;
  bool known = false;
  std::size_t i = 0;
  for (const Value& version : versions.items()) {
    Path at = path.index(i++);
    if (!seen.insert(version.as_string()).second) {
      errors.invalid(at, version, "duplicate version");
      continue;
    }
    add_invalid(is_dns1035_label(version.as_string()), version, at, errors);
    known = known || is_one_of(version.as_string(), {"v1", "v1beta1"});
  }
  if (require_known && !known) {
    errors.invalid(path, versions, "must include at least one of v1, v1beta1");
  }
}

void check_side_effects(const Value& effects, bool require_none, const Path& path,
                        FieldErrors& errors) {
  std::vector<std::string> allowed = {"None", "NoneOnDryRun"};
  if (!require_none) allowed = {"None", "NoneOnDryRun", "Some", "Unknown"};
  if (effects.is_null()) {
    errors.required(path, cat("must specify one of ", join(allowed, ", ")));
    return;
  }
  for (const std::string& text : allowed) {
    if (text == effects.as_string()) return;
  }
  errors.not_supported(path, effects, allowed);
}

void validate_hook(const Value& hook, bool is_mutating, const HookOptions& options,
                   ExpressionJudge* judge, const Path& path, FieldErrors& errors) {
  check_hook_name(hook["name"], path.child("name"), errors);
  Path rules = path.child("rules");
  std::size_t i = 0;
  for (const Value& rule : hook["rules"].items()) check_rule(rule, rules.index(i++), errors);
  check_failure_policy(hook, false, path, errors);
  check_choice(hook, "matchPolicy", {"Equivalent", "Exact"}, path, errors);
  check_side_effects(hook["sideEffects"], options.require_no_side_effects,
                     path.child("sideEffects"), errors);
  const Value& timeout = hook["timeoutSeconds"];
  if (!timeout.is_null() && (timeout.as_int() > 30 || timeout.as_int() < 1)) {
    errors.invalid(path.child("timeoutSeconds"), timeout,
                   "the timeout value must be between 1 and 30 seconds");
  }
  for (std::string_view key : {"namespaceSelector", "objectSelector"}) {
    validate_label_selector(hook[key], path.child(key), errors, {options.allow_invalid_labels});
  }
  if (is_mutating) check_choice(hook, "reinvocationPolicy", {"IfNeeded", "Never"}, path, errors);
  check_client_config(hook["clientConfig"], path.child("clientConfig"), errors);
  if (!options.skip_conditions) {
    check_match_conditions(hook["matchConditions"], judge, path.child("matchConditions"), errors);
  }
}

void validate_webhooks(const Value& object, bool is_mutating, const HookOptions& options,
                       ExpressionJudge* judge, FieldErrors& errors) {
  Path hooks("webhooks");
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& hook : object["webhooks"].items()) {
    Path at = hooks.index(i++);
    validate_hook(hook, is_mutating, options, judge, at, errors);
    check_review_versions(hook["admissionReviewVersions"], options.require_known_versions,
                          at.child("admissionReviewVersions"), errors);
    std::string_view name = hook["name"].as_string();
    if (options.require_unique_names && !name.empty() && !names.insert(name).second) {
      errors.duplicate(at.child("name"), hook["name"]);
    }
  }
}

HookOptions options_for_update(const Value& object, const Value& old) {
  HookOptions options;
  std::set<std::string_view> names;
  for (const Value& hook : old["webhooks"].items()) {
    if (!is_one_of(hook["sideEffects"].as_string(), {"None", "NoneOnDryRun"})) {
      options.require_no_side_effects = false;
    }
    bool known = hook["admissionReviewVersions"].empty();
    for (const Value& version : hook["admissionReviewVersions"].items()) {
      known = known || is_one_of(version.as_string(), {"v1", "v1beta1"});
    }
    if (!known) options.require_known_versions = false;
    if (!names.insert(hook["name"].as_string()).second) options.require_unique_names = false;
    FieldErrors faults;
    validate_label_selector(hook["namespaceSelector"], Path("x"), faults);
    validate_label_selector(hook["objectSelector"], Path("x"), faults);
    if (!faults.empty()) options.allow_invalid_labels = true;
  }
  const Value& hooks = object["webhooks"];
  const Value& before = old["webhooks"];
  options.skip_conditions = hooks.size() == before.size();
  for (std::size_t i = 0; options.skip_conditions && i < hooks.size(); ++i) {
    options.skip_conditions = hooks[i]["matchConditions"] == before[i]["matchConditions"];
  }
  return options;
}

}  // namespace

KindRules admission::webhook_rules(bool is_mutating, const MakeJudge& make) {
  KindRules rules = admission_rules();
  rules.set_defaults = [is_mutating](Value& object) { set_webhook_defaults(object, is_mutating); };
  rules.validate = [is_mutating, make](const Value& object, FieldErrors& errors) {
    auto judge = make ? make({}) : nullptr;
    validate_webhooks(object, is_mutating, {}, judge.get(), errors);
  };
  rules.validate_update = [is_mutating, make](const Value& object, const Value& old,
                                              FieldErrors& errors) {
    auto judge = make ? make({}) : nullptr;
    validate_webhooks(object, is_mutating, options_for_update(object, old), judge.get(), errors);
  };
  return rules;
}

}  // namespace dibs::api
