#pragma once
// Rules of the admission kinds with their expressions judged.
//
// Webhook configurations and admission policies carry expressions. Whether one compiles is told
// among the other faults of the same entry, so the rules ask in the middle of their work; but the
// compiler stands above this folder, and hands itself in through an interface.

#include <functional>
#include <memory>
#include <string_view>

#include "api/schema/field_error.h"
#include "api/schema/kind.h"

namespace dibs::api {

/// What an expression is for: it decides what it may refer to and what it must give.
enum class ExpressionRole : std::uint8_t {
  match_condition,  // a boolean, without `variables`
  variable,         // anything
  validation,       // a boolean
  message,          // text, without `authorizer`
  annotation,       // text or null
  configuration,    // part of an object, to be laid over the one that is admitted
  operations,       // of a JSON patch
};

/// Judges the expressions of one object, in the order in which it is asked: a variable is known to
/// those behind it.
class ExpressionJudge {
 public:
  virtual ~ExpressionJudge() = default;
  /// Why the expression is refused, or "". `name` is that of a variable.
  virtual std::string fault(ExpressionRole role, std::string_view text, std::string_view name) = 0;
};

/// Makes the judge of one object; `spec` is that of a policy, null for a webhook configuration.
using MakeJudge = std::function<std::unique_ptr<ExpressionJudge>(const Value& spec)>;

/// The rules of a kind of admissionregistration.k8s.io; without a judge, any text is an expression.
KindRules make_admission_rules(std::string_view kind, MakeJudge make = {});

}  // namespace dibs::api
