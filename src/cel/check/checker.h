#pragma once
// Names resolved and types deduced.
//
// Every identifier, select and call gets what it refers to; every node gets a type. Parameters of
// generic functions are found by unification that prefers the more general type. In an unchecked
// environment nothing is refused: what cannot be resolved fails when it is evaluated.

#include <cstdint>
#include <string>
#include <vector>

#include "cel/function.h"
#include "cel/parse/ast.h"
#include "cel/type.h"

namespace dibs::cel {

class Environment;

/// object_type: the name of a type with fields, of which only the checker knows.
enum class Reference : std::uint8_t {
  none,
  variable,
  local,
  type,
  object_type,
  function,
  constructed,
  unresolved
};

/// What the checker found out about one node.
struct NodeFacts {
  Reference reference = Reference::none;
  /// The call's first child is part of the function's name, not an argument.
  bool namespaced = false;
  std::uint32_t index = 0;  // of a variable, or the slot of a local
  std::uint32_t slot = 0;   // for loops and binds: where their variables live
  std::uint32_t slot2 = 0;
  const Function* function = nullptr;  // for calls
  Construct construct = nullptr;       // for messages
  std::string text;                    // name of a type, or why it is unresolved
  std::vector<const Overload*> overloads;
  Type type;
};

struct CheckedAst {
  std::vector<NodeFacts> nodes;
  std::uint32_t slots = 0;
  Type type;
  /// As the environment has them.
  bool as_in_go = false;
  bool or_of_anything = false;
};

CheckedAst check(const Environment& environment, const Ast& ast, std::vector<Issue>& issues);

}  // namespace dibs::cel
