#include "api/expressions/crd_checker.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "api/expressions/crd_programs.h"
#include "api/expressions/crd_validator.h"
#include "api/schema/builtin.h"
#include "api/schema/go_print.h"
#include "base/strings.h"
#include "cel/cost/cost.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::uint64_t kRuleLimit = 10'000'000;
constexpr std::uint64_t kDefinitionLimit = 100'000'000;
constexpr std::size_t kMostExpensive = 4;

/// How often a value can occur in one object; nothing where only the size of a request bounds it.
using Cardinality = std::optional<std::uint64_t>;

Cardinality times(const Cardinality& a, const Cardinality& b) {
  if (!a || !b) return std::nullopt;
  return cel::saturated_multiply(*a, *b);
}

/// How many of each child a value of the schema has.
Cardinality children_of(const Value& schema) {
  const auto limit = [&](std::string_view key) -> Cardinality {
    if (!schema[key].is_number()) return std::nullopt;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(schema[key].as_int(), 0));
  };
  const std::string_view type = schema["type"].as_string();
  if (type == "array") return limit("maxItems");
  if (type == "object" && !schema["additionalProperties"].is_null()) return limit("maxProperties");
  return 1;
}

std::string cost_fault(std::string_view what, std::uint64_t cost, std::uint64_t limit) {
  const double factor = static_cast<double>(cost) / static_cast<double>(limit);
  char shown[64] = "more than 100x";
  if (factor <= 100) std::snprintf(shown, sizeof shown, factor < 1.5 ? "%fx" : "%.1fx", factor);
  return cat(what, " exceeds budget by factor of ", static_cast<const char*>(shown),
             " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where "
             "arrays, maps, and strings are declared)");
}

/// One walk over the schema of a version.
class Checker {
 public:
  Checker(const CelCheck& check, FieldErrors& errors) : check_(check), errors_(errors) {}

  void run() {
    root_ = make_typed_schema(check_.schema, true, "selfType");
    compiler_ = std::make_unique<RuleCompiler>(*root_);
    visit(check_.schema, root_.get(), check_.path, 1, nullptr);
    if (total_ <= kDefinitionLimit) return;
    for (const auto& [path, cost] : expensive_) {
      errors_.forbidden(Path(path),
                        "contributed to estimated rule cost total exceeding cost limit for entire "
                        "OpenAPIv3 schema");
    }
    errors_.forbidden(check_.path,
                      cost_fault("x-kubernetes-validations estimated rule cost total for entire "
                                 "OpenAPIv3 schema",
                                 total_, kDefinitionLimit));
  }

 private:
  /// `uncorrelated`: the outermost list whose items have no past, or null.
  void visit(const Value& schema, const TypedSchema* typed, const Path& path,
             const Cardinality& cardinality, const Path* uncorrelated) {
    const Cardinality inside = times(cardinality, children_of(schema));
    if (const Value& values = schema["additionalProperties"]; values.is_object()) {
      visit(values, typed == nullptr ? nullptr : typed->values.get(),
            path.child("additionalProperties"), inside, uncorrelated);
    }
    const Path properties = path.child("properties");
    for (const auto& [name, property] : schema["properties"].members()) {
      const TypedSchema* child = nullptr;
      if (typed != nullptr) {
        const auto found = typed->properties.find(name);
        if (found != typed->properties.end()) child = found->second.get();
      }
      visit(property, child, properties.key(name), inside, uncorrelated);
    }
    if (const Value& items = schema["items"]; items.is_object()) {
      const bool keyed = schema["x-kubernetes-list-type"].as_string() == "map";
      visit(items, typed == nullptr ? nullptr : typed->items.get(), path.child("items"), inside,
            uncorrelated != nullptr || keyed ? uncorrelated : &path);
    }
    if (!schema["x-kubernetes-validations"].empty() && !has_faults(path))
      check_rules(schema, typed, path, cardinality, uncorrelated);
  }

  /// Something else is wrong at the schema or below it.
  bool has_faults(const Path& path) const {
    if (check_.faults.empty()) return false;
    const std::string prefix = path.str();
    return std::any_of(
        check_.faults.errors().begin(), check_.faults.errors().end(), [&](const FieldError& fault) {
          if (!fault.field.starts_with(prefix)) return false;
          const std::size_t end = prefix.size();
          return fault.field.size() == end || fault.field[end] == '.' || fault.field[end] == '[';
        });
  }

  void check_rules(const Value& schema, const TypedSchema* typed, const Path& path,
                   const Cardinality& cardinality, const Path* uncorrelated) {
    const Path rules = path.child("x-kubernetes-validations");
    std::unique_ptr<TypedSchema> alone;
    if (typed == nullptr) {
      // Below what has no type there may be something that has one.
      alone =
          make_typed_schema(schema, schema["x-kubernetes-embedded-resource"].as_bool(), "selfType");
      typed = alone.get();
    }
    if (!typed->has_type) {
      errors_.internal(rules,
                       "internal error: failed to construct type information for "
                       "x-kubernetes-validations rules: unable to convert structural schema to "
                       "CEL declarations");
      return;
    }
    // Where no limit is declared, what fits into a request counts.
    const std::uint64_t often = cardinality.value_or(kMaxRequestBytes / (typed->min_bytes + 1));
    const std::vector<RuleProgram> programs =
        alone ? RuleCompiler(*alone).compile(*alone) : compiler_->compile(*typed);
    for (std::size_t i = 0; i < programs.size(); ++i)
      check_rule(programs[i], rules.index(i), often, uncorrelated);
  }

  void check_rule(const RuleProgram& program, const Path& path, std::uint64_t often,
                  const Path* uncorrelated) {
    const Path rule = path.child("rule");
    const Path message = path.child("messageExpression");
    const std::uint64_t cost = cel::saturated_multiply(program.cost, often);
    if (!check_.is_stored && cost > kRuleLimit)
      errors_.forbidden(rule, cost_fault("estimated rule cost", cost, kRuleLimit));
    observe(rule, cost);
    if (!program.error.empty()) invalid(rule, program, program.error);
    if (!program.message_error.empty()) {
      invalid(message, program, program.message_error);
    } else if (program.message != nullptr) {
      if (!check_.is_stored && program.message_cost > kRuleLimit) {
        errors_.forbidden(message, cost_fault("estimated messageExpression cost",
                                              program.message_cost, kRuleLimit));
      }
      observe(message, program.message_cost);
    }
    if (program.is_transition) {
      if (uncorrelated != nullptr) {
        errors_.invalid(rule, program.rule["rule"],
                        cat("oldSelf cannot be used on the uncorrelatable portion of the schema "
                            "within ",
                            uncorrelated->str()));
      }
    } else if (const Value& optional = program.rule["optionalOldSelf"]; !optional.is_null()) {
      errors_.invalid(path.child("optionalOldSelf"), optional,
                      "may not be set if oldSelf is not used in rule");
    }
  }

  void invalid(const Path& path, const RuleProgram& program, std::string_view detail) {
    errors_.invalid(path, go_form(program.rule, *builtin_type("apiextensions/v1.ValidationRule")),
                    detail);
  }

  void observe(const Path& path, std::uint64_t cost) {
    total_ = cel::saturated_add(total_, cost);
    if (cost < kDefinitionLimit / 100) return;
    expensive_.emplace_back(path.str(), cost);
    std::stable_sort(expensive_.begin(), expensive_.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (expensive_.size() > kMostExpensive) expensive_.resize(kMostExpensive);
  }

  const CelCheck& check_;
  FieldErrors& errors_;
  std::unique_ptr<TypedSchema> root_;
  std::unique_ptr<RuleCompiler> compiler_;
  std::uint64_t total_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> expensive_;
};

}  // namespace

CelChecker make_cel_checker() {
  CelChecker made;
  made.rules = [](const CelCheck& check, FieldErrors& errors) { Checker(check, errors).run(); };
  made.defaults = judge_default;
  return made;
}

}  // namespace dibs::api
