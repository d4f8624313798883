#pragma once
// A compiled expression: a compact tree of operations, immutable, shared by any number of threads.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cel/check/checker.h"
#include "cel/parse/ast.h"
#include "cel/value.h"

namespace dibs::cel {

enum class OpCode : std::uint8_t {
  constant,
  folded,  // the result of a call, in constants, that still costs slot2
  variable,
  local,
  failure,  // the error in constants
  select,
  has,
  select_optional,
  index,
  index_optional,
  logical_not,
  negate,
  add,
  subtract,
  multiply,
  divide,
  modulo,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,
  logical_and,
  logical_or,
  conditional,
  optional_or,
  optional_or_value,
  call,
  list,
  map,
  message,
  fold,
  bind,
  optional_map,
};

struct Op {
  OpCode code = OpCode::constant;
  Fold fold = Fold::none;
  /// Loops: two variables. optional_map: flat. list, map and message: has optional elements.
  /// Operators: the types left one overload only, so that the cost goes by size.
  bool flag = false;
  bool attribute = false;   // a variable with selects and indexes behind it
  std::uint32_t first = 0;  // children
  std::uint32_t count = 0;
  std::uint32_t index = 0;  // of a constant, variable, slot or call
  std::uint32_t slot2 = 0;
};

struct Limits {
  /// Work allowed, in the units that Kubernetes counts.
  std::uint64_t cost = ~std::uint64_t{0};
  /// Looked at in loops; true ends the evaluation.
  const std::atomic<bool>* cancelled = nullptr;
};

struct Evaluation {
  Value value;
  std::uint64_t cost = 0;
  /// The limit was passed or the caller cancelled: the value is the error that says so.
  bool interrupted = false;
};

/// A variable of cel.bind: where it lives and what it stands for.
struct Binding {
  std::uint32_t slot = 0;
  std::uint32_t op = 0;
};

class Program {
 public:
  /// One value per variable of the environment, in the order of their declaration; missing ones are
  /// errors when they are used. Result values may borrow text of the program and the variables.
  Evaluation evaluate(std::span<const Value> variables, const Limits& limits = {}) const;
  /// One operation alone, with the variables of the binds around it.
  Evaluation evaluate_part(std::uint32_t op, std::span<const Binding> binds,
                           std::span<const Value> variables, const Limits& limits = {}) const;

  // For the evaluator.
  struct Call {
    std::string name;
    /// What it costs goes by its name; else by the overload, where the types left one.
    bool cost_by_name = true;
    std::vector<const Overload*> overloads;
  };
  /// Type{field: value}; the values are the children.
  struct Message {
    std::string type;
    Construct construct = nullptr;
    std::vector<Value> fields;  // their names
  };
  static constexpr std::uint32_t kNoOp = 0xffffffff;
  std::vector<Op> ops;
  std::vector<std::uint32_t> children;
  std::vector<bool> optional_children;
  std::vector<Value> constants;
  std::vector<Call> calls;
  std::vector<Message> messages;
  /// The error of the first conversion of a constant that cannot work, e.g. int("x"); empty: none.
  std::string constant_error;
  std::uint32_t root = 0;
  std::uint32_t slots = 0;
  /// See EnvironmentOptions.
  bool as_in_go = false;
  bool or_of_anything = false;
};

std::shared_ptr<const Program> build_program(const Ast& ast, const CheckedAst& checked);

}  // namespace dibs::cel
