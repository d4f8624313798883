#include "cel/parse/macros.h"

#include "base/strings.h"

namespace dibs::cel {

namespace {

struct FoldMacro {
  std::string_view name;
  Fold fold;
  std::uint8_t variables;
  bool predicate;
  bool transform;
};

constexpr FoldMacro kFoldMacros[] = {
    {"all", Fold::all, 1, true, false},
    {"exists", Fold::exists, 1, true, false},
    {"exists_one", Fold::exists_one, 1, true, false},
    {"existsOne", Fold::exists_one, 1, true, false},
    {"map", Fold::map, 1, false, true},
    {"map", Fold::map, 1, true, true},
    {"filter", Fold::filter, 1, true, false},
    {"all", Fold::all, 2, true, false},
    {"exists", Fold::exists, 2, true, false},
    {"existsOne", Fold::exists_one, 2, true, false},
    {"exists_one", Fold::exists_one, 2, true, false},
    {"transformList", Fold::map, 2, false, true},
    {"transformList", Fold::map, 2, true, true},
    {"transformMap", Fold::transform_map, 2, false, true},
    {"transformMap", Fold::transform_map, 2, true, true},
    {"transformMapEntry", Fold::transform_map_entry, 2, false, true},
    {"transformMapEntry", Fold::transform_map_entry, 2, true, true},
    {"sortBy", Fold::sort_by, 1, false, true},
};

class Expander {
 public:
  Expander(Ast& ast, const ParserOptions& options, const MacroCall& call,
           std::vector<Issue>& issues)
      : ast_(ast), options_(options), call_(call), arguments_(*call.arguments), issues_(issues) {}

  NodeId run() {
    if (call_.receiver == kNoNode)
      return call_.function == "has" && arguments_.size() == 1 ? has() : kNoNode;
    if (is_ident(call_.receiver, "cel")) {
      const NodeId made = of_cel();
      if (made != kNoNode) return made;
    }
    if (options_.optional_syntax && arguments_.size() == 2 &&
        (call_.function == "optMap" || call_.function == "optFlatMap"))
      return opt_map();
    for (const FoldMacro& macro : kFoldMacros) {
      const std::size_t count = macro.variables + macro.predicate + macro.transform;
      if (macro.name == call_.function && count == arguments_.size() && enabled(macro))
        return fold(macro);
    }
    return kNoNode;
  }

 private:
  bool enabled(const FoldMacro& macro) const {
    if (macro.variables == 1 && macro.name == "existsOne") return options_.exists_one_alias;
    if (macro.fold == Fold::sort_by) return options_.list_macros;
    return macro.variables == 1 || options_.two_variable_macros;
  }

  bool is_ident(NodeId id, std::string_view name) const {
    const AstNode& node = ast_.node(id);
    return node.kind == NodeKind::ident && !node.rooted && ast_.name(node) == name;
  }

  NodeId fail(NodeId at, std::string message) {
    issues_.push_back({ast_.node(at).position, std::move(message)});
    return ast_.add_constant(Value::null(), call_.position);
  }

  /// The name an argument introduces; kNoName, with an issue, when it is none.
  std::uint32_t variable(NodeId argument, std::string_view otherwise) {
    const AstNode& node = ast_.node(argument);
    if (node.kind == NodeKind::ident && !node.rooted) return node.name;
    issues_.push_back({node.position, std::string(otherwise)});
    return kNoName;
  }

  std::uint32_t loop_variable(NodeId argument, const FoldMacro& macro) {
    // Each macro was given its own words.
    const bool words =
        macro.variables == 1 &&
        (macro.fold == Fold::map || macro.fold == Fold::filter || macro.fold == Fold::sort_by);
    const std::uint32_t name = variable(
        argument, words ? "argument is not an identifier" : "argument must be a simple name");
    if (name == kNoName || ast_.name(name) != "__result__") return name;
    issues_.push_back(
        {ast_.node(argument).position, "iteration variable overwrites accumulator variable"});
    return kNoName;
  }

  NodeId has() {
    AstNode node = ast_.node(arguments_[0]);
    if (node.kind != NodeKind::select || node.test_only || node.optional)
      return fail(arguments_[0], "invalid argument to has() macro");
    const NodeId operand = ast_.child(node, 0);
    node.test_only = true;
    node.position = call_.position;
    return ast_.add(node, {operand});
  }

  /// sortBy names its receiver more than once.
  bool can_be_sorted(NodeId id) const {
    switch (ast_.node(id).kind) {
      case NodeKind::constant:
      case NodeKind::map:
      case NodeKind::message:
        return false;
      default:
        return true;
    }
  }

  NodeId fold(const FoldMacro& macro) {
    if (macro.fold == Fold::sort_by && !can_be_sorted(call_.receiver))
      return fail(call_.receiver,
                  "sortBy can only be applied to a list, identifier, comprehension, call or select "
                  "expression");
    AstNode node;
    node.kind = NodeKind::fold;
    node.fold = macro.fold;
    node.position = call_.position;
    node.name = loop_variable(arguments_[0], macro);
    if (macro.variables == 2) {
      node.name2 = loop_variable(arguments_[1], macro);
      if (node.name == node.name2 && node.name != kNoName)
        return fail(arguments_[1], cat("duplicate variable name: ", ast_.name(node.name)));
    }
    std::size_t next = macro.variables;
    const NodeId predicate = macro.predicate ? arguments_[next++] : kNoNode;
    const NodeId transform = macro.transform ? arguments_[next] : kNoNode;
    return ast_.add(node, {call_.receiver, predicate, transform});
  }

  NodeId opt_map() {
    AstNode node;
    node.kind = NodeKind::opt_map;
    node.flat = call_.function == "optFlatMap";
    node.position = call_.position;
    node.name = variable(arguments_[0],
                         cat(call_.function, "() variable name must be a simple identifier"));
    return ast_.add(node, {call_.receiver, arguments_[1]});
  }

  NodeId bind(std::uint32_t name, NodeId init, NodeId body) {
    AstNode node;
    node.kind = NodeKind::bind;
    node.position = call_.position;
    node.name = name;
    return ast_.add(node, {init, body});
  }

  NodeId of_cel() {
    if (options_.bindings && call_.function == "bind" && arguments_.size() == 3)
      return bind(variable(arguments_[0], "cel.bind() variable names must be simple identifiers"),
                  arguments_[1], arguments_[2]);
    if (!options_.blocks) return kNoNode;
    if (call_.function == "block" && arguments_.size() == 2) return block();
    if (call_.function == "index" && arguments_.size() == 1)
      return hidden(cat("@index", number(arguments_[0])));
    if ((call_.function == "iterVar" || call_.function == "accuVar") && arguments_.size() == 2)
      return hidden(
          cat("@", call_.function, ":", number(arguments_[0]), ":", number(arguments_[1])));
    return kNoNode;
  }

  std::int64_t number(NodeId argument) {
    const AstNode& node = ast_.node(argument);
    if (node.kind == NodeKind::constant && ast_.constant(node).is(Kind::integer) &&
        ast_.constant(node).as_integer() >= 0)
      return ast_.constant(node).as_integer();
    issues_.push_back({node.position, "argument must be a non-negative int literal"});
    return 0;
  }

  NodeId hidden(std::string name) {
    AstNode node;
    node.kind = NodeKind::ident;
    node.position = call_.position;
    node.name = ast_.intern(name);
    return ast_.add(node, {});
  }

  /// cel.block([a, b], e) binds @index0 to a and, seeing it, @index1 to b around e.
  NodeId block() {
    const AstNode slots = ast_.node(arguments_[0]);
    if (slots.kind != NodeKind::list)
      return fail(arguments_[0], "cel.block requires the first arg to be a list literal");
    NodeId made = arguments_[1];
    for (std::size_t i = slots.count; i > 0; --i)
      made = bind(ast_.intern(cat("@index", i - 1)), ast_.child(slots, i - 1), made);
    return made;
  }

  Ast& ast_;
  const ParserOptions& options_;
  const MacroCall& call_;
  const std::vector<NodeId>& arguments_;
  std::vector<Issue>& issues_;
};

}  // namespace

NodeId expand_macro(Ast& ast, const ParserOptions& options, const MacroCall& call,
                    std::vector<Issue>& issues) {
  return Expander(ast, options, call, issues).run();
}

}  // namespace dibs::cel
