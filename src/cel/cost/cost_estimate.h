#pragma once
// The worst cost that an expression can have, from its tree and from bounds on its variables.
//
// Counts as Kubernetes does when it decides whether to accept an expression, so the same text is
// accepted or refused. It is no strict bound on the cost of an evaluation.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cel/check/checker.h"
#include "cel/parse/ast.h"

namespace dibs::cel {

/// Where a value comes from: a variable, then fields; "@keys" and "@values" of a map, "@items" of a
/// list.
using ValuePath = std::vector<std::string>;
/// The largest size that a value at a path can have; nothing when unknown.
using SizeBound = std::function<std::optional<std::uint64_t>(const ValuePath& path)>;

std::uint64_t estimate_cost(const Environment& environment, const Ast& ast,
                            const CheckedAst& checked, const SizeBound& bound);

}  // namespace dibs::cel
