#include "cel/program.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "cel/operations.h"

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

class Builder {
 public:
  Builder(const Ast& ast, const CheckedAst& checked) : ast_(ast), checked_(checked) {}

  std::shared_ptr<const Program> run() {
    program_->slots = checked_.slots;
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
        return add(op, {});
      }
      case Reference::type: {
        return constant(Value::type(facts.text));
      }
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
      case NodeKind::fold: {
        Op op;
        op.code = OpCode::fold;
        op.fold = node.fold;
        op.flag = node.name2 != kNoName;
        op.index = facts.slot;
        op.slot2 = facts.slot2;
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

  std::vector<std::uint32_t> children(const AstNode& node, std::size_t first = 0) {
    std::vector<std::uint32_t> made;
    for (std::size_t i = first; i < node.count; ++i) {
      const NodeId child = ast_.child(node, i);
      made.push_back(child == kNoNode ? Program::kNoOp : build(child));
    }
    return made;
  }

  std::uint32_t select(const AstNode& node) {
    Op op;
    op.code = node.test_only  ? OpCode::has
              : node.optional ? OpCode::select_optional
                              : OpCode::select;
    op.attribute = true;
    op.index = static_cast<std::uint32_t>(program_->constants.size());
    program_->constants.push_back(Value::string(ast_.name(node)));
    return add(op, children(node));
  }

  std::uint32_t call(const AstNode& node, const NodeFacts& facts) {
    const std::string& name = ast_.name(node);
    Op op;
    for (const NamedOp& candidate : kOperators) {
      if (candidate.function != name) continue;
      op.code = candidate.code;
      op.attribute = op.code == OpCode::index || op.code == OpCode::index_optional ||
                     op.code == OpCode::conditional;
      op.flag = facts.overloads.size() == 1;
      return add(op, children(node));
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
    op.code = OpCode::call;
    op.index = static_cast<std::uint32_t>(program_->calls.size());
    program_->calls.push_back({facts.function->name, facts.function->standard, facts.overloads});
    return add(op, arguments);
  }

  /// Conversions of constants happen once, here.
  bool converted(const NodeFacts& facts, const Value& argument, Value& out) {
    if (std::find(std::begin(kConversions), std::end(kConversions), facts.function->name) ==
        std::end(kConversions))
      return false;
    for (const Overload* overload : facts.overloads) {
      if (!overload->accepts(&argument, 1)) continue;
      out = overload->call(&argument, 1);
      if (out.is_error() && program_->constant_error.empty()) program_->constant_error = out.text();
      return !out.is_error();
    }
    return false;
  }

  std::uint32_t list(const AstNode& node) {
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

  std::uint32_t map(const AstNode& node) {
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
      folds = is_key(key) && builder.add(key, constant_of(entries[i + 1]));
    }
    return folds ? constant(builder.build()) : add(op, entries, optional);
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
