#pragma once
// Calls that do not happen, since the arguments fit no overload or are errors: what they say and
// what they cost.

#include <cstdint>
#include <string_view>

#include "cel/evaluate/program.h"
#include "cel/value.h"

namespace dibs::cel {

/// Functions whose pattern, when it is constant, the Go implementation plans as operations of
/// their own.
bool is_pattern_function(std::string_view name);

/// What a call says to arguments of the wrong kinds. Most functions name themselves and the kinds;
/// others leave it to the first argument, or are `planned` (see above).
Value call_refusal(std::string_view name, bool planned, const Value* arguments, std::size_t count);

/// Of a call whose arguments fit no overload: as if the only one there is had been called.
std::uint64_t cost_of_mismatch(const Program::Call& target, const Value* arguments,
                               std::size_t count);
/// Of a call that does not happen since an argument is an error: as of one that does.
std::uint64_t cost_of_failure(const Program::Call& target, const Value* arguments,
                              std::size_t count, const Value& failed);

}  // namespace dibs::cel
