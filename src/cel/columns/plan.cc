#include "cel/columns/plan.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "cel/cost/cost.h"

namespace dibs::cel {

namespace {

bool is_comparison(OpCode code) {
  return code == OpCode::equal || code == OpCode::not_equal || code == OpCode::less ||
         code == OpCode::less_equal || code == OpCode::greater || code == OpCode::greater_equal ||
         code == OpCode::in;
}

class Planner {
 public:
  explicit Planner(const Program& program) : program_(program) {}

  Plan run(bool one_leaf) {
    plan_.root = one_leaf ? leaf(program_.root, true) : visit(program_.root, true);
    return std::move(plan_);
  }

 private:
  const Op& op(std::uint32_t id) const { return program_.ops[id]; }
  std::uint32_t child(const Op& op, std::size_t i) const { return program_.children[op.first + i]; }

  std::uint32_t add(PlanNode node) {
    plan_.nodes.push_back(std::move(node));
    return static_cast<std::uint32_t>(plan_.nodes.size() - 1);
  }

  std::uint32_t visit(std::uint32_t id, bool is_result) {
    PlanNode node;
    switch (op(id).code) {
      case OpCode::logical_and:
        node.code = PlanCode::logical_and;
        break;
      case OpCode::logical_or:
        node.code = PlanCode::logical_or;
        break;
      case OpCode::logical_not:
        node.code = PlanCode::logical_not;
        break;
      case OpCode::conditional:
        node.code = PlanCode::conditional;
        break;
      case OpCode::bind: {
        const Binding bind{op(id).index, child(op(id), 0)};
        bound_[bind.slot] = bind.op;
        binds_.push_back(bind);
        const std::uint32_t made = visit(child(op(id), 1), is_result);
        binds_.pop_back();
        return made;
      }
      default:
        return leaf(id, is_result);
    }
    for (std::size_t i = 0; i < op(id).count; ++i) {
      const bool branch = node.code == PlanCode::conditional && i > 0;
      node.children.push_back(visit(child(op(id), i), is_result && branch));
    }
    return add(std::move(node));
  }

  std::uint32_t leaf(std::uint32_t id, bool is_result) {
    PlanNode node;
    node.op = id;
    node.binds = binds_;
    node.is_result = is_result;
    columns_.clear();
    seen_.clear();
    collect(id);
    node.columns = columns_;
    if (node.columns.size() == 1) choose_kind(node);
    return add(std::move(node));
  }

  void choose_kind(PlanNode& node) const {
    const Op& root = op(node.op);
    if (std::optional<ColumnPath> path = plain_path(node.op)) {
      node.kind = LeafKind::read;
      node.cost = walk_cost(*path);
      return;
    }
    if (root.code == OpCode::has) {
      if (std::optional<ColumnPath> path = plain_path(child(root, 0))) {
        node.kind = LeafKind::present;
        node.cost = walk_cost(*path) + 1;
      }
      return;
    }
    if (!is_comparison(root.code)) return;
    const std::uint32_t left = child(root, 0);
    const std::uint32_t right = child(root, 1);
    const bool constant_left = is_constant(left);
    if (!constant_left && !is_constant(right)) return;
    std::optional<ColumnPath> path = plain_path(constant_left ? right : left);
    // A constant on the left of `in` was made a step of the path, or needs the container.
    if (!path || (constant_left && root.code == OpCode::in)) return;
    const Op& other = op(constant_left ? left : right);
    node.kind = constant_left ? LeafKind::compared_constant : LeafKind::compared;
    node.constant = &program_.constants[other.index];
    node.cost = walk_cost(*path) + 1 + scaled(cost_size(*node.constant), kScanFactor) +
                (other.code == OpCode::folded ? other.slot2 : 0);
  }

  /// Variables of binds on the way pay once more each.
  static std::uint64_t walk_cost(const ColumnPath& path) { return 2 * (path.steps.size() + 1); }

  /// Constants that are errors are left to the evaluator.
  bool is_constant(std::uint32_t id) const {
    return (op(id).code == OpCode::constant || op(id).code == OpCode::folded) &&
           !program_.constants[op(id).index].is_error();
  }

  /// What a variable of cel.bind stands for.
  std::uint32_t unbound(std::uint32_t id) const {
    while (op(id).code == OpCode::local) {
      const auto bound = bound_.find(op(id).index);
      if (bound == bound_.end()) break;
      id = bound->second;
    }
    return id;
  }

  /// The path, if every step of it is a plain select or index.
  std::optional<ColumnPath> plain_path(std::uint32_t id) const {
    for (std::uint32_t at = unbound(id);; at = unbound(child(op(at), 0))) {
      if (op(at).code == OpCode::variable) return path_of(id);
      if (op(at).code != OpCode::select && op(at).code != OpCode::index) break;
    }
    return std::nullopt;
  }

  /// Operations that walk from a variable along constants.
  std::optional<ColumnPath> path_of(std::uint32_t id) const {
    const Op& at = op(unbound(id));
    switch (at.code) {
      case OpCode::variable:
        return ColumnPath{at.index, {}};
      case OpCode::select:
      case OpCode::has:
      case OpCode::select_optional:
        return extended(child(at, 0), program_.constants[at.index], false);
      case OpCode::index:
      case OpCode::index_optional:
        if (op(child(at, 1)).code != OpCode::constant) return std::nullopt;
        return extended(child(at, 0), program_.constants[op(child(at, 1)).index], false);
      case OpCode::in:
        if (op(child(at, 0)).code != OpCode::constant) return std::nullopt;
        return extended(child(at, 1), program_.constants[op(child(at, 0)).index], true);
      default:
        return std::nullopt;
    }
  }

  std::optional<ColumnPath> extended(std::uint32_t operand, const Value& key, bool contains) const {
    // What has() and `in` give is no part of the row that a path could go on from.
    const OpCode code = op(unbound(operand)).code;
    if (code == OpCode::has || code == OpCode::in) return std::nullopt;
    std::optional<ColumnPath> path = path_of(operand);
    if (path) path->steps.push_back({key, contains});
    return path;
  }

  /// Adds the paths that an operation depends on.
  void collect(std::uint32_t id) {
    if (id == Program::kNoOp) return;
    if (std::optional<ColumnPath> path = path_of(id)) {
      add_column(std::move(*path));
      return;
    }
    const Op& at = op(id);
    if (at.code == OpCode::local) {
      const auto bound = bound_.find(at.index);
      if (bound != bound_.end() && seen_.insert(at.index).second) collect(bound->second);
      return;
    }
    if (at.code == OpCode::bind) {
      // What it binds counts where it is used.
      bound_[at.index] = child(at, 0);
      collect(child(at, 1));
      return;
    }
    for (std::size_t i = 0; i < at.count; ++i) collect(child(at, i));
  }

  void add_column(ColumnPath path) {
    const std::string name = path.name();
    std::size_t i = 0;
    while (i < names_.size() && names_[i] != name) ++i;
    if (i == names_.size()) {
      names_.push_back(name);
      plan_.paths.push_back(std::move(path));
    }
    const auto index = static_cast<std::uint32_t>(i);
    if (std::find(columns_.begin(), columns_.end(), index) == columns_.end())
      columns_.push_back(index);
  }

  const Program& program_;
  Plan plan_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> columns_;      // of the leaf at work
  std::unordered_set<std::uint32_t> seen_;  // slots whose binds were collected for it
  std::vector<Binding> binds_;
  std::unordered_map<std::uint32_t, std::uint32_t> bound_;  // by slot, for the whole program
};

}  // namespace

Plan make_plan(const Program& program) { return Planner(program).run(false); }
Plan make_plan_of_one_leaf(const Program& program) { return Planner(program).run(true); }

}  // namespace dibs::cel
