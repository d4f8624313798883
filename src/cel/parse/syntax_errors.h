#pragma once
// Syntax errors in the words of the reference implementation.
//
// Its parser is generated (by ANTLR), and users see what that parser makes of a mistake: which
// token it names, what it would have expected, where it goes on and what it then stumbles over.
// All of that follows from the grammar and a few rules of recovery, which this walks through
// without building anything. It runs only once the real parser has found that there is a mistake.

#include <string_view>
#include <vector>

#include "cel/parse/ast.h"
#include "cel/parse/lexer.h"

namespace dibs::cel {

/// Adds at least one issue unless the tokens are an expression.
void report_syntax_errors(std::string_view source, const std::vector<Token>& tokens,
                          std::vector<Issue>& issues);

}  // namespace dibs::cel
