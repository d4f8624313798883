#pragma once
// An admission policy at work: its expressions compiled, and what they say of a request.
//
// Life of an evaluation: 1. the match conditions, which must all hold; 2. all validations, each of
// which admits or denies; 3. the messages of those that deny; 4. the audit annotations. Each of
// these groups evaluates the variables it uses at most once, and has a budget for the work it may
// do. What goes wrong on the way is decided by the policy's failurePolicy.
//
// A MutatingAdmissionPolicy has mutations in place of validations, which are asked one by one: each
// is a group of its own, about what those before it have made.
//
// Immutable once compiled; any number of threads may evaluate.

#include <memory>
#include <string>
#include <vector>

#include "api/expressions/policy_environment.h"
#include "api/expressions/policy_mutation.h"
#include "cel/libraries/authorizer.h"
#include "json/value.h"

namespace dibs::api {

/// A request as expressions see it. Null stands for what there is not.
struct PolicyInput {
  Value object;
  Value old_object;
  Value namespace_object;
  Value request;
  Value params;
  std::shared_ptr<const cel::Authorize> authorize;
  /// authorizer.requestResource, but for the verb.
  cel::AuthorizationQuery resource;
};

/// What one validation says.
struct PolicyDecision {
  bool denies = false;
  std::string message;
  std::string reason;  // "" where an error denies
};

struct PolicyAnnotation {
  std::string key;
  std::string value;
  std::string error;  // not empty: the request is denied for it
};

struct PolicyVerdict {
  std::vector<PolicyDecision> decisions;  // none when the conditions do not match
  std::vector<PolicyAnnotation> annotations;
};

/// What the match conditions say. Where nothing is false and something cannot be said, there is an
/// error, and failurePolicy decides.
struct ConditionsVerdict {
  bool matches = true;
  std::string error = {};
  std::size_t failed = 0;  // conditions that could not be evaluated
};

class CompiledPolicy {
 public:
  /// From a policy, or what else has the fields of one, that was judged when it was written; what
  /// does not compile any more fails when it is evaluated.
  static std::shared_ptr<const CompiledPolicy> compile(const Value& policy);

  PolicyVerdict evaluate(const PolicyInput& input) const;
  /// The match conditions alone, as webhooks have them.
  ConditionsVerdict conditions(const PolicyInput& input) const;

  std::size_t mutations() const { return mutations_.size(); }
  PatchForm form_of(std::size_t mutation) const { return mutations_[mutation].form; }
  /// What a mutation makes of the object, raw. Errors: in words for the user.
  Result<Value> mutate(std::size_t mutation, const PolicyInput& input, const Schema& schema) const;

 private:
  friend class PolicyRun;
  struct Validation {
    PolicyExpression expression;
    PolicyExpression message_expression;  // empty text: none
    std::string message;
    std::string reason;
  };
  struct Annotation {
    std::string key;
    PolicyExpression expression;
  };
  struct Variable {
    std::string name;
    PolicyExpression expression;
  };
  struct Mutation {
    PatchForm form;
    PolicyExpression expression;
  };

  std::shared_ptr<const PolicyEnvironment> environment_;
  std::shared_ptr<const PolicyEnvironment> message_environment_;
  std::shared_ptr<const PolicyEnvironment> mutation_environment_;  // where there are mutations
  std::vector<PolicyExpression> conditions_;
  std::vector<Variable> variables_;
  std::vector<Validation> validations_;
  std::vector<Annotation> annotations_;
  std::vector<Mutation> mutations_;
  bool ignores_failures_ = false;
};

}  // namespace dibs::api
