#pragma once
// What is refused although the types agree: literals that could never work, mixed aggregates.

#include <vector>

#include "cel/check/checker.h"
#include "cel/parse/ast.h"

namespace dibs::cel {

void validate(const Environment& environment, const Ast& ast, const CheckedAst& checked,
              std::vector<Issue>& issues);

}  // namespace dibs::cel
