#pragma once
// An admission policy at work: its expressions compiled, and what they say of a request.
//
// Life of an evaluation: 1. the match conditions, which must all hold; 2. all validations, each of
// which admits or denies; 3. the messages of those that deny; 4. the audit annotations. Each of
// these groups evaluates the variables it uses at most once, and has a budget for the work it may
// do. What goes wrong on the way is decided by the policy's failurePolicy.
//
// Immutable once compiled; any number of threads may evaluate.

#include <memory>
#include <string>
#include <vector>

#include "api/expressions/policy_environment.h"
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

class CompiledPolicy {
 public:
  /// From a ValidatingAdmissionPolicy that was judged when it was written; what does not compile
  /// any more fails when it is evaluated.
  static std::shared_ptr<const CompiledPolicy> compile(const Value& policy);

  PolicyVerdict evaluate(const PolicyInput& input) const;

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

  std::shared_ptr<const PolicyEnvironment> environment_;
  std::shared_ptr<const PolicyEnvironment> message_environment_;
  std::vector<PolicyExpression> conditions_;
  std::vector<Variable> variables_;
  std::vector<Validation> validations_;
  std::vector<Annotation> annotations_;
  bool ignores_failures_ = false;
};

}  // namespace dibs::api
