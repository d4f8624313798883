#include "api/devices/selector.h"

#include "api/devices/selector_language.h"
#include "base/strings.h"

namespace dibs::api {
namespace {

/// The release in which the length and the estimated cost of an expression became limited.
constexpr int kLimitsSince = 32;

}  // namespace

Selector compile_selector(std::string_view expression, const SelectorEnvironment& environment) {
  Selector made;
  const int release = environment.release;
  if (release >= kLimitsSince && expression.size() > kSelectorLengthLimit) {
    made.fault = SelectorFault::too_long;
    made.message = cat("may not be more than ", kSelectorLengthLimit, " bytes");
    return made;
  }
  cel::Compilation compiled =
      selector_language(environment).compile(expression, [release](const cel::ValuePath& path) {
        return device_size_bound(path, release);
      });
  made.type = compiled.type;
  made.estimated_cost = compiled.estimated_cost;
  if (compiled.program == nullptr) {
    made.fault = SelectorFault::invalid;
    made.message = cat("compilation failed: ", cel::format_issues(expression, compiled.issues));
    made.issues = std::move(compiled.issues);
    return made;
  }
  if (!is_selector_type(compiled.type, environment)) {
    made.fault = SelectorFault::invalid;
    made.message =
        cat("must evaluate to bool or the unknown type, not ", compiled.type.full_name());
    return made;
  }
  if (!compiled.program->constant_error.empty()) {
    made.fault = SelectorFault::internal;
    made.message = cat("program instantiation failed: ", compiled.program->constant_error);
    return made;
  }
  made.program = std::move(compiled.program);
  if (release >= kLimitsSince && made.estimated_cost > kSelectorCostLimit) {
    made.fault = SelectorFault::too_costly;
    made.message = "too complex, exceeds cost limit";
  }
  return made;
}

void validate_selector(std::string_view expression, const SelectorEnvironment& environment,
                       const Path& path, FieldErrors& errors) {
  const Selector selector = compile_selector(expression, environment);
  switch (selector.fault) {
    case SelectorFault::none:
      return;
    case SelectorFault::too_long:
      return errors.too_long(path, kSelectorLengthLimit);
    case SelectorFault::invalid:
      return errors.invalid(path, expression, selector.message);
    case SelectorFault::internal:
      return errors.internal(path, selector.message);
    case SelectorFault::too_costly:
      return errors.forbidden(path, selector.message);
  }
}

}  // namespace dibs::api
