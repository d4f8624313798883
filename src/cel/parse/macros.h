#pragma once
// Macros: calls that the parser turns into nodes of their own. Of the parser alone.

#include <vector>

#include "cel/parse/ast.h"
#include "cel/parse/parser.h"

namespace dibs::cel {

struct MacroCall {
  std::string_view function;
  NodeId receiver = kNoNode;
  const std::vector<NodeId>* arguments = nullptr;
  std::uint32_t position = 0;
};

/// The node that the call means, or kNoNode when it is no macro. Wrong arguments are issues.
NodeId expand_macro(Ast& ast, const ParserOptions& options, const MacroCall& call,
                    std::vector<Issue>& issues);

}  // namespace dibs::cel
