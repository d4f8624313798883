#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

/// True when every one of the parts is in the list.
Value covers(const Value& list, const Value& parts) {
  for (std::size_t i = 0; i < parts.as_list().size(); ++i) {
    Value found = contained(parts.as_list().at(i), list);
    if (!found.is_true()) return found;
  }
  return Value::boolean(true);
}

Value contains(const Value* arguments, std::size_t) { return covers(arguments[0], arguments[1]); }

Value equivalent(const Value* arguments, std::size_t) {
  Value first = covers(arguments[0], arguments[1]);
  return first.is_true() ? covers(arguments[1], arguments[0]) : first;
}

Value intersects(const Value* arguments, std::size_t) {
  const List& list = arguments[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    Value found = contained(list.at(i), arguments[1]);
    if (!found.is_false()) return found;
  }
  return Value::boolean(false);
}

std::uint64_t product(const Value* arguments) {
  return saturated_multiply(cost_size(arguments[0]), cost_size(arguments[1]));
}

std::uint64_t cost_once(const Value* arguments, std::size_t, const Value&) {
  return saturated_add(1, product(arguments));
}

std::uint64_t cost_both_ways(const Value* arguments, std::size_t, const Value&) {
  return saturated_add(1, saturated_multiply(2, product(arguments)));
}

}  // namespace

void add_sets(Environment& environment) {
  environment.function("sets.contains", {{"list(T), list(T) -> bool", contains, cost_once}});
  environment.function("sets.equivalent",
                       {{"list(T), list(T) -> bool", equivalent, cost_both_ways}});
  environment.function("sets.intersects", {{"list(T), list(T) -> bool", intersects, cost_once}});
}

}  // namespace dibs::cel
