#pragma once
// What webhook configurations, admission policies and their bindings have in common. For this
// folder only.
//
// Where a judge of expressions is asked for, it may be null: expressions then need only be there.

#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/admission/expressions.h"
#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api::admission {

/// Where the rules of all these kinds begin.
KindRules admission_rules();
KindRules webhook_rules(bool is_mutating, const MakeJudge& make);

/// scope "*" for every rule of a list.
void set_rule_defaults(Value& object, std::string_view list);
/// Defaults of MatchResources.
void set_match_defaults(Value& resources);

/// An optional text member that must be one of the choices.
void check_choice(const Value& object, std::string_view key,
                  const std::vector<std::string>& choices, const Path& path, FieldErrors& errors);
void check_failure_policy(const Value& object, bool is_required, const Path& path,
                          FieldErrors& errors);
/// operations, apiGroups, apiVersions, resources, scope.
void check_rule(const Value& rule, const Path& path, FieldErrors& errors);
void check_match_resources(const Value& resources, const Path& path, FieldErrors& errors);
/// A mutation can be made on all operations but DELETE.
void check_mutating_operations(const Value& resources, const Path& path, FieldErrors& errors);
/// An expression that is there: `text` is what is compiled, `shown` what the fault tells of.
void check_expression(ExpressionJudge* judge, ExpressionRole role, std::string_view text,
                      const Value& shown, const Path& path, FieldErrors& errors,
                      std::string_view name = {});
void check_match_conditions(const Value& conditions, ExpressionJudge* judge, const Path& path,
                            FieldErrors& errors);
void check_variable(const Value& variable, ExpressionJudge* judge, const Path& path,
                    FieldErrors& errors);
void check_param_kind(const Value& kind, const Path& path, FieldErrors& errors);
void check_param_reference(const Value& reference, const Path& path, FieldErrors& errors);
/// url or service of a webhook.
void check_client_config(const Value& config, const Path& path, FieldErrors& errors);

}  // namespace dibs::api::admission
