#pragma once
// Units of work, as Kubernetes counts them.

#include <cstdint>

#include "cel/value.h"

namespace dibs::cel {

inline constexpr std::uint64_t kListCost = 10;
inline constexpr std::uint64_t kMapCost = 30;
inline constexpr std::uint64_t kStructCost = 40;
/// Per code point of text that is read.
inline constexpr double kScanFactor = 0.1;
/// Per code point of a pattern.
inline constexpr double kPatternFactor = 0.25;

std::uint64_t saturated_add(std::uint64_t a, std::uint64_t b);
std::uint64_t saturated_multiply(std::uint64_t a, std::uint64_t b);
/// size * factor, rounded up.
std::uint64_t scaled(std::uint64_t size, double factor);
/// Code points, bytes, elements or entries, of an optional those of its content; 1 for everything
/// else, errors among it.
std::uint64_t cost_size(const Value& value);
/// Of comparing every one of so many elements with every other, twice; text is read as well.
std::uint64_t sort_cost(std::uint64_t size, const Value& element);
/// Everything in a value is looked at: one for each scalar, text by its length rounded down.
std::uint64_t traversal_cost(const Value& value);

// Rules for calls, to be named in declarations.
std::uint64_t cost_scan_first(const Value* arguments, std::size_t count, const Value& result);
std::uint64_t cost_scan_second(const Value* arguments, std::size_t count, const Value& result);
/// Twice over the first argument.
std::uint64_t cost_scan_twice(const Value* arguments, std::size_t count, const Value& result);
/// The first argument with the pattern in the second.
std::uint64_t cost_match(const Value* arguments, std::size_t count, const Value& result);
std::uint64_t cost_contains(const Value* arguments, std::size_t count, const Value& result);
std::uint64_t cost_traverse_first(const Value* arguments, std::size_t count, const Value& result);
/// A new list of the size of the result.
std::uint64_t cost_new_list(const Value* arguments, std::size_t count, const Value& result);

}  // namespace dibs::cel
