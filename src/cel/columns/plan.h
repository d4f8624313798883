#pragma once
// How a program is answered by columns: logic over leaves.
//
// A leaf is an operation that is no logic, with the paths that its value depends on. Descending
// stops at everything but &&, ||, !, ?: and cel.bind, so that most leaves depend on one path.

#include <vector>

#include "cel/columns/path.h"
#include "cel/evaluate/program.h"

namespace dibs::cel {

enum class PlanCode : std::uint8_t { leaf, logical_and, logical_or, logical_not, conditional };

/// Leaves whose outcome follows from the entry of a column without the evaluator.
enum class LeafKind : std::uint8_t {
  evaluated,
  read,               // the path itself
  present,            // has(path)
  compared,           // path op constant
  compared_constant,  // constant op path
};

struct PlanNode {
  PlanCode code = PlanCode::leaf;
  std::vector<std::uint32_t> children;

  // Of a leaf:
  std::uint32_t op = 0;
  std::vector<Binding> binds;
  std::vector<std::uint32_t> columns;  // indexes into the paths of the plan
  LeafKind kind = LeafKind::evaluated;
  /// It is the result of the program, not a term of its logic.
  bool is_result = false;
  const Value* constant = nullptr;
  std::uint64_t cost = 0;  // at most, unless evaluated
};

struct Plan {
  std::vector<PlanNode> nodes;
  std::uint32_t root = 0;
  std::vector<ColumnPath> paths;
};

Plan make_plan(const Program& program);
/// The program as one leaf.
Plan make_plan_of_one_leaf(const Program& program);

}  // namespace dibs::cel
