#include "cel/check/checker.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "cel/check/unify.h"
#include "cel/environment.h"
#include "cel/recursion.h"

namespace dibs::cel {

namespace {

struct Local {
  std::uint32_t name;
  std::uint32_t slot;
  Type type;
};

Type type_of_constant(const Value& value) {
  switch (value.kind()) {
    case Kind::boolean:
      return TypeKind::boolean;
    case Kind::integer:
      return TypeKind::integer;
    case Kind::uinteger:
      return TypeKind::uinteger;
    case Kind::real:
      return TypeKind::real;
    case Kind::string:
      return TypeKind::string;
    case Kind::bytes:
      return TypeKind::bytes;
    default:
      return TypeKind::null;
  }
}

class Checker {
 public:
  Checker(const Environment& environment, const Ast& ast, std::vector<Issue>& issues)
      : environment_(environment), ast_(ast), issues_(issues) {
    checked_.nodes.resize(ast.size());
  }

  CheckedAst run() {
    visit(ast_.root);
    for (NodeFacts& facts : checked_.nodes) facts.type = unifier_.resolve(facts.type, true);
    checked_.type = checked_.nodes[ast_.root].type;
    checked_.as_in_go = environment_.options.as_in_go;
    checked_.or_of_anything = environment_.options.or_of_anything;
    return std::move(checked_);
  }

 private:
  NodeFacts& facts(NodeId id) { return checked_.nodes[id]; }

  void issue(const AstNode& node, std::string message) {
    if (!environment_.options.unchecked) issues_.push_back({node.position, std::move(message)});
  }

  const Type& visit(NodeId id) {
    const AstNode& node = ast_.node(id);
    Type type;
    switch (node.kind) {
      case NodeKind::constant:
        type = type_of_constant(ast_.constant(node));
        break;
      case NodeKind::ident:
        type = ident(id, node);
        break;
      case NodeKind::select:
        type = select(id, node);
        break;
      case NodeKind::call:
        type = call(id, node);
        break;
      case NodeKind::list:
        type = list(node);
        break;
      case NodeKind::map:
        type = map(node);
        break;
      case NodeKind::message:
        type = message(id, node);
        break;
      case NodeKind::fold:
        type = fold(id, node);
        break;
      case NodeKind::bind:
        type = bind(id, node);
        break;
      case NodeKind::opt_map:
        type = opt_map(id, node);
        break;
    }
    facts(id).type = std::move(type);
    return facts(id).type;
  }

  Type known(const Type& type) { return unifier_.resolve(type, false); }
  std::string show(const Type& type) { return unifier_.resolve(type, true).str(); }
  /// With what is not known yet by its number.
  std::string show_open(const Type& type) { return unifier_.resolve(type, false).str(); }

  const Local* find_local(std::uint32_t name) const {
    for (std::size_t i = locals_.size(); i > 0; --i) {
      if (locals_[i - 1].name == name) return &locals_[i - 1];
    }
    return nullptr;
  }

  std::uint32_t declare(std::uint32_t name, Type type) {
    locals_.push_back({name, checked_.slots, std::move(type)});
    return checked_.slots++;
  }

  /// Fills in what a name stands for, if anything.
  bool refer(NodeId id, const std::string& name) {
    for (const std::string& candidate : environment_.candidates(name)) {
      const std::ptrdiff_t variable = environment_.find_variable(candidate);
      if (variable >= 0) {
        facts(id).reference = Reference::variable;
        facts(id).index = static_cast<std::uint32_t>(variable);
        facts(id).type = environment_.variable_type(facts(id).index);
        return true;
      }
      if (const Type* type = environment_.find_type(candidate)) {
        facts(id).reference = Reference::type;
        facts(id).text = candidate;
        facts(id).type = Type::of_type(*type);
        return true;
      }
      if (environment_.find_object(candidate) != nullptr) {
        facts(id).reference = Reference::object_type;
        facts(id).text = candidate;
        facts(id).type = Type::of_type({TypeKind::object, candidate});
        return true;
      }
    }
    return false;
  }

  DIBS_OWN_FRAME Type ident(NodeId id, const AstNode& node) {
    const Local* local = node.rooted ? nullptr : find_local(node.name);
    if (local != nullptr) {
      facts(id).reference = Reference::local;
      facts(id).index = local->slot;
      return local->type;
    }
    const std::string& name = ast_.name(node);
    if (refer(id, node.rooted ? cat(".", name) : name)) return facts(id).type;
    facts(id).reference = Reference::unresolved;
    facts(id).text = cat("undeclared reference to '", node.rooted ? "." : "", name,
                         "' (in container '", environment_.options.container, "')");
    issue(node, facts(id).text);
    return environment_.options.unchecked ? TypeKind::dyn : TypeKind::error;
  }

  /// "a.b.c" for such a chain whose first name is no local variable, else "".
  std::string qualified_name(NodeId id) const {
    const AstNode& node = ast_.node(id);
    if (node.kind == NodeKind::ident) {
      if (!node.rooted && find_local(node.name) != nullptr) return "";
      return cat(node.rooted ? "." : "", ast_.name(node));
    }
    if (node.kind != NodeKind::select || node.test_only || node.optional) return "";
    const std::string operand = qualified_name(ast_.child(node, 0));
    return operand.empty() ? "" : cat(operand, ".", ast_.name(node));
  }

  DIBS_OWN_FRAME Type select(NodeId id, const AstNode& node) {
    const std::string qualified = qualified_name(id);
    if (!qualified.empty() && refer(id, qualified)) return facts(id).type;
    Type operand = known(visit(ast_.child(node, 0)));
    const bool chained = operand.is_optional();
    if (chained) operand = known(operand.parameter(0));
    Type made = field_type(node, operand);
    if (node.test_only) return TypeKind::boolean;
    return chained || node.optional ? Type::optional(made) : made;
  }

  Type field_type(const AstNode& node, const Type& operand) {
    switch (operand.kind()) {
      case TypeKind::map:
        return operand.parameter(1);
      case TypeKind::object: {
        const ObjectType* object = environment_.find_object(operand.name());
        if (object == nullptr) {
          issue(node, cat("unexpected failed resolution of '", operand.name(), "'"));
          return TypeKind::error;
        }
        const auto found = object->fields.find(ast_.name(node));
        if (found != object->fields.end()) return found->second;
        if (object->open) return TypeKind::dyn;
        issue(node, cat("undefined field '", ast_.name(node), "'"));
        return TypeKind::error;
      }
      case TypeKind::parameter:
        unifier_.assignable(TypeKind::dyn, operand);
        return TypeKind::dyn;
      case TypeKind::dyn:
      case TypeKind::any:
      case TypeKind::error:
        return TypeKind::dyn;
      default:
        issue(node, cat("type '", show_open(operand), "' does not support field selection"));
        return TypeKind::dyn;
    }
  }

  bool expect(const AstNode& at, const Type& expected, const Type& found) {
    if (unifier_.assignable(expected, found)) return true;
    issue(at, cat("expected type '", expected.str(), "' but found '", found.str(), "'"));
    return false;
  }

  DIBS_OWN_FRAME Type call(NodeId id, const AstNode& node) {
    const std::string& name = ast_.name(node);
    if (name == "_&&_" || name == "_||_") {
      // There a chain is a balanced tree of pairs; only what is wrong at its root is seen above.
      const std::size_t pairs = node.count - 1;
      const std::size_t root = pairs / 2;
      bool fits = true;
      for (std::size_t i = 0; i < node.count; ++i) {
        const NodeId term = ast_.child(node, i);
        const bool fit = expect(ast_.node(term), TypeKind::boolean, visit(term));
        const bool at_root = (root == 0 && i == 0) || (root == pairs - 1 && i == node.count - 1);
        if (at_root) fits = fit && fits;
      }
      return fits || environment_.options.unchecked ? TypeKind::boolean : TypeKind::error;
    }
    NodeFacts& found = facts(id);
    found.function = function_of(id, node);
    const std::size_t first = found.namespaced ? 1 : 0;
    std::vector<Type> arguments;
    for (std::size_t i = first; i < node.count; ++i)
      arguments.push_back(visit(ast_.child(node, i)));
    if (facts(id).function == nullptr) {
      facts(id).reference = Reference::unresolved;
      facts(id).text = cat("undeclared reference to '", name, "' (in container '",
                           environment_.options.container, "')");
      issue(node, facts(id).text);
      return environment_.options.unchecked ? TypeKind::dyn : TypeKind::error;
    }
    facts(id).reference = Reference::function;
    return resolve_overload(id, node, arguments);
  }

  const Function* function_of(NodeId id, const AstNode& node) {
    const std::string& name = ast_.name(node);
    if (node.receiver) {
      const std::string prefix = qualified_name(ast_.child(node, 0));
      if (!prefix.empty()) {
        for (const std::string& candidate : environment_.candidates(cat(prefix, ".", name))) {
          if (const Function* function = environment_.find_function(candidate)) {
            facts(id).namespaced = true;
            return function;
          }
        }
      }
      return environment_.find_function(name);
    }
    for (const std::string& candidate : environment_.candidates(name)) {
      if (const Function* function = environment_.find_function(candidate)) return function;
    }
    return nullptr;
  }

  Type resolve_overload(NodeId id, const AstNode& node, const std::vector<Type>& arguments) {
    const bool receiver = node.receiver && !facts(id).namespaced;
    bool matched = false;
    Type result;
    const Function& function = *facts(id).function;
    for (const Overload& overload : function.overloads) {
      if (overload.receiver != receiver) continue;
      std::unordered_map<std::string, Type> names;
      for (const std::string& parameter : overload.type_parameters)
        names.emplace(parameter, unifier_.fresh());
      if (!overload.takes(receiver, arguments.size())) continue;
      if (matched && overload.catches_all()) continue;
      if (environment_.options.unchecked) {
        facts(id).overloads.push_back(&overload);
        continue;
      }
      std::vector<Type> parameters;
      for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::size_t at = std::min(i, overload.parameters.size() - 1);
        parameters.push_back(unifier_.instantiate(overload.parameters[at], names));
      }
      // In this order a parameter of the function becomes what is known of the argument.
      if (!unifier_.assignable(arguments, parameters)) continue;
      facts(id).overloads.push_back(&overload);
      const Type found = known(unifier_.instantiate(overload.result, names));
      if (!matched)
        result = found;
      else if (!result.is_dyn() && !(known(result) == found))
        result = TypeKind::dyn;
      matched = true;
    }
    if (matched || environment_.options.unchecked) return result;
    no_overload(node, function.name, receiver, arguments);
    return TypeKind::error;
  }

  void no_overload(const AstNode& node, std::string_view name, bool receiver,
                   const std::vector<Type>& arguments) {
    std::string shown;
    for (std::size_t i = receiver ? 1 : 0; i < arguments.size(); ++i)
      append(shown, shown.empty() ? "" : ", ", show(arguments[i]));
    issue(node, cat("found no matching overload for '", name, "' applied to '",
                    receiver ? cat(show(arguments[0]), ".") : "", "(", shown, ")'"));
  }

  /// The type for elements that were `before` and now hold `next` too.
  Type join(const Type* before, const Type& next) {
    if (before == nullptr) return next;
    const Type first = known(*before);
    const Type second = known(next);
    if (unifier_.assignable(first, second)) return most_general(known(first), known(second));
    return TypeKind::dyn;
  }

  /// The type of an element; the content where it is written as optional.
  Type element(const AstNode& parent, std::size_t i, bool optional) {
    const NodeId id = ast_.child(parent, i);
    Type type = visit(id);
    if (!optional) return type;
    const Type resolved = known(type);
    if (resolved.is_optional()) return resolved.parameter(0);
    if (!resolved.is_dyn())
      issue(ast_.node(id),
            cat("expected type '", Type::optional(type).str(), "' but found '", type.str(), "'"));
    return type;
  }

  DIBS_OWN_FRAME Type list(const AstNode& node) {
    bool any = false;
    Type joined;
    for (std::size_t i = 0; i < node.count; ++i) {
      const Type type = element(node, i, ast_.child_is_optional(node, i));
      joined = join(any ? &joined : nullptr, type);
      any = true;
    }
    return Type::list(any ? joined : unifier_.fresh());
  }

  DIBS_OWN_FRAME Type map(const AstNode& node) {
    if (node.count == 0) {
      Type key = unifier_.fresh();
      return Type::map(std::move(key), unifier_.fresh());
    }
    Type keys;
    Type values;
    for (std::size_t i = 0; i < node.count; i += 2) {
      const Type key = element(node, i, false);
      keys = join(i == 0 ? nullptr : &keys, key);
      const Type value = element(node, i + 1, ast_.child_is_optional(node, i));
      values = join(i == 0 ? nullptr : &values, value);
    }
    return Type::map(keys, values);
  }

  DIBS_OWN_FRAME Type message(NodeId id, const AstNode& node) {
    const bool declared = refer(id, ast_.name(node));
    const Type type = facts(id).type;
    facts(id).reference = Reference::unresolved;
    if (!declared) {
      facts(id).text = cat("undeclared reference to '", ast_.name(node), "' (in container '",
                           environment_.options.container, "')");
      issue(node, facts(id).text);
      return TypeKind::error;
    }
    const bool object = type.is(TypeKind::type) && type.parameter(0).is(TypeKind::object);
    const ObjectType* made = object ? environment_.find_object(type.parameter(0).name()) : nullptr;
    if (made != nullptr && made->construct != nullptr) {
      facts(id).reference = Reference::constructed;
      facts(id).construct = made->construct;
    } else {
      // Most objects have a type that can be checked, but no expression can make one.
      facts(id).text = cat("unknown type '", facts(id).text, "'");
    }
    if (!type.is(TypeKind::type))
      issue(node, cat("'", type.full_name(), "' is not a type"));
    else if (!object)
      issue(node, cat("'", type.parameter(0).full_name(), "' is not a message type"));
    for (std::size_t i = 0; i < node.count; i += 2) message_field(node, i, made);
    return object ? type.parameter(0) : TypeKind::error;
  }

  void message_field(const AstNode& node, std::size_t i, const ObjectType* object) {
    const AstNode& key = ast_.node(ast_.child(node, i));
    const Type value = element(node, i + 1, ast_.child_is_optional(node, i));
    if (object == nullptr) return;
    const std::string name(ast_.constant(key).text());
    const auto found = object->fields.find(name);
    if (found == object->fields.end() && object->open) return;
    if (found == object->fields.end())
      issue(key, cat("undefined field '", name, "'"));
    else if (!unifier_.assignable(found->second, value))
      issue(key, cat("expected type of field '", name, "' is '", show(found->second),
                     "' but provided type is '", show(value), "'"));
  }

  /// The types of a loop's variables over a range.
  std::pair<Type, Type> loop_types(const AstNode& at, const Type& range, bool two) {
    const Type type = known(range);
    switch (type.kind()) {
      case TypeKind::list:
        if (two) return {TypeKind::integer, type.parameter(0)};
        return {type.parameter(0), TypeKind::dyn};
      case TypeKind::map:
        return {type.parameter(0), type.parameter(1)};
      case TypeKind::parameter:
        unifier_.assignable(TypeKind::dyn, type);
        return {};
      case TypeKind::dyn:
      case TypeKind::error:
        return {};
      default:
        issue(at, cat("expression of type '", type.str(),
                      "' cannot be range of a comprehension (must be list, map, or dynamic)"));
        return {TypeKind::error, TypeKind::error};
    }
  }

  /// What a loop builds: a list, a map, or neither.
  static bool builds_list(Fold fold) {
    return fold == Fold::map || fold == Fold::filter || fold == Fold::sort_by;
  }
  static bool builds_map(Fold fold) {
    return fold == Fold::transform_map || fold == Fold::transform_map_entry;
  }

  DIBS_OWN_FRAME Type fold(NodeId id, const AstNode& node) {
    const NodeId range = ast_.child(node, 0);
    const bool two = node.name2 != kNoName;
    if (node.fold == Fold::sort_by) unifier_.skip(1);  // it is a bind around a loop
    const Type over = visit(range);
    auto [first, second] =
        loop_types(node.fold == Fold::sort_by ? node : ast_.node(range), over, two);
    const Type element = first;
    // The accumulator: an empty list, or an empty map.
    unifier_.skip(builds_list(node.fold) ? 1 : builds_map(node.fold) ? 2 : 0);
    const std::size_t outer = locals_.size();
    facts(id).slot = declare(node.name, std::move(first));
    if (two) facts(id).slot2 = declare(node.name2, std::move(second));
    const NodeId predicate = ast_.child(node, 1);
    const NodeId transform = ast_.child(node, 2);
    const bool decides = node.fold == Fold::all || node.fold == Fold::exists;
    Type condition = TypeKind::boolean;
    if (predicate != kNoNode) condition = visit(predicate);
    if (decides) expect(ast_.node(predicate), TypeKind::boolean, condition);
    Type made;
    if (transform != kNoNode) made = visit(transform);
    locals_.resize(outer);
    // The step: an addition or insertion, maybe in a condition.
    unifier_.skip(decides ? 0 : builds_map(node.fold) ? 4 : 1);
    if (predicate != kNoNode && !decides) unifier_.skip(1);
    if (node.fold == Fold::exists_one) unifier_.skip(1);
    const Type built = loop_type(node, over, element, made);
    if (decides || built.is(TypeKind::error) || unifier_.assignable(TypeKind::boolean, condition))
      return built;
    const Type kept = node.fold == Fold::exists_one ? Type(TypeKind::integer) : built;
    no_overload(node, "_?_:_", false, {condition, kept, kept});
    return TypeKind::error;
  }

  Type loop_type(const AstNode& node, const Type& over, const Type& element, const Type& made) {
    switch (node.fold) {
      case Fold::map:
        return known(Type::list(made));
      case Fold::filter:
        return known(Type::list(element));
      case Fold::sort_by:
        return sorted(node, known(over), known(made));
      case Fold::transform_map: {
        return known(Type::map(element, made));
      }
      case Fold::transform_map_entry: {
        const Type type = known(made);
        if (type.is(TypeKind::map) || type.is_dyn() || type.is(TypeKind::error))
          return type.is(TypeKind::map) ? type : Type::map({}, {});
        no_overload(node, "cel.@mapInsert", false, {Type::map({}, {}), type});
        return TypeKind::error;
      }
      default:
        return TypeKind::boolean;
    }
  }

  /// Keys must be of one of the types that have an order; the reference implementation has a
  /// function for each of them.
  Type sorted(const AstNode& node, const Type& over, const Type& key) {
    constexpr TypeKind kOrdered[] = {TypeKind::integer, TypeKind::uinteger, TypeKind::real,
                                     TypeKind::boolean, TypeKind::duration, TypeKind::timestamp,
                                     TypeKind::string,  TypeKind::bytes};
    unifier_.skip(std::size(kOrdered));
    const bool list = over.is(TypeKind::list) || over.is_dyn() || over.is(TypeKind::error) ||
                      over.is(TypeKind::parameter);
    const bool open = key.is_dyn() || key.is(TypeKind::error) || key.is(TypeKind::parameter) ||
                      key.is(TypeKind::null);
    const bool ordered =
        std::find(std::begin(kOrdered), std::end(kOrdered), key.kind()) != std::end(kOrdered);
    if (!list || (!open && !ordered)) {
      no_overload(node, "@sortByAssociatedKeys", true, {over, Type::list(key)});
      return TypeKind::error;
    }
    // Nothing known of a key: the first of the functions takes it.
    if (key.is(TypeKind::parameter)) unifier_.assignable(TypeKind::integer, key);
    if (over.is(TypeKind::list)) return known(over);
    return open ? Type() : Type::list({});
  }

  DIBS_OWN_FRAME Type bind(NodeId id, const AstNode& node) {
    unifier_.skip(1);  // a loop over nothing
    const Type bound = visit(ast_.child(node, 0));
    const std::size_t outer = locals_.size();
    facts(id).slot = declare(node.name, bound);
    const Type type = visit(ast_.child(node, 1));
    locals_.resize(outer);
    return known(type);
  }

  /// As its expansion: t.hasValue() ? optional.of(bind(x, t.value(), body)) : optional.none().
  DIBS_OWN_FRAME Type opt_map(NodeId id, const AstNode& node) {
    const std::size_t issues = issues_.size();
    const std::size_t parameters = unifier_.made();
    const Type target = visit(ast_.child(node, 0));
    const std::size_t own = issues_.size();
    option_content(node, target, "hasValue");
    unifier_.skip(1);
    repeat_issues(issues, own);
    unifier_.skip(unifier_.made() - parameters - 2);
    Type value = known(option_content(node, target, "value"));
    const std::size_t outer = locals_.size();
    facts(id).slot = declare(node.name, std::move(value));
    const NodeId body = ast_.child(node, 1);
    const Type type = visit(body);
    locals_.resize(outer);
    if (!node.flat) {
      unifier_.skip(3);
      return known(Type::optional(type));
    }
    const Type none = Type::optional(unifier_.fresh());
    unifier_.skip(1);
    if (unifier_.assignable(none, type)) return known(none);
    no_overload(node, "_?_:_", false, {TypeKind::boolean, type, none});
    return TypeKind::error;
  }

  Type option_content(const AstNode& node, const Type& target, std::string_view function) {
    Type content = unifier_.fresh();
    if (unifier_.assignable(target, Type::optional(content))) return content;
    no_overload(node, function, true, {target});
    return TypeKind::error;
  }

  /// What is named twice in an expansion is refused twice.
  void repeat_issues(std::size_t from, std::size_t end) {
    constexpr std::size_t kEnough = 100;
    for (std::size_t i = from; i < end && issues_.size() < kEnough; ++i)
      issues_.push_back(Issue(issues_[i]));
  }

  const Environment& environment_;
  const Ast& ast_;
  std::vector<Issue>& issues_;
  CheckedAst checked_;
  Unifier unifier_;
  std::vector<Local> locals_;
};

}  // namespace

CheckedAst check(const Environment& environment, const Ast& ast, std::vector<Issue>& issues) {
  return Checker(environment, ast, issues).run();
}

}  // namespace dibs::cel
