#include "api/expressions/crd_programs.h"

#include <algorithm>

#include "api/structural/crd_schema.h"
#include "base/strings.h"
#include "cel/kubernetes.h"

namespace dibs::api {
namespace {

using json::Value;

bool uses_variable(const cel::Program& program, std::size_t index) {
  return std::any_of(program.ops.begin(), program.ops.end(), [&](const cel::Op& op) {
    return op.code == cel::OpCode::variable && op.index == index;
  });
}

/// All definitions share the functions, which are most of an environment.
const cel::Environment& functions() {
  static const cel::Environment shared = cel::kubernetes_environment();
  return shared;
}

}  // namespace

RuleCompiler::RuleCompiler(const TypedSchema& root)
    : environment_(cel::Environment::over(functions())) {
  declare_types(root, environment_);
  environment_.variable("self", cel::TypeKind::dyn);
  environment_.variable("oldSelf", cel::TypeKind::dyn);
}

std::vector<RuleProgram> RuleCompiler::compile(const TypedSchema& schema) {
  std::vector<RuleProgram> made;
  environment_.variable("self", schema.type);
  for (const Value& rule : schema.rules().items()) made.push_back(compile_rule(schema, rule));
  return made;
}

RuleProgram RuleCompiler::compile_rule(const TypedSchema& schema, const Value& rule) {
  RuleProgram made;
  made.rule = rule;
  made.is_optional = rule["optionalOldSelf"].as_bool();
  const std::string text = rule["rule"].str();
  if (trim(text).empty()) return made;
  environment_.variable("oldSelf",
                        made.is_optional ? cel::Type::optional(schema.type) : schema.type);
  const cel::SizeBound bound = size_bound(schema);

  cel::Compilation compiled = environment_.compile(text, bound);
  if (compiled.program == nullptr) {
    made.error = cat("compilation failed: ", cel::format_issues(text, compiled.issues));
    return made;
  }
  if (!compiled.type.is(cel::TypeKind::boolean)) {
    made.error = "cel expression must evaluate to a bool";
    return made;
  }
  made.is_transition = uses_variable(*compiled.program, kOldSelf);
  if (!compiled.program->constant_error.empty()) {
    made.error = cat("program instantiation failed: ", compiled.program->constant_error);
    return made;
  }
  made.cost = compiled.estimated_cost;
  made.program = std::move(compiled.program);

  if (const std::string message = rule["messageExpression"].str(); !message.empty()) {
    cel::Compilation shown = environment_.compile(message, bound);
    if (shown.program == nullptr) {
      made.message_error =
          cat("messageExpression compilation failed: ", cel::format_issues(message, shown.issues));
      return made;
    }
    if (!shown.type.is(cel::TypeKind::string)) {
      made.message_error = "messageExpression must evaluate to a string";
      return made;
    }
    if (!shown.program->constant_error.empty()) {
      made.message_error =
          cat("messageExpression instantiation failed: ", shown.program->constant_error);
      return made;
    }
    made.message_cost = shown.estimated_cost;
    made.message = std::move(shown.program);
  }
  if (const std::string path = rule["fieldPath"].str(); !path.empty()) {
    std::string shown;
    if (schema_at_path(path, schema.source, true, &shown).ok()) made.field_path = std::move(shown);
  }
  return made;
}

}  // namespace dibs::api
