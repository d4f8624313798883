#include "api/expressions/policy_program.h"

#include <optional>

#include "base/strings.h"
#include "cel/evaluate/program.h"
#include "cel/json_value.h"

namespace dibs::api {
namespace {

// Of the work that Kubernetes allows: to one expression, to a group of them, to match conditions.
constexpr std::uint64_t kExpressionLimit = 1'000'000;
constexpr std::uint64_t kBudget = 10'000'000;
constexpr std::uint64_t kConditionBudget = kBudget / 4;
constexpr std::size_t kLongestMessage = 5 * 1024;
constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// What an expression came to: a value, or an error that is told.
struct Outcome {
  cel::Value value;
  std::string error;
  bool failed() const { return !error.empty(); }
};

std::string joined(const std::vector<std::string>& errors) {
  std::vector<std::string> distinct;
  for (const std::string& error : errors) {
    bool known = false;
    for (const std::string& other : distinct) known = known || other == error;
    if (!known) distinct.push_back(error);
  }
  return distinct.size() == 1 ? distinct[0] : cat("[", join(distinct, ", "), "]");
}

}  // namespace

/// One group of expressions over one input.
class PolicyRun {
 public:
  /// Without `authorizes` the authorizer is declared but cannot be asked: so it is for annotations.
  PolicyRun(const CompiledPolicy& policy, const PolicyEnvironment& environment,
            const PolicyInput& input, bool authorizes, std::uint64_t budget)
      : policy_(policy), left_(budget), made_(policy.variables_.size()) {
    PolicyValues values;
    values.object = cel::json_value(input.object);
    values.old_object = cel::json_value(input.old_object);
    values.namespace_object = cel::json_value(input.namespace_object);
    values.request = cel::json_value(input.request);
    values.params = cel::json_value(input.params);
    values.variables = cel::Value::map(new Variables(*this));
    if (authorizes && input.authorize != nullptr) {
      values.authorizer = cel::authorizer_value(input.authorize);
      values.request_resource = cel::resource_check_value(input.authorize, input.resource);
    } else {
      values.authorizer = cel::Value::error("no such attribute(s): authorizer");
      values.request_resource =
          cel::Value::error("no such attribute(s): authorizer.requestResource");
    }
    values_ = environment.arrange(values);
    // Variables may ask the authorizer also where the expression that uses them may not.
    variable_values_ = policy.environment_->arrange(values);
  }

  PolicyRun(const PolicyRun&) = delete;
  PolicyRun& operator=(const PolicyRun&) = delete;

  /// True until the budget is spent; then no outcome counts.
  bool evaluate(const PolicyExpression& expression, Outcome& outcome) {
    if (expression.program == nullptr) {
      outcome.error = cat("compilation error: ", expression.fault);
      return true;
    }
    spent_by_variables_ = 0;
    cel::Evaluation done = expression.program->evaluate(values_, {.cost = kExpressionLimit});
    if (spent_by_variables_ > left_) return false;
    left_ -= spent_by_variables_;
    if (done.cost > left_) return false;
    left_ -= done.cost;
    if (done.value.is_error()) {
      outcome.error =
          cat("expression '", expression.text, "' resulted in error: ", done.value.text());
    } else {
      outcome.value = std::move(done.value);
    }
    return true;
  }

  std::uint64_t left() const { return left_; }

 private:
  /// `variables`: each is evaluated when it is first asked for.
  class Variables final : public cel::Map {
   public:
    explicit Variables(PolicyRun& run) : run_(run) {}
    std::size_t size() const override { return run_.policy_.variables_.size(); }
    bool find(const cel::Value& key, cel::Value& out) const override {
      const std::optional<std::size_t> index = run_.variable(key);
      if (!index) return false;
      out = run_.value_of(*index);
      return true;
    }
    bool contains(const cel::Value& key) const override { return run_.variable(key).has_value(); }
    cel::Value key_at(std::size_t index) const override {
      return cel::Value::string(run_.policy_.variables_[index].name);
    }
    cel::Value value_at(std::size_t index) const override { return run_.value_of(index); }

   private:
    PolicyRun& run_;
  };

  std::optional<std::size_t> variable(const cel::Value& key) const {
    if (!key.is(cel::Kind::string)) return std::nullopt;
    // Of two of one name the later one counts.
    for (std::size_t i = policy_.variables_.size(); i > 0; --i) {
      if (policy_.variables_[i - 1].name == key.text()) return i - 1;
    }
    return std::nullopt;
  }

  cel::Value value_of(std::size_t index) {
    if (made_[index]) return *made_[index];
    const CompiledPolicy::Variable& variable = policy_.variables_[index];
    auto failed = [&](std::string_view how, std::string_view why) {
      return cel::Value::error(
          cat("composited variable ", quoted(variable.name), " fails to ", how, ": ", why));
    };
    if (variable.expression.program == nullptr) {
      made_[index] = failed("compile", variable.expression.fault);
      return *made_[index];
    }
    // A variable that comes to itself finds this.
    made_[index] = failed("evaluate", "it depends on itself");
    cel::Evaluation done =
        variable.expression.program->evaluate(variable_values_, {.cost = kExpressionLimit});
    spent_by_variables_ += done.cost;
    made_[index] =
        done.value.is_error() ? failed("evaluate", done.value.text()) : std::move(done.value);
    return *made_[index];
  }

  const CompiledPolicy& policy_;
  std::uint64_t left_;
  std::uint64_t spent_by_variables_ = 0;
  std::vector<std::optional<cel::Value>> made_;
  std::vector<cel::Value> values_;
  std::vector<cel::Value> variable_values_;
};

std::shared_ptr<const CompiledPolicy> CompiledPolicy::compile(const Value& policy) {
  auto made = std::make_shared<CompiledPolicy>();
  const Value& spec = policy["spec"];
  const bool params = !spec["paramKind"].is_null();
  using Options = PolicyEnvironment::Options;
  std::shared_ptr<PolicyEnvironment> mutations;
  if (!spec["mutations"].empty())
    mutations = std::make_shared<PolicyEnvironment>(Options{params, true, true, true});
  if (spec["variables"].empty()) {
    made->environment_ = PolicyEnvironment::shared(params, true);
    made->message_environment_ = PolicyEnvironment::shared(params, false);
  } else {
    auto all = std::make_shared<PolicyEnvironment>(Options{params, true, true});
    auto messages = std::make_shared<PolicyEnvironment>(Options{params, true, false});
    for (const Value& variable : spec["variables"].items()) {
      PolicyExpression expression = compile_policy_expression(*all, ExpressionRole::variable,
                                                              variable["expression"].as_string());
      all->add_variable(variable["name"].as_string(), expression.type);
      messages->add_variable(variable["name"].as_string(), expression.type);
      if (mutations) mutations->add_variable(variable["name"].as_string(), expression.type);
      made->variables_.push_back({variable["name"].str(), std::move(expression)});
    }
    made->environment_ = std::move(all);
    made->message_environment_ = std::move(messages);
  }
  for (const Value& condition : spec["matchConditions"].items()) {
    made->conditions_.push_back(compile_policy_expression(
        *made->environment_, ExpressionRole::match_condition, condition["expression"].as_string()));
  }
  for (const Value& validation : spec["validations"].items()) {
    Validation one;
    one.expression = compile_policy_expression(*made->environment_, ExpressionRole::validation,
                                               validation["expression"].as_string());
    if (std::string_view text = validation["messageExpression"].as_string(); !text.empty()) {
      one.message_expression =
          compile_policy_expression(*made->message_environment_, ExpressionRole::message, text);
    }
    one.message = trim(validation["message"].as_string());
    one.reason = validation["reason"].as_string("Invalid");
    made->validations_.push_back(std::move(one));
  }
  for (const Value& annotation : spec["auditAnnotations"].items()) {
    made->annotations_.push_back(
        {annotation["key"].str(),
         compile_policy_expression(*made->environment_, ExpressionRole::annotation,
                                   annotation["valueExpression"].as_string())});
  }
  made->mutation_environment_ = std::move(mutations);
  for (const Value& mutation : spec["mutations"].items()) {
    const bool operations = mutation["patchType"].as_string() == "JSONPatch";
    made->mutations_.push_back(
        {operations ? PatchForm::operations : PatchForm::configuration,
         compile_policy_expression(
             *made->mutation_environment_,
             operations ? ExpressionRole::operations : ExpressionRole::configuration,
             mutation[operations ? "jsonPatch" : "applyConfiguration"]["expression"].as_string())});
  }
  made->ignores_failures_ = spec["failurePolicy"].as_string() == "Ignore";
  return made;
}

Result<Value> CompiledPolicy::mutate(std::size_t mutation, const PolicyInput& input,
                                     const Schema& schema) const {
  const auto& [form, expression] = mutations_[mutation];
  if (expression.program == nullptr) return Error::bad_request(expression.fault);
  PolicyRun run(*this, *mutation_environment_, input, true, kBudget);
  Outcome outcome;
  if (!run.evaluate(expression, outcome)) return Error::bad_request(std::string(kOutOfBudget));
  if (outcome.failed()) return Error::bad_request(outcome.error);
  return form == PatchForm::operations ? apply_operations(input.object, outcome.value)
                                       : lay_configuration(input.object, outcome.value, schema);
}

ConditionsVerdict CompiledPolicy::conditions(const PolicyInput& input) const {
  ConditionsVerdict verdict;
  if (conditions_.empty()) return verdict;
  PolicyRun run(*this, *environment_, input, true, kConditionBudget);
  std::vector<std::string> errors;
  for (const PolicyExpression& condition : conditions_) {
    Outcome outcome;
    if (!run.evaluate(condition, outcome)) return {true, std::string(kOutOfBudget), 1};
    if (outcome.failed()) errors.push_back(std::move(outcome.error));
    verdict.matches = verdict.matches && !outcome.value.is_false();
  }
  verdict.failed = errors.size();
  // One that does not hold outweighs all that could not be said.
  if (verdict.matches && !errors.empty()) verdict.error = joined(errors);
  return verdict;
}

PolicyVerdict CompiledPolicy::evaluate(const PolicyInput& input) const {
  PolicyVerdict verdict;
  auto failure = [this](std::string message) {
    return PolicyDecision{!ignores_failures_, std::move(message), ""};
  };

  ConditionsVerdict matched = conditions(input);
  if (!matched.matches) return verdict;
  if (!matched.error.empty()) {
    if (!ignores_failures_) verdict.decisions.push_back(failure(std::move(matched.error)));
    return verdict;
  }

  PolicyRun run(*this, *environment_, input, true, kBudget);
  std::vector<Outcome> outcomes(validations_.size());
  bool denies = false;
  for (std::size_t i = 0; i < validations_.size(); ++i) {
    if (!run.evaluate(validations_[i].expression, outcomes[i])) {
      verdict.decisions = {failure(std::string(kOutOfBudget))};
      return verdict;
    }
    denies = denies || (!outcomes[i].failed() && !outcomes[i].value.is_true());
  }

  bool spent = false;
  std::vector<std::string> messages(validations_.size());
  if (denies) {
    PolicyRun texts(*this, *message_environment_, input, false, run.left());
    for (std::size_t i = 0; i < validations_.size() && !spent; ++i) {
      const Validation& validation = validations_[i];
      if (outcomes[i].failed() || outcomes[i].value.is_true()) continue;
      Outcome text;
      if (!validation.message_expression.text.empty()) {
        spent = !texts.evaluate(validation.message_expression, text);
      }
      if (text.value.is(cel::Kind::string)) messages[i] = trim(text.value.text());
      if (messages[i].size() > kLongestMessage || messages[i].find('\n') != std::string::npos) {
        messages[i].clear();
      }
      if (messages[i].empty()) messages[i] = validation.message;
      if (messages[i].empty()) {
        messages[i] = cat("failed expression: ", trim(validation.expression.text));
      }
    }
  }
  for (std::size_t i = 0; i < validations_.size(); ++i) {
    if (outcomes[i].failed()) {
      verdict.decisions.push_back(failure(std::move(outcomes[i].error)));
    } else if (spent) {
      verdict.decisions.push_back(failure(cat("failed messageExpression: ", kOutOfBudget)));
    } else if (outcomes[i].value.is_true()) {
      verdict.decisions.emplace_back();
    } else {
      verdict.decisions.push_back({true, std::move(messages[i]), validations_[i].reason});
    }
  }

  if (annotations_.empty()) return verdict;
  PolicyRun notes(*this, *environment_, input, false, kBudget);
  for (const Annotation& annotation : annotations_) {
    Outcome outcome;
    if (!notes.evaluate(annotation.expression, outcome)) {
      verdict.decisions = {failure(std::string(kOutOfBudget))};
      verdict.annotations.clear();
      return verdict;
    }
    PolicyAnnotation one{annotation.key, "", ""};
    if (outcome.failed()) {
      if (ignores_failures_) continue;
      one.error = std::move(outcome.error);
    } else {
      if (outcome.value.is(cel::Kind::string)) one.value = trim(outcome.value.text());
      if (one.value.empty()) continue;
    }
    verdict.annotations.push_back(std::move(one));
  }
  return verdict;
}

}  // namespace dibs::api
