#include "api/devices/named_resources.h"

#include "base/strings.h"
#include "cel/environment.h"
#include "cel/kubernetes.h"
#include "cel/libraries/extensions.h"

namespace dibs::api {
namespace {

constexpr int kRelease = 30;

struct Variable {
  const char* name;
  const char* type;
};

constexpr Variable kVariables[] = {
    {"attributes.quantity", "map(string, kubernetes.Quantity)"},
    {"attributes.bool", "map(string, bool)"},
    {"attributes.int", "map(string, int)"},
    {"attributes.intslice", "map(string, list(int))"},
    {"attributes.string", "map(string, string)"},
    {"attributes.stringslice", "map(string, list(string))"},
    {"attributes.version", "map(string, kubernetes.Semver)"},
};

cel::Environment make(int library) {
  cel::Environment made = cel::kubernetes_environment(library);
  cel::add_semver(made, 0);
  for (const Variable& variable : kVariables)
    made.variable(variable.name, cel::Type::parse(variable.type));
  return made;
}

const cel::Environment& language(bool stored) {
  // New expressions must also be understood by the release before.
  static const cel::Environment for_new = make(kRelease - 1);
  static const cel::Environment for_stored = make(kRelease);
  return stored ? for_stored : for_new;
}

}  // namespace

Selector compile_named_resources(std::string_view expression, bool stored) {
  Selector made;
  cel::Compilation compiled = language(stored).compile(expression);
  made.type = compiled.type;
  if (compiled.program == nullptr) {
    made.fault = SelectorFault::invalid;
    made.message = cat("compilation failed: ", cel::format_issues(expression, compiled.issues));
    made.issues = std::move(compiled.issues);
  } else if (!compiled.type.is(cel::TypeKind::boolean)) {
    made.fault = SelectorFault::invalid;
    made.message = "must evaluate to bool";
  } else if (!compiled.program->constant_error.empty()) {
    made.fault = SelectorFault::internal;
    made.message = cat("program instantiation failed: ", compiled.program->constant_error);
  } else {
    made.program = std::move(compiled.program);
  }
  return made;
}

void validate_named_resources(std::string_view expression, bool stored, const Path& path,
                              FieldErrors& errors) {
  const Selector selector = compile_named_resources(expression, stored);
  if (selector.fault == SelectorFault::invalid)
    errors.invalid(path, expression, selector.message);
  else if (selector.fault == SelectorFault::internal)
    errors.internal(path, selector.message);
}

}  // namespace dibs::api
