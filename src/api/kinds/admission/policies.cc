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

void set_policy_defaults(Value& object) {
  Value& spec = object.mut("spec");
  set_default(spec, "failurePolicy", "Fail");
  if (is_set(spec, "matchConstraints")) set_match_defaults(spec.mut("matchConstraints"));
}

/// What both kinds of policy share, up to and with the variables.
void validate_policy_frame(const Value& spec, const Value* old_spec, bool is_mutating,
                           ExpressionJudge* judge, const Path& path, FieldErrors& errors) {
  check_failure_policy(spec, true, path, errors);
  if (is_set(spec, "paramKind")) {
    check_param_kind(spec["paramKind"], path.child("paramKind"), errors);
  }
  Path constraints = path.child("matchConstraints");
  if (!is_set(spec, "matchConstraints")) {
    errors.required(constraints);
  } else {
    check_match_resources(spec["matchConstraints"], constraints, errors);
    if (spec["matchConstraints"]["resourceRules"].empty()) {
      errors.required(constraints.child("resourceRules"));
    }
    if (is_mutating) check_mutating_operations(spec["matchConstraints"], constraints, errors);
  }
  bool unchanged = old_spec && (*old_spec)["paramKind"] == spec["paramKind"] &&
                   (*old_spec)["matchConditions"] == spec["matchConditions"];
  if (!unchanged) {
    check_match_conditions(spec["matchConditions"], judge, path.child("matchConditions"), errors);
  }
  Path variables = path.child("variables");
  std::size_t i = 0;
  for (const Value& variable : spec["variables"].items()) {
    check_variable(variable, judge, variables.index(i++), errors);
  }
}

void check_validation(const Value& validation, ExpressionJudge* judge, const Path& path,
                      FieldErrors& errors) {
  const Value& expression = validation["expression"];
  if (trim(expression.as_string()).empty()) {
    errors.required(path.child("expression"), "expression is not specified");
  } else {
    check_expression(judge, ExpressionRole::validation, expression.as_string(), expression,
                     path.child("expression"), errors);
  }
  const Value& by_expression = validation["messageExpression"];
  if (!by_expression.as_string().empty() && trim(by_expression.as_string()).empty()) {
    errors.invalid(path.child("messageExpression"), by_expression,
                   "must be non-empty if specified");
  } else if (!by_expression.as_string().empty()) {
    check_expression(judge, ExpressionRole::message, by_expression.as_string(), by_expression,
                     path.child("messageExpression"), errors);
  }
  const Value& message = validation["message"];
  std::string_view text = trim(message.as_string());
  if (!message.as_string().empty() && text.empty()) {
    errors.invalid(path.child("message"), message, "message must be non-empty if specified");
  } else if (text.find_first_of("\n\r") != std::string_view::npos) {
    errors.invalid(path.child("message"), message, "message must not contain line breaks");
  }
  const Value& reason = validation["reason"];
  if (!reason.is_null() &&
      !is_one_of(reason.as_string(), {"Forbidden", "Invalid", "RequestEntityTooLarge"})) {
    errors.not_supported(path.child("reason"), reason,
                         {"Forbidden", "Invalid", "RequestEntityTooLarge"});
  }
}

void check_audit_annotations(const Value& annotations, std::string_view policy,
                             ExpressionJudge* judge, const Path& path, FieldErrors& errors) {
  constexpr std::size_t kMost = 20;
  constexpr std::size_t kLongest = 5 * 1024;
  if (annotations.size() > kMost) {
    errors.invalid(path, annotations, cat("must not have more than ", kMost, " auditAnnotations"));
  }
  std::set<std::string_view> keys;
  std::size_t i = 0;
  for (const Value& annotation : annotations.items()) {
    Path at = path.index(i++);
    // The key is told of together with the name of the policy, so both must fit.
    std::string_view key = annotation["key"].as_string();
    if (policy.empty()) {
      errors.invalid(at.child("key"), annotation["key"], "requires metadata.name be non-empty");
    } else {
      std::string full = cat(policy, "/", key);
      add_invalid(is_qualified_name(full), full, at.child("key"), errors);
    }
    std::string_view expression = annotation["valueExpression"].as_string();
    if (trim(expression).empty()) {
      errors.required(at.child("valueExpression"), "valueExpression is not specified");
    } else if (trim(expression).size() > kLongest) {
      errors.required(at.child("valueExpression"),
                      cat("must not exceed ", kLongest, " bytes in length"));
    } else {
      check_expression(judge, ExpressionRole::annotation, trim(expression),
                       annotation["valueExpression"], at.child("valueExpression"), errors);
    }
    if (!keys.insert(key).second) errors.duplicate(at.child("key"), annotation["key"]);
  }
}

void validate_policy(const Value& object, const Value* old, ExpressionJudge* judge,
                     FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  validate_policy_frame(spec, old ? &(*old)["spec"] : nullptr, false, judge, path, errors);
  Path validations = path.child("validations");
  Path audits = path.child("auditAnnotations");
  if (spec["validations"].empty() && spec["auditAnnotations"].empty()) {
    constexpr std::string_view kOne =
        "validations or auditAnnotations must contain at least one item";
    errors.required(validations, kOne);
    errors.required(audits, kOne);
    return;
  }
  std::size_t i = 0;
  for (const Value& validation : spec["validations"].items()) {
    check_validation(validation, judge, validations.index(i++), errors);
  }
  check_audit_annotations(spec["auditAnnotations"], object["metadata"]["name"].as_string(), judge,
                          audits, errors);
}

void validate_policy_status(const Value& object, const Value&, FieldErrors& errors) {
  const Value& status = object["status"];
  Path path("status");
  Path checking = path.child("typeChecking");
  Path warnings = checking.child("expressionWarnings");
  std::size_t i = 0;
  for (const Value& warning : status["typeChecking"]["expressionWarnings"].items()) {
    Path at = warnings.index(i++);
    if (warning["warning"].as_string().empty()) errors.required(at.child("warning"));
    if (trim(warning["fieldRef"].as_string()).empty()) errors.required(at.child("fieldRef"));
  }
  validate_conditions(status["conditions"], path.child("conditions"), errors);
}

void check_mutation(const Value& mutation, ExpressionJudge* judge, const Path& path,
                    FieldErrors& errors) {
  struct Form {
    std::string_view type, key, other, shown;
    ExpressionRole role;
  };
  constexpr Form kForms[] = {{"JSONPatch", "jsonPatch", "applyConfiguration",
                              "{applyConfiguration}", ExpressionRole::operations},
                             {"ApplyConfiguration", "applyConfiguration", "jsonPatch",
                              "{jsonPatch}", ExpressionRole::configuration}};
  const Value& type = mutation["patchType"];
  if (type.as_string().empty()) {
    errors.required(path.child("patchType"));
    return;
  }
  for (const Form& form : kForms) {
    if (form.type != type.as_string()) continue;
    Path at = path.child(form.key);
    const std::string_view expression = trim(mutation[form.key]["expression"].as_string());
    if (!is_set(mutation, form.key)) {
      errors.required(at, cat("must be specified when patchType is ", form.type));
    } else if (expression.empty()) {
      errors.required(at.child("expression"));
    } else {
      check_expression(judge, form.role, expression, expression, at.child("expression"), errors);
    }
    if (is_set(mutation, form.other)) {
      errors.invalid(path.child(form.other), form.shown,
                     cat("must not be specified when patchType is ", form.type));
    }
    return;
  }
  errors.not_supported(path.child("patchType"), type, {"ApplyConfiguration", "JSONPatch"});
}

void validate_mutating_policy(const Value& object, const Value* old, ExpressionJudge* judge,
                              FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  validate_policy_frame(spec, old ? &(*old)["spec"] : nullptr, true, judge, path, errors);
  Path mutations = path.child("mutations");
  if (spec["mutations"].empty()) {
    errors.required(mutations, "mutations must contain at least one item");
  }
  std::size_t i = 0;
  for (const Value& mutation : spec["mutations"].items()) {
    check_mutation(mutation, judge, mutations.index(i++), errors);
  }
  if (spec["reinvocationPolicy"].as_string().empty()) {
    errors.required(path.child("reinvocationPolicy"));
  } else {
    check_choice(spec, "reinvocationPolicy", {"IfNeeded", "Never"}, path, errors);
  }
}

KindRules policy_rules(bool is_mutating, const MakeJudge& make) {
  KindRules rules = admission_rules();
  rules.set_defaults = set_policy_defaults;
  auto* validate = is_mutating ? validate_mutating_policy : validate_policy;
  rules.validate = [validate, make](const Value& object, FieldErrors& errors) {
    auto judge = make ? make(object["spec"]) : nullptr;
    validate(object, nullptr, judge.get(), errors);
  };
  rules.validate_update = [validate, make](const Value& object, const Value& old,
                                           FieldErrors& errors) {
    auto judge = make ? make(object["spec"]) : nullptr;
    validate(object, &old, judge.get(), errors);
  };
  if (is_mutating) return rules;
  rules.has_status = true;
  rules.prepare_create = [](Value& object, const RuleContext&) {
    object.set("status", Value::object());
  };
  rules.validate_status = validate_policy_status;
  return rules;
}

// --- bindings of policies ---

void check_actions(const Value& actions, const Path& path, FieldErrors& errors) {
  std::set<std::string_view> seen;
  std::size_t i = 0;
  for (const Value& action : actions.items()) {
    Path at = path.index(i++);
    if (!is_one_of(action.as_string(), {"Audit", "Deny", "Warn"})) {
      errors.not_supported(at, action, {"Audit", "Deny", "Warn"});
    }
    if (!seen.insert(action.as_string()).second) errors.duplicate(at, action);
  }
  if (seen.contains("Deny") && seen.contains("Warn")) {
    errors.invalid(path, actions,
                   "must not contain both Deny and Warn (repeating the same validation failure "
                   "information in the API response and headers serves no purpose)");
  }
}

void validate_binding(const Value& object, bool is_mutating, FieldErrors& errors) {
  const Value& spec = object["spec"];
  Path path("spec");
  const Value& policy = spec["policyName"];
  if (!policy.as_string().empty()) {
    add_invalid(is_dns1123_subdomain(policy.as_string()), policy, path.child("policyName"), errors);
  }
  if (is_set(spec, "paramRef")) {
    check_param_reference(spec["paramRef"], path.child("paramRef"), errors);
  }
  Path resources = path.child("matchResources");
  if (is_set(spec, "matchResources")) {
    check_match_resources(spec["matchResources"], resources, errors);
    if (is_mutating) check_mutating_operations(spec["matchResources"], resources, errors);
  }
  if (!is_mutating) {
    check_actions(spec["validationActions"], path.child("validationActions"), errors);
  }
  if (policy.as_string().empty()) errors.required(path.child("policyName"));
  if (!is_mutating && spec["validationActions"].empty()) {
    errors.required(path.child("validationActions"));
  }
}

KindRules binding_rules(bool is_mutating) {
  KindRules rules = admission_rules();
  rules.set_defaults = [](Value& object) {
    if (!is_set(object["spec"], "matchResources")) return;
    set_match_defaults(object.mut("spec").mut("matchResources"));
  };
  rules.validate = [is_mutating](const Value& object, FieldErrors& errors) {
    validate_binding(object, is_mutating, errors);
  };
  rules.validate_update = [is_mutating](const Value& object, const Value&, FieldErrors& errors) {
    validate_binding(object, is_mutating, errors);
  };
  return rules;
}

}  // namespace

KindRules make_admission_rules(std::string_view kind, MakeJudge make) {
  bool is_mutating = kind.starts_with("Mutating");
  if (kind.ends_with("WebhookConfiguration")) return webhook_rules(is_mutating, make);
  if (kind.ends_with("Binding")) return binding_rules(is_mutating);
  return policy_rules(is_mutating, make);
}

void add_admission_rules(RuleTable& table) {
  for (std::string_view form : {"Validating", "Mutating"}) {
    for (std::string_view what :
         {"WebhookConfiguration", "AdmissionPolicy", "AdmissionPolicyBinding"}) {
      std::string kind = cat(form, what);
      table[{"admissionregistration.k8s.io", kind}] = make_admission_rules(kind);
    }
  }
}

}  // namespace dibs::api
