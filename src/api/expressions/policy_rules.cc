#include "api/expressions/policy_rules.h"

#include <map>
#include <memory>
#include <string>

#include "api/expressions/policy_environment.h"
#include "api/kinds/admission/expressions.h"

namespace dibs::api {
namespace {

class Judge : public ExpressionJudge {
 public:
  explicit Judge(const Value& spec)
      : params_(!spec["paramKind"].is_null()),
        composes_(!spec["variables"].empty() || !spec["mutations"].empty()) {}

  std::string fault(ExpressionRole role, std::string_view text, std::string_view name) override {
    PolicyExpression made = compile_policy_expression(environment_for(role), role, text);
    if (role == ExpressionRole::variable) {
      all_->add_variable(name, made.type);
      messages_->add_variable(name, made.type);
      mutations_->add_variable(name, made.type);
    }
    return made.fault;
  }

 private:
  const PolicyEnvironment& environment_for(ExpressionRole role) {
    bool is_message = role == ExpressionRole::message;
    // Conditions decide whether the policy is looked at at all, so its variables are not theirs.
    if (!composes_ || role == ExpressionRole::match_condition) {
      return *PolicyEnvironment::shared(params_, !is_message);
    }
    if (all_ == nullptr) {
      using Options = PolicyEnvironment::Options;
      all_ = std::make_unique<PolicyEnvironment>(Options{params_, true, true});
      messages_ = std::make_unique<PolicyEnvironment>(Options{params_, true, false});
      mutations_ = std::make_unique<PolicyEnvironment>(Options{params_, true, true, true});
    }
    if (role == ExpressionRole::configuration || role == ExpressionRole::operations)
      return *mutations_;
    return is_message ? *messages_ : *all_;
  }

  bool params_;
  bool composes_;
  std::unique_ptr<PolicyEnvironment> all_;
  std::unique_ptr<PolicyEnvironment> messages_;
  std::unique_ptr<PolicyEnvironment> mutations_;
};

}  // namespace

const KindRules& admission_rules_with_expressions(std::string_view kind) {
  static const std::map<std::string, KindRules, std::less<>> all = [] {
    std::map<std::string, KindRules, std::less<>> made;
    for (const char* name :
         {"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
          "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy",
          "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding"}) {
      made.emplace(name, make_admission_rules(name, [](const Value& spec) {
                     return std::unique_ptr<ExpressionJudge>(std::make_unique<Judge>(spec));
                   }));
    }
    return made;
  }();
  static const KindRules none;
  auto found = all.find(kind);
  return found == all.end() ? none : found->second;
}

}  // namespace dibs::api
