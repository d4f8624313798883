#include "cel/cost/cost.h"

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
  const double cost = static_cast<double>(size) * factor;
  if (cost >= 18446744073709551615.0) return std::numeric_limits<std::uint64_t>::max();
  const auto whole = static_cast<std::uint64_t>(cost);
  return static_cast<double>(whole) < cost ? whole + 1 : whole;
}

std::uint64_t cost_size(const Value& value) {
  if (value.is(Kind::optional) && value.has_content()) return cost_size(value.content());
  if (value.is(Kind::opaque)) return value.as_opaque().cost_size();
  const Value size = size_of(value);
  return size.is_error() ? 1 : size.as_uinteger();
}

std::uint64_t sort_cost(std::uint64_t size, const Value& element) {
  const std::uint64_t square = saturated_multiply(size, size);
  const bool text = element.is(Kind::string) || element.is(Kind::bytes);
  // Rounded down, unlike all else.
  return saturated_add(1 + kListCost, text ? static_cast<std::uint64_t>(
                                                 static_cast<double>(square) * (2 + kScanFactor))
                                           : saturated_multiply(square, 2));
}

std::uint64_t traversal_cost(const Value& value) {
  std::uint64_t cost = 0;
  if (!work()) return std::numeric_limits<std::uint64_t>::max();
  switch (value.kind()) {
    case Kind::string:
    case Kind::bytes:
      return static_cast<std::uint64_t>(static_cast<double>(value.text().size()) * kScanFactor);
    case Kind::list: {
      const List& list = value.as_list();
      for (std::size_t i = 0; i < list.size(); ++i)
        cost = saturated_add(cost, traversal_cost(list.at(i)));
      return cost;
    }
    case Kind::map: {
      const Map& map = value.as_map();
      for (std::size_t i = 0; i < map.size(); ++i) {
        cost = saturated_add(cost, traversal_cost(map.key_at(i)));
        cost = saturated_add(cost, traversal_cost(map.value_at(i)));
      }
      return cost;
    }
    default:
      return 1;
  }
}

std::uint64_t cost_traverse_first(const Value* arguments, std::size_t, const Value&) {
  return traversal_cost(arguments[0]);
}

std::uint64_t cost_scan_first(const Value* arguments, std::size_t, const Value&) {
  return scaled(cost_size(arguments[0]), kScanFactor);
}

std::uint64_t cost_scan_second(const Value* arguments, std::size_t, const Value&) {
  return scaled(cost_size(arguments[1]), kScanFactor);
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
