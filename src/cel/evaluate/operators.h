#pragma once
// Operators as a program applies them: the operations of operations.h by their codes, with the
// errors that name an operator, and what each application costs.

#include <cstdint>

#include "cel/evaluate/program.h"
#include "cel/value.h"

namespace dibs::cel {

/// A binary operator, `in` included, over values that are no errors.
Value apply_operator(OpCode code, const Value& left, const Value& right);
/// -operand.
Value apply_negation(const Value& operand);

/// Of a binary operator, errors as operands included.
std::uint64_t operator_cost(const Op& op, const Value& left, const Value& right);

}  // namespace dibs::cel
