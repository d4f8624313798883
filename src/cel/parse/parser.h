#pragma once
// Tokens to syntax tree, macros expanded.
//
// Nested at most 250 expressions deep and 100,000 code points long. Syntax errors are told as the
// reference implementation tells them (syntax_errors.h); problems that leave the shape intact
// (reserved names, bad literals, macro arguments) are all reported.

#include <memory>
#include <string_view>
#include <vector>

#include "cel/parse/ast.h"

namespace dibs::cel {

struct ParserOptions {
  bool macros = true;
  /// a.?b, a[?b], [?a], {?a: b}, optMap and optFlatMap.
  bool optional_syntax = true;
  /// a.`b-c`.
  bool quoted_fields = false;
  /// cel.bind.
  bool bindings = false;
  /// cel.block, cel.index, cel.iterVar, cel.accuVar: what optimisers write.
  bool blocks = false;
  bool two_variable_macros = false;
  /// existsOne as another name of exists_one also where it has one variable.
  bool exists_one_alias = true;
  /// sortBy.
  bool list_macros = false;
};

/// No tree when there are issues.
std::unique_ptr<Ast> parse(std::string_view source, const ParserOptions& options,
                           std::vector<Issue>& issues);

}  // namespace dibs::cel
