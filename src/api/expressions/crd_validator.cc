#include "api/expressions/crd_validator.h"

#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/expressions/crd_programs.h"
#include "api/expressions/typed_values.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

constexpr std::size_t kMaxMessage = 5 * 1024;
constexpr std::string_view kOutOfBudget =
    "validation failed due to running out of cost budget, no further validation rules will be run";
constexpr std::string_view kLimitPassed = "operation cancelled: actual cost limit exceeded";

/// The rules of a schema and of what is inside it, where there are any.
struct RuleNode {
  const TypedSchema* schema = nullptr;
  std::vector<RuleProgram> rules;
  bool has_transitions = false;
  std::map<std::string, std::unique_ptr<RuleNode>, std::less<>> properties;
  std::unique_ptr<RuleNode> items;
  std::unique_ptr<RuleNode> values;
};

/// Null when there is no rule at the schema or below it. Values that expressions cannot see have
/// none.
std::unique_ptr<RuleNode> make_node(const TypedSchema& schema, RuleCompiler& compiler) {
  if (!schema.has_type) return nullptr;
  auto made = std::make_unique<RuleNode>();
  made->schema = &schema;
  if (!schema.rules().empty()) made->rules = compiler.compile(schema);
  for (const RuleProgram& rule : made->rules)
    made->has_transitions = made->has_transitions || rule.is_transition;
  if (schema.items) made->items = make_node(*schema.items, compiler);
  if (schema.values) made->values = make_node(*schema.values, compiler);
  for (const auto& [name, property] : schema.properties) {
    if (auto node = make_node(*property, compiler)) made->properties[name] = std::move(node);
  }
  const bool empty = made->rules.empty() && !made->items && !made->values;
  return empty && made->properties.empty() ? nullptr : std::move(made);
}

/// Everything compiled for one schema.
struct RuleTree {
  std::unique_ptr<TypedSchema> types;
  std::unique_ptr<RuleCompiler> compiler;
  std::unique_ptr<RuleNode> root;
};

RuleTree make_tree(const Value& schema, bool is_resource) {
  RuleTree tree;
  tree.types = make_typed_schema(schema, is_resource, "selfType");
  tree.compiler = std::make_unique<RuleCompiler>(*tree.types);
  tree.root = make_node(*tree.types, *tree.compiler);
  return tree;
}

bool has_rules(const Value& schema) {
  bool found = false;
  for_each_schema(schema, [&](const Value& part) {
    found = found || !part["x-kubernetes-validations"].empty();
  });
  return found;
}

/// The items of an old keyed list, by their keys.
class OldItems {
 public:
  OldItems(const Value& schema, const Value& items) {
    if (schema["x-kubernetes-list-type"].as_string() != "map") return;
    keys_ = &schema["x-kubernetes-list-map-keys"];
    for (const Value& item : items.items()) {
      std::string key;
      if (identity(item, key)) by_key_.emplace(std::move(key), &item);
    }
  }

  /// Null when there was none.
  const Value* find(const Value& item) const {
    std::string key;
    if (by_key_.empty() || !identity(item, key)) return nullptr;
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : found->second;
  }

 private:
  bool identity(const Value& item, std::string& made) const {
    for (const Value& key : keys_->items()) {
      const Value* value = item.find(key.as_string());
      if (value == nullptr || value->is_null() || value->is_object() || value->is_array())
        return false;
      json::write_to(made, *value);
      made.push_back(',');
    }
    return !keys_->empty();
  }

  const Value* keys_ = &json::null_value();
  std::unordered_map<std::string, const Value*> by_key_;
};

/// A value and the one that it continues, as the definition declares them. Lives on the stack of
/// the walk.
struct Past {
  const Value* schema = nullptr;  // null: nothing is known of what was there
  const Value* value = nullptr;
  const Value* old = nullptr;
  mutable std::optional<bool> same = std::nullopt;

  Past member(std::string_view name) const {
    if (schema == nullptr || !value->is_object() || !old->is_object()) return {};
    const Value* now = value->find(name);
    const Value* before = old->find(name);
    const Value* property = (*schema)["properties"].find(name);
    if (property == nullptr && (*schema)["additionalProperties"].is_object())
      property = &(*schema)["additionalProperties"];
    if (now == nullptr || before == nullptr || property == nullptr) return {};
    return {property, now, before};
  }

  Past item(const Value& now, const Value* before) const {
    if (schema == nullptr || before == nullptr || !(*schema)["items"].is_object()) return {};
    return {&(*schema)["items"], &now, before};
  }

  /// Equal in all that is declared; an object with members that are not never is.
  bool unchanged() const {
    if (schema == nullptr) return false;
    if (!same) same = compare();
    return *same;
  }

 private:
  bool compare() const {
    if (value->is_null() || old->is_null()) return value->is_null() && old->is_null();
    if (value->is_object() != old->is_object() || value->is_array() != old->is_array())
      return false;
    if (value->is_object()) {
      if (value->size() != old->size()) return false;
      for (const auto& [name, unused] : value->members()) {
        if (!member(name).unchanged()) return false;
      }
      return true;
    }
    if (value->is_array() && (*schema)["x-kubernetes-list-type"].as_string() == "map") {
      if (value->size() != old->size()) return false;
      const OldItems items(*schema, *old);
      for (const Value& now : value->items()) {
        if (!item(now, items.find(now)).unchanged()) return false;
      }
      return true;
    }
    return *value == *old;
  }
};

/// The past of a value, or that of the nearest value around it that has one.
struct Ratchet {
  const Past* current = nullptr;
  const Past* around = nullptr;

  bool forgives() const {
    if (current != nullptr && current->schema != nullptr) return current->unchanged();
    return around != nullptr && around->unchanged();
  }
};

std::string_view shown_rule(const Value& rule) {
  const std::string_view message = rule["message"].as_string();
  return trim(message.empty() ? rule["rule"].as_string() : message);
}

std::string default_message(const Value& rule) {
  if (!rule["message"].as_string().empty()) return std::string(trim(rule["message"].as_string()));
  return cat("failed rule: ", shown_rule(rule));
}

/// One walk over an object.
class Walk {
 public:
  Walk(FieldErrors& errors, std::int64_t budget) : errors_(errors), budget_(budget) {}

  std::int64_t budget() const { return budget_; }

  /// `old` is null where there was nothing.
  void visit(const RuleNode& node, const Value& value, const Value* old, const Path& path,
             const Ratchet& ratchet) {
    if (value.is_null()) return;
    if (old != nullptr && old->is_null()) old = nullptr;
    judge(node, value, old, path, ratchet);
    if (budget_ < 0) return;
    if (value.is_array()) {
      visit_items(node, value, old, path, ratchet);
    } else if (value.is_object()) {
      visit_members(node, value, old, path, ratchet);
    }
  }

 private:
  void visit_members(const RuleNode& node, const Value& value, const Value* old, const Path& path,
                     const Ratchet& ratchet) {
    for (const auto& [name, member] : value.members()) {
      const RuleNode* child = node.values.get();
      const bool is_property = child == nullptr;
      if (is_property) {
        const auto found = node.properties.find(name);
        if (found == node.properties.end()) continue;
        child = found->second.get();
      }
      const Value* before = old == nullptr ? nullptr : old->find(name);
      const Past past = ratchet.current == nullptr ? Past() : ratchet.current->member(name);
      visit(*child, member, before, is_property ? path.child(name) : path.key(name),
            inside(ratchet, past, name));
      if (budget_ < 0) return;
    }
  }

  void visit_items(const RuleNode& node, const Value& value, const Value* old, const Path& path,
                   const Ratchet& ratchet) {
    if (!node.items) return;
    const OldItems olds(node.schema->source, old == nullptr ? json::null_value() : *old);
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Value* before = olds.find(value[i]);
      const Past past =
          ratchet.current == nullptr ? Past() : ratchet.current->item(value[i], before);
      visit(*node.items, value[i], before, path.index(i), inside(ratchet, past, ""));
      if (budget_ < 0) return;
    }
  }

  static Ratchet inside(const Ratchet& outer, const Past& past, std::string_view name) {
    if (outer.current == nullptr || outer.current->schema == nullptr) return outer;
    // What says the version is not seen: both sides were converted to the same.
    if (outer.around == nullptr && (name == "apiVersion" || name == "kind")) return {};
    return {&past, outer.current};
  }

  void judge(const RuleNode& node, const Value& value, const Value* old, const Path& path,
             const Ratchet& ratchet) {
    if (node.rules.empty()) return;
    const std::string_view type = node.schema->declared_type();
    if (budget_ <= 0) return give_up(path, type, kOutOfBudget);
    cel::Value variables[2] = {typed_value(value, *node.schema), cel::Value()};
    const bool has_old = old != nullptr && node.has_transitions;
    if (has_old) variables[kOldSelf] = typed_value(*old, *node.schema);
    const std::span<const cel::Value> plain(variables, has_old ? 2 : 1);
    cel::Value optional[2] = {variables[kSelf],
                              has_old ? cel::Value::some(variables[kOldSelf]) : cel::Value::none()};
    for (const RuleProgram& rule : node.rules) {
      if (!rule.error.empty()) {
        errors_.invalid(path, type, cat("rule compile error: ", rule.error));
        continue;
      }
      if (rule.program == nullptr) continue;
      if (rule.is_transition && old == nullptr && !rule.is_optional) continue;
      const bool passed = evaluate(
          rule, rule.is_optional ? std::span<const cel::Value>(optional) : plain, path, type);
      if (budget_ < 0) return;
      if (!passed) fail(node, rule, value, plain, path, ratchet);
      if (budget_ < 0) return;
    }
  }

  /// Told once; nothing is judged after that.
  void give_up(const Path& path, std::string_view type, std::string_view detail) {
    errors_.invalid(path, type, detail);
    budget_ = -1;
  }

  /// False: the rule is broken. Rules that cannot be evaluated are told here and count as kept.
  bool evaluate(const RuleProgram& rule, std::span<const cel::Value> variables, const Path& path,
                std::string_view type) {
    cel::Limits limits;
    limits.cost = kEvaluationLimit;
    const cel::Evaluation made = rule.program->evaluate(variables, limits);
    if (!spend(made.cost)) {
      give_up(path, type, kOutOfBudget);
      return true;
    }
    if (!made.value.is_error()) return made.value.is_true();
    const std::string_view error = made.value.text();
    const std::string_view shown = shown_rule(rule.rule);
    if (error.starts_with("no such overload")) {
      errors_.invalid(path, type,
                      cat("'", error,
                          "': call arguments did not match a supported operator, function or macro "
                          "signature for rule: ",
                          shown));
    } else if (error.starts_with(kLimitPassed)) {
      give_up(path, type,
              cat("'", error,
                  "': no further validation rules will be run due to call cost exceeds limit for "
                  "rule: ",
                  shown));
    } else {
      errors_.invalid(path, type, cat(error, " evaluating rule: ", shown));
    }
    return true;
  }

  bool spend(std::uint64_t cost) {
    if (cost > static_cast<std::uint64_t>(budget_)) return false;
    budget_ -= static_cast<std::int64_t>(cost);
    return true;
  }

  void fail(const RuleNode& node, const RuleProgram& rule, const Value& value,
            std::span<const cel::Value> variables, const Path& path, const Ratchet& ratchet) {
    const Path field = path.child(rule.field_path);
    const Path& at = rule.field_path.empty() ? path : field;
    const bool forgiven = !rule.is_transition && ratchet.forgives();
    const std::string_view type = node.schema->declared_type();
    std::string message;
    if (rule.message != nullptr) {
      const std::string fault = evaluate_message(rule, variables, message);
      if (!fault.empty()) {
        tell(forgiven, Fault::invalid, at, cat("Invalid value: ", quoted(type), ": ", fault));
        budget_ = -1;
        return;
      }
    }
    if (message.empty()) message = default_message(rule.rule);
    const bool shows = type != "object" && type != "array";
    const std::string value_text = !shows ? ""
                                          : cat(": ", value.is_string() ? quoted(value.as_string())
                                                                        : json::write(value, true));
    const std::string_view reason = rule.rule["reason"].as_string();
    if (reason == "FieldValueForbidden") {
      tell(forgiven, Fault::forbidden, at, cat("Forbidden: ", message));
    } else if (reason == "FieldValueRequired") {
      tell(forgiven, Fault::required, at, cat("Required value: ", message));
    } else if (reason == "FieldValueDuplicate") {
      tell(forgiven, Fault::duplicate, at, cat("Duplicate value", value_text));
    } else {
      tell(forgiven, Fault::invalid, at, cat("Invalid value", value_text, ": ", message));
    }
  }

  void tell(bool forgiven, Fault fault, const Path& path, std::string text) {
    if (forgiven) {
      errors_.warn(cat(path.str(), ": ", text));
    } else {
      errors_.add(fault, path, std::move(text));
    }
  }

  /// Leaves `message` empty where the expression gives none that can be used. Returns why
  /// everything must end, or "".
  std::string evaluate_message(const RuleProgram& rule, std::span<const cel::Value> variables,
                               std::string& message) {
    cel::Limits limits;
    limits.cost = kEvaluationLimit;
    const cel::Evaluation made = rule.message->evaluate(variables, limits);
    if (made.cost > static_cast<std::uint64_t>(budget_)) {
      return "messageExpression evaluation failed due to running out of cost budget, no further "
             "validation rules will be run";
    }
    if (made.value.is_error() && made.value.text().starts_with(kLimitPassed)) {
      return cat(
          "no further validation rules will be run due to call cost exceeds limit for "
          "messageExpression: ",
          quoted(rule.rule["messageExpression"].as_string()));
    }
    spend(made.cost);
    if (!made.value.is(cel::Kind::string)) return "";
    const std::string_view text = trim(made.value.text());
    if (text.size() <= kMaxMessage && text.find('\n') == std::string_view::npos) message = text;
    return "";
  }

  FieldErrors& errors_;
  std::int64_t budget_;
};

}  // namespace

CelValidator make_cel_validator(const Value& schema) {
  if (!has_rules(schema)) return {};
  const auto tree = std::make_shared<const RuleTree>(make_tree(schema, true));
  if (!tree->root) return {};
  return [tree, schema](const Value& object, const Value* old, FieldErrors& errors) {
    Past past;
    if (old != nullptr) past = {&schema, &object, old};
    Walk(errors, kObjectBudget).visit(*tree->root, object, old, Path(), {&past, nullptr});
  };
}

void judge_default(const CelDefault& made, FieldErrors& errors) {
  if (!has_rules(made.schema)) return;
  const RuleTree tree = make_tree(made.schema, made.is_resource);
  if (!tree.root) return;
  const Value& value = made.schema["default"];
  const Past past;
  std::int64_t left = made.budget;
  const std::size_t before = errors.size();
  {
    Walk walk(errors, made.budget);
    walk.visit(*tree.root, value, &value, made.path, {&past, nullptr});
    left = walk.budget();
  }
  // Rules with an optional oldSelf must hold where there was nothing, too.
  if (errors.size() == before) {
    Walk walk(errors, made.budget);
    walk.visit(*tree.root, value, nullptr, made.path, {&past, nullptr});
    left = std::min(left, walk.budget());
  }
  made.budget = left;
}

}  // namespace dibs::api
