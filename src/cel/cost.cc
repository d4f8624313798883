#include "cel/cost.h"

#include <cmath>
#include <limits>

#include "cel/operations.h"

namespace dibs::cel {

std::uint64_t saturated_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::uint64_t>::max() : sum;
}

std::uint64_t saturated_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max()
                                                : product;
}

std::uint64_t scaled(std::uint64_t size, double factor) {
  const double cost = std::ceil(static_cast<double>(size) * factor);
  if (cost >= 18446744073709551615.0) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(cost);
}

std::uint64_t cost_size(const Value& value) {
  const Value size = size_of(value);
  return size.is_error() ? 1 : size.as_uinteger();
}

std::uint64_t cost_scan_first(const Value* arguments, std::size_t, const Value&) {
  return scaled(cost_size(arguments[0]), kScanFactor);
}

std::uint64_t cost_scan_twice(const Value* arguments, std::size_t, const Value&) {
  return scaled(cost_size(arguments[0]), 2 * kScanFactor);
}

std::uint64_t cost_match(const Value* arguments, std::size_t, const Value&) {
  return saturated_multiply(scaled(cost_size(arguments[0]) + 1, kScanFactor),
                            scaled(cost_size(arguments[1]), kPatternFactor));
}

std::uint64_t cost_contains(const Value* arguments, std::size_t, const Value&) {
  return saturated_multiply(scaled(cost_size(arguments[0]), kScanFactor),
                            scaled(cost_size(arguments[1]), kScanFactor));
}

std::uint64_t cost_new_list(const Value*, std::size_t, const Value& result) {
  return 1 + kListCost + (result.is(Kind::list) ? cost_size(result) : 1);
}

}  // namespace dibs::cel
