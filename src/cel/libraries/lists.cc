#include <algorithm>

#include "base/strings.h"
#include "cel/cost/cost.h"
#include "cel/libraries/extensions.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr std::string_view kOrderedTypes[] = {"int",      "uint",      "double", "bool",
                                              "duration", "timestamp", "string", "bytes"};

/// Lists that are counted rather than kept may be far longer than a copy should be.
bool is_too_long(const Value& value) { return value.as_list().size() > kMaxItems; }

std::vector<Value> items_of(const Value& value) {
  std::vector<Value> items;
  const List& list = value.as_list();
  items.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) items.push_back(list.at(i));
  return items;
}

Value slice(const Value* arguments, std::size_t) {
  const auto size = static_cast<std::int64_t>(arguments[0].as_list().size());
  const std::int64_t begin = arguments[1].as_integer();
  const std::int64_t end = arguments[2].as_integer();
  const std::string call = cat("cannot slice(", begin, ", ", end, "), ");
  if (begin < 0 || end < 0) return Value::error(cat(call, "negative indexes not supported"));
  if (begin > end)
    return Value::error(cat(call, "start index must be less than or equal to end index"));
  if (end > size) return Value::error(cat(call, "list is length ", size));
  if (static_cast<std::size_t>(end - begin) > kMaxItems) return too_long();
  std::vector<Value> items;
  for (std::int64_t i = begin; i < end; ++i)
    items.push_back(arguments[0].as_list().at(static_cast<std::size_t>(i)));
  return Value::list(std::move(items));
}

/// Values nest as deep as an expression at most, so that this may recurse.
bool flatten_into(std::vector<Value>& out, const Value& list, std::int64_t depth) {
  for (std::size_t i = 0; i < list.as_list().size(); ++i) {
    Value item = list.as_list().at(i);
    if (!work()) return false;
    if (item.is(Kind::list) && depth > 0) {
      if (!flatten_into(out, item, depth - 1)) return false;
    } else {
      out.push_back(std::move(item));
      if (out.size() > kMaxItems) return false;
    }
  }
  return true;
}

Value flatten(const Value* arguments, std::size_t count) {
  const std::int64_t depth = count > 1 ? arguments[1].as_integer() : 1;
  if (depth < 0) return Value::error("level must be non-negative");
  std::vector<Value> items;
  if (!flatten_into(items, arguments[0], depth)) return too_long();
  return Value::list(std::move(items));
}

Value sort(const Value* arguments, std::size_t) {
  if (is_too_long(arguments[0])) return too_long();
  std::vector<Value> items = items_of(arguments[0]);
  for (const Value& item : items) {
    if (item.kind() != items[0].kind())
      return Value::error("list elements must have the same type");
    if (order(item, items[0]) == Order::no_overload)
      return Value::error("list elements must be comparable");
  }
  std::stable_sort(items.begin(), items.end(),
                   [](const Value& a, const Value& b) { return order(a, b) == Order::less; });
  return Value::list(std::move(items));
}

Value reverse(const Value* arguments, std::size_t) {
  if (is_too_long(arguments[0])) return too_long();
  std::vector<Value> items = items_of(arguments[0]);
  std::reverse(items.begin(), items.end());
  return Value::list(std::move(items));
}

Value distinct(const Value* arguments, std::size_t) {
  if (is_too_long(arguments[0])) return too_long();
  std::vector<Value> items;
  for (Value& item : items_of(arguments[0])) {
    const bool known = std::any_of(items.begin(), items.end(), [&](const Value& other) {
      return work() && equal(other, item).is_true();
    });
    if (!work()) return too_long();
    if (!known) items.push_back(std::move(item));
  }
  return Value::list(std::move(items));
}

/// The integers from 0, made when they are asked for.
class RangeList final : public List {
 public:
  explicit RangeList(std::size_t size) : size_(size) {}
  std::size_t size() const override { return size_; }
  Value at(std::size_t index) const override {
    return Value::integer(static_cast<std::int64_t>(index));
  }

 private:
  std::size_t size_;
};

template <bool Revised>
Value range(const Value* arguments, std::size_t) {
  if (Revised && arguments[0].as_integer() < 0)
    return Value::error(
        cat("lists.range: size must be non-negative, got ", arguments[0].as_integer()));
  const std::int64_t count = std::max<std::int64_t>(arguments[0].as_integer(), 0);
  return Value::list(static_cast<const List*>(new RangeList(static_cast<std::size_t>(count))));
}

std::uint64_t cost_pairs(const Value* arguments, std::size_t, const Value&) {
  if (!arguments[0].is(Kind::list)) return 1;
  const List& list = arguments[0].as_list();
  return sort_cost(list.size(), list.size() > 0 ? list.at(0) : Value());
}

template <bool Revised>
std::uint64_t cost_flatten(const Value* arguments, std::size_t count, const Value&) {
  std::int64_t depth = count > 1 && arguments[1].is(Kind::integer) ? arguments[1].as_integer() : 1;
  if (Revised && depth < 0) depth = 1;
  // A negative depth, which is an error, wrapped around before.
  return 1 + kListCost + cost_size(arguments[0]) * static_cast<std::uint64_t>(depth);
}

// Of Kubernetes.

Value is_sorted(const Value* arguments, std::size_t) {
  if (is_too_long(arguments[0])) return too_long();
  const std::vector<Value> items = items_of(arguments[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    const Order found = order(items[i - 1], items[i]);
    if (found == Order::no_overload) return Value::no_such_overload();
    if (found == Order::greater) return Value::boolean(false);
  }
  return Value::boolean(true);
}

template <Kind Zero>
Value sum(const Value* arguments, std::size_t) {
  Value total = Zero == Kind::integer    ? Value::integer(0)
                : Zero == Kind::uinteger ? Value::uinteger(0)
                : Zero == Kind::real     ? Value::real(0)
                                         : Value::duration(0);
  if (is_too_long(arguments[0])) return too_long();
  const std::vector<Value> items = items_of(arguments[0]);
  for (std::size_t i = 0; i < items.size(); ++i) {
    total = i == 0 ? items[0] : add(total, items[i]);
    if (total.is_error()) return total;
  }
  return total;
}

Value extreme(const Value& list, Order wanted, std::string_view name) {
  if (is_too_long(list)) return too_long();
  const std::vector<Value> items = items_of(list);
  if (items.empty()) return Value::error(cat(name, " called on empty list"));
  Value best = items[0];
  for (const Value& item : items) {
    const Order found = order(item, best);
    if (found == Order::no_overload) return Value::no_such_overload();
    if (found == wanted) best = item;
  }
  return best;
}
Value min(const Value* arguments, std::size_t) { return extreme(arguments[0], Order::less, "min"); }
Value max(const Value* arguments, std::size_t) {
  return extreme(arguments[0], Order::greater, "max");
}

Value index_of(const Value* arguments, std::size_t) {
  const List& list = arguments[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!work()) return too_long();
    if (equal(list.at(i), arguments[1]).is_true())
      return Value::integer(static_cast<std::int64_t>(i));
  }
  return Value::integer(-1);
}
Value last_index_of(const Value* arguments, std::size_t) {
  const List& list = arguments[0].as_list();
  for (std::size_t i = list.size(); i > 0; --i) {
    if (!work()) return too_long();
    if (equal(list.at(i - 1), arguments[1]).is_true())
      return Value::integer(static_cast<std::int64_t>(i - 1));
  }
  return Value::integer(-1);
}

Value includes(const Value* arguments, std::size_t) {
  if (arguments[0].is(Kind::list)) return contained(arguments[1], arguments[0]);
  return Value::boolean(equal(arguments[0], arguments[1]).is_true());
}

}  // namespace

void add_lists(Environment& environment, bool revised) {
  environment.options.parser.list_macros = true;
  const CallCost flattening = revised ? cost_flatten<true> : cost_flatten<false>;
  environment.function("slice", {{".list(T), int, int -> list(T)", slice, cost_new_list}});
  environment.function("flatten", {{".list(list(T)) -> list(T)", flatten, flattening},
                                   {".list(dyn), int -> list(dyn)", flatten, flattening}});
  for (const std::string_view element : kOrderedTypes) {
    const std::string list = cat("list(", element, ")");
    Overload made = make_overload({cat(".", list, " -> ", list), sort, cost_pairs});
    // Which one is meant is found out by sorting.
    made.matches.assign(1, ParameterMatch(Type::list({})));
    environment.overload("sort", std::move(made));
  }
  environment.cost_by_overload("sort");
  environment.function("reverse", {{".list(T) -> list(T)", reverse, cost_new_list}});
  environment.function("distinct", {{".list(T) -> list(T)", distinct, cost_pairs}});
  environment.function("lists.range",
                       {{"int -> list(int)", revised ? range<true> : range<false>, cost_new_list}});
}

void add_kubernetes_lists(Environment& environment) {
  for (const std::string_view element : kOrderedTypes) {
    const std::string list = cat(".list(", element, ")");
    environment.function("isSorted", {{cat(list, " -> bool"), is_sorted, cost_traverse_first}});
    environment.function("min", {{cat(list, " -> ", element), min, cost_traverse_first}});
    environment.function("max", {{cat(list, " -> ", element), max, cost_traverse_first}});
  }
  environment.function("sum",
                       {{".list(int) -> int", sum<Kind::integer>, cost_traverse_first},
                        {".list(uint) -> uint", sum<Kind::uinteger>, cost_traverse_first},
                        {".list(double) -> double", sum<Kind::real>, cost_traverse_first},
                        {".list(duration) -> duration", sum<Kind::duration>, cost_traverse_first}});
  environment.function("indexOf", {{".list(T), T -> int", index_of, cost_traverse_first}});
  environment.function("lastIndexOf", {{".list(T), T -> int", last_index_of, cost_traverse_first}});
}

void add_includes(Environment& environment) {
  environment.function("includes", {{".dyn, dyn -> bool", includes, cost_traverse_first}});
}

}  // namespace dibs::cel
