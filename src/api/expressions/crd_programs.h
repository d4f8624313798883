#pragma once
// Rules of x-kubernetes-validations, compiled against the type of the value they stand at.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "api/expressions/schema_types.h"
#include "cel/environment.h"
#include "json/value.h"

namespace dibs::api {

struct RuleProgram {
  json::Value rule;  // as written
  /// Null when there is an error, or the rule is blank.
  std::shared_ptr<const cel::Program> program;
  std::string error;
  /// Refers to oldSelf.
  bool is_transition = false;
  /// oldSelf is an optional value, so that the rule is judged where there is no old one, too.
  bool is_optional = false;
  std::uint64_t cost = 0;  // at worst
  /// Of messageExpression; null when there is none or it has an error.
  std::shared_ptr<const cel::Program> message;
  std::string message_error;
  std::uint64_t message_cost = 0;
  /// fieldPath as errors show it: "spec.a", "map[key]".
  std::string field_path;
};

/// Compiles rules at and below a schema. Outlives the programs; `root` outlives it.
class RuleCompiler {
 public:
  explicit RuleCompiler(const TypedSchema& root);

  /// Those that stand at `schema`, which is the root or below it and has a type.
  std::vector<RuleProgram> compile(const TypedSchema& schema);

 private:
  RuleProgram compile_rule(const TypedSchema& schema, const json::Value& rule);

  cel::Environment environment_;
};

/// What a program of a rule is evaluated with, in the order of its variables.
inline constexpr std::size_t kSelf = 0;
inline constexpr std::size_t kOldSelf = 1;

}  // namespace dibs::api
