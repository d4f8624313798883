#include "cel/evaluate/program.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "cel/operations.h"
#include "cel/recursion.h"
#include "cel/regex.h"

namespace dibs::cel {

namespace {

struct NamedOp {
  std::string_view function;
  OpCode code;
};

constexpr NamedOp kOperators[] = {{"_&&_", OpCode::logical_and},
                                  {"_||_", OpCode::logical_or},
                                  {"_?_:_", OpCode::conditional},
                                  {"!_", OpCode::logical_not},
                                  {"-_", OpCode::negate},
                                  {"_+_", OpCode::add},
                                  {"_-_", OpCode::subtract},
                                  {"_*_", OpCode::multiply},
                                  {"_/_", OpCode::divide},
                                  {"_%_", OpCode::modulo},
                                  {"_==_", OpCode::equal},
                                  {"_!=_", OpCode::not_equal},
                                  {"_<_", OpCode::less},
                                  {"_<=_", OpCode::less_equal},
                                  {"_>_", OpCode::greater},
                                  {"_>=_", OpCode::greater_equal},
                                  {"@in", OpCode::in},
                                  {"_[_]", OpCode::index},
                                  {"_[?_]", OpCode::index_optional}};

constexpr std::string_view kConversions[] = {"bool", "bytes",  "double",    "duration", "dyn",
                                             "int",  "string", "timestamp", "type",     "uint"};

/// Calls of constants that happen once, here, though they are paid for each time. Unlike a failed
/// conversion, their failure waits for the evaluation.
constexpr std::string_view kFolded[] = {"quantity", "semver", "ip", "cidr", "url"};

constexpr std::uint64_t kMaxFoldedCost = 0xffffffff;

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class Builder {
 public:
  Builder(const Ast& ast, const CheckedAst& checked) : ast_(ast), checked_(checked) {}

  std::shared_ptr<const Program> run() {
    program_->slots = checked_.slots;
    program_->as_in_go = checked_.as_in_go;
    program_->or_of_anything = checked_.or_of_anything;
    program_->root = build(ast_.root);
    return std::move(program_);
  }

 private:
  std::uint32_t add(Op op, const std::vector<std::uint32_t>& children,
                    const std::vector<bool>& optional = {}) {
    op.first = static_cast<std::uint32_t>(program_->children.size());
    op.count = static_cast<std::uint32_t>(children.size());
    for (std::size_t i = 0; i < children.size(); ++i) {
      program_->children.push_back(children[i]);
      program_->optional_children.push_back(i < optional.size() && optional[i]);
    }
    program_->ops.push_back(op);
    return static_cast<std::uint32_t>(program_->ops.size() - 1);
  }

  std::uint32_t constant(Value value, OpCode code = OpCode::constant) {
    Op op;
    op.code = code;
    op.index = static_cast<std::uint32_t>(program_->constants.size());
    program_->constants.push_back(std::move(value));
    return add(op, {});
  }

  bool is_constant(std::uint32_t op) const { return program_->ops[op].code == OpCode::constant; }
  const Value& constant_of(std::uint32_t op) const {
    return program_->constants[program_->ops[op].index];
  }

  std::uint32_t build(NodeId id) {
    const AstNode& node = ast_.node(id);
    const NodeFacts& facts = checked_.nodes[id];
    switch (facts.reference) {
      case Reference::variable:
      case Reference::local: {
        Op op;
        op.code = facts.reference == Reference::local ? OpCode::local : OpCode::variable;
        op.attribute = true;
        op.index = facts.index;
        // There, whatever is of a type of types is looked up as the name of one.
        if (facts.type.is(TypeKind::type) && program_->constant_error.empty())
          program_->constant_error = "reference to undefined type: " + ast_.name(node);
        return add(op, {});
      }
      case Reference::type: {
        return constant(Value::type(facts.text));
      }
      case Reference::object_type:
        if (program_->constant_error.empty())
          program_->constant_error = "reference to undefined type: " + facts.text;
        return constant(Value::type(facts.text));
      case Reference::unresolved:
        return constant(Value::error(facts.text), OpCode::failure);
      default:
        break;
    }
    switch (node.kind) {
      case NodeKind::constant:
        return constant(ast_.constant(node));
      case NodeKind::select:
        return select(node);
      case NodeKind::call:
        return call(node, facts);
      case NodeKind::list:
        return list(node);
      case NodeKind::map:
        return map(node);
      case NodeKind::message:
        return message(node, facts);
      case NodeKind::fold: {
        Op op;
        op.code = OpCode::fold;
        op.fold = node.fold;
        op.flag = node.name2 != kNoName;
        op.index = facts.slot;
        op.slot2 = facts.slot2;
        if (node.fold == Fold::sort_by) {
          const Type& key = checked_.nodes[ast_.child(node, 2)].type;
          op.slot2 = key.is_dyn() || key.is(TypeKind::null) ? 0 : 1;
        }
        return add(op, children(node));
      }
      case NodeKind::bind: {
        Op op;
        op.code = OpCode::bind;
        op.index = facts.slot;
        return add(op, children(node));
      }
      case NodeKind::opt_map: {
        Op op;
        op.code = OpCode::optional_map;
        op.flag = node.flat;
        op.index = facts.slot;
        return add(op, children(node));
      }
      default:
        return constant(Value::error("unsupported expression"), OpCode::failure);
    }
  }

  DIBS_OWN_FRAME std::vector<std::uint32_t> children(const AstNode& node, std::size_t first = 0) {
    std::vector<std::uint32_t> made;
    for (std::size_t i = first; i < node.count; ++i) {
      const NodeId child = ast_.child(node, i);
      made.push_back(child == kNoNode ? Program::kNoOp : build(child));
    }
    return made;
  }

  DIBS_OWN_FRAME std::uint32_t select(const AstNode& node) {
    Op op;
    op.code = node.test_only  ? OpCode::has
              : node.optional ? OpCode::select_optional
                              : OpCode::select;
    op.attribute = true;
    op.index = static_cast<std::uint32_t>(program_->constants.size());
    program_->constants.push_back(Value::string(ast_.name(node)));
    return add(op, children(node));
  }

  DIBS_OWN_FRAME std::uint32_t call(const AstNode& node, const NodeFacts& facts) {
    const std::string& name = ast_.name(node);
    Op op;
    for (const NamedOp& candidate : kOperators) {
      if (candidate.function != name) continue;
      op.code = candidate.code;
      op.attribute = op.code == OpCode::index || op.code == OpCode::index_optional ||
                     op.code == OpCode::conditional;
      op.flag = facts.overloads.size() == 1;
      const std::vector<std::uint32_t> operands = children(node);
      if (op.code == OpCode::in && op.flag && is_constant(operands[1]) &&
          constant_of(operands[1]).is(Kind::list)) {
        // As planned there: membership in a list of plain constants is that in a set and free, and
        // nothing is in an empty list.
        const List& list = constant_of(operands[1]).as_list();
        if (list.size() == 0) return constant(Value::boolean(false));
        op.slot2 = is_plain(list) ? 1 : 0;
      }
      const bool indexes = op.code == OpCode::index || op.code == OpCode::index_optional;
      if (indexes && is_constant(operands[1]) && !is_qualifier(constant_of(operands[1])) &&
          program_->constant_error.empty())
        program_->constant_error = invalid_qualifier(constant_of(operands[1])).text();
      return add(op, operands);
    }
    if (node.receiver && !facts.namespaced && node.count == 2 &&
        (name == "or" || name == "orValue")) {
      op.code = name == "or" ? OpCode::optional_or : OpCode::optional_or_value;
      return add(op, children(node));
    }
    const std::vector<std::uint32_t> arguments = children(node, facts.namespaced ? 1 : 0);
    if (arguments.size() == 1 && is_constant(arguments[0]) && !node.receiver) {
      Value folded;
      if (converted(facts, constant_of(arguments[0]), folded)) return constant(std::move(folded));
    }
    check_pattern(facts, arguments);
    if (!node.receiver && fold(facts, arguments, op)) return add(op, {});
    op.code = OpCode::call;
    op.index = static_cast<std::uint32_t>(program_->calls.size());
    program_->calls.push_back(
        {facts.function->name, facts.function->cost_by_name, facts.overloads});
    return add(op, arguments);
  }

  /// Patterns that are constant are read when the program is made.
  void check_pattern(const NodeFacts& facts, const std::vector<std::uint32_t>& arguments) {
    const std::string& name = facts.function->name;
    if ((name != "matches" && name != "find" && name != "findAll") || arguments.size() < 2) return;
    if (!is_constant(arguments[1]) || !constant_of(arguments[1]).is(Kind::string)) return;
    std::string message;
    if (find_pattern(constant_of(arguments[1]).text(), message) == nullptr &&
        program_->constant_error.empty())
      program_->constant_error = message;
  }

  /// Whether a value can be asked for at all in a container.
  static bool is_qualifier(const Value& key) { return is_key(key) || key.is(Kind::real); }

  static bool is_plain(const List& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Value item = list.at(i);
      if (!item.is_number() && !item.is(Kind::string) && !item.is(Kind::boolean)) return false;
    }
    return true;
  }

  /// Conversions of constants happen once, here.
  bool converted(const NodeFacts& facts, const Value& argument, Value& out) {
    if (!is_one_of(kConversions, facts.function->name)) return false;
    for (const Overload* overload : facts.overloads) {
      if (!overload->accepts(&argument, 1)) continue;
      out = overload->invoke(&argument, 1);
      if (out.is_error() && program_->constant_error.empty()) program_->constant_error = out.text();
      return !out.is_error();
    }
    if (program_->constant_error.empty())
      program_->constant_error = no_such_overload(facts.function->name, &argument, 1).text();
    return false;
  }

  bool fold(const NodeFacts& facts, const std::vector<std::uint32_t>& arguments, Op& op) {
    if (!is_one_of(kFolded, facts.function->name)) return false;
    std::vector<Value> values;
    for (const std::uint32_t argument : arguments) {
      if (!is_constant(argument)) return false;
      values.push_back(constant_of(argument));
    }
    for (const Overload* overload : facts.overloads) {
      if (!overload->accepts(values.data(), values.size()) || !overload->is_implemented()) continue;
      Value made = overload->invoke(values.data(), values.size());
      const std::uint64_t cost =
          overload->cost == nullptr ? 1 : overload->cost(values.data(), values.size(), made);
      if (cost > kMaxFoldedCost) return false;
      op.code = OpCode::folded;
      op.slot2 = static_cast<std::uint32_t>(cost);
      op.index = static_cast<std::uint32_t>(program_->constants.size());
      program_->constants.push_back(std::move(made));
      return true;
    }
    return false;
  }

  DIBS_OWN_FRAME std::uint32_t list(const AstNode& node) {
    Op op;
    op.code = OpCode::list;
    std::vector<bool> optional;
    for (std::size_t i = 0; i < node.count; ++i) {
      optional.push_back(ast_.child_is_optional(node, i));
      op.flag = op.flag || optional.back();
    }
    const std::vector<std::uint32_t> elements = children(node);
    const bool folds = !op.flag && std::all_of(elements.begin(), elements.end(),
                                               [&](std::uint32_t e) { return is_constant(e); });
    if (!folds) return add(op, elements, optional);
    std::vector<Value> items;
    for (const std::uint32_t element : elements) items.push_back(constant_of(element));
    return constant(Value::list(std::move(items)));
  }

  DIBS_OWN_FRAME std::uint32_t map(const AstNode& node) {
    Op op;
    op.code = OpCode::map;
    std::vector<bool> optional;
    for (std::size_t i = 0; i < node.count; ++i) {
      optional.push_back(i % 2 == 0 && ast_.child_is_optional(node, i));
      op.flag = op.flag || optional.back();
    }
    const std::vector<std::uint32_t> entries = children(node);
    bool folds = !op.flag && std::all_of(entries.begin(), entries.end(),
                                         [&](std::uint32_t e) { return is_constant(e); });
    MapBuilder builder;
    for (std::size_t i = 0; folds && i < entries.size(); i += 2) {
      const Value& key = constant_of(entries[i]);
      folds = program_->as_in_go || (is_key(key) && !builder.contains(key));
      if (folds) builder.set(key, constant_of(entries[i + 1]));
    }
    return folds ? constant(builder.build()) : add(op, entries, optional);
  }

  DIBS_OWN_FRAME std::uint32_t message(const AstNode& node, const NodeFacts& facts) {
    Op op;
    op.code = OpCode::message;
    std::vector<std::uint32_t> values;
    std::vector<bool> optional;
    Program::Message made{facts.text, facts.construct, {}};
    for (std::size_t i = 0; i < node.count; i += 2) {
      made.fields.push_back(ast_.constant(ast_.node(ast_.child(node, i))));
      values.push_back(build(ast_.child(node, i + 1)));
      optional.push_back(ast_.child_is_optional(node, i));
      op.flag = op.flag || optional.back();
    }
    op.index = static_cast<std::uint32_t>(program_->messages.size());
    program_->messages.push_back(std::move(made));
    return add(op, values, optional);
  }

  const Ast& ast_;
  const CheckedAst& checked_;
  std::shared_ptr<Program> program_ = std::make_shared<Program>();
};

}  // namespace

std::shared_ptr<const Program> build_program(const Ast& ast, const CheckedAst& checked) {
  return Builder(ast, checked).run();
}

}  // namespace dibs::cel
