#include <cmath>
#include <limits>

#include "cel/operations.h"
#include "cel/testing/spec_libraries.h"

namespace dibs::cel {

namespace {

/// The extreme of all arguments, or of the elements of the only one.
Value extreme(const Value* arguments, std::size_t count, Order wanted) {
  std::vector<Value> items;
  if (count == 1 && arguments[0].is(Kind::list)) {
    for (std::size_t i = 0; i < arguments[0].as_list().size(); ++i)
      items.push_back(arguments[0].as_list().at(i));
    if (items.empty()) return Value::error("math.greatest and math.least need at least one value");
  } else {
    items.assign(arguments, arguments + count);
  }
  Value best = items[0];
  for (const Value& item : items) {
    if (!item.is_number()) return Value::no_such_overload();
    if (order(item, best) == wanted) best = item;
  }
  return best;
}

Value greatest(const Value* arguments, std::size_t count) {
  return extreme(arguments, count, Order::greater);
}
Value least(const Value* arguments, std::size_t count) {
  return extreme(arguments, count, Order::less);
}

template <double (*Function)(double)>
Value of_real(const Value* arguments, std::size_t) {
  return Value::real(Function(arguments[0].as_real()));
}

Value sqrt_of(const Value* arguments, std::size_t) {
  const Value& x = arguments[0];
  return Value::real(std::sqrt(x.is(Kind::real)      ? x.as_real()
                               : x.is(Kind::integer) ? static_cast<double>(x.as_integer())
                                                     : static_cast<double>(x.as_uinteger())));
}

Value abs_int(const Value* arguments, std::size_t) {
  return arguments[0].as_integer() < 0 ? negate(arguments[0]) : arguments[0];
}
Value abs_real(const Value* arguments, std::size_t) {
  return Value::real(std::fabs(arguments[0].as_real()));
}
Value same(const Value* arguments, std::size_t) { return arguments[0]; }

Value sign_int(const Value* arguments, std::size_t) {
  const std::int64_t i = arguments[0].as_integer();
  return Value::integer(i > 0 ? 1 : i < 0 ? -1 : 0);
}
Value sign_uint(const Value* arguments, std::size_t) {
  return Value::uinteger(arguments[0].as_uinteger() > 0 ? 1 : 0);
}
Value sign_real(const Value* arguments, std::size_t) {
  const double d = arguments[0].as_real();
  return Value::real(d > 0 ? 1.0 : d < 0 ? -1.0 : d);
}

Value is_nan(const Value* arguments, std::size_t) {
  return Value::boolean(std::isnan(arguments[0].as_real()));
}
Value is_inf(const Value* arguments, std::size_t) {
  return Value::boolean(std::isinf(arguments[0].as_real()));
}
Value is_finite(const Value* arguments, std::size_t) {
  return Value::boolean(std::isfinite(arguments[0].as_real()));
}

Value like(const Value& model, std::uint64_t bits) {
  return model.is(Kind::uinteger) ? Value::uinteger(bits)
                                  : Value::integer(static_cast<std::int64_t>(bits));
}

Value bit_and(const Value* arguments, std::size_t) {
  return like(arguments[0], arguments[0].as_uinteger() & arguments[1].as_uinteger());
}
Value bit_or(const Value* arguments, std::size_t) {
  return like(arguments[0], arguments[0].as_uinteger() | arguments[1].as_uinteger());
}
Value bit_xor(const Value* arguments, std::size_t) {
  return like(arguments[0], arguments[0].as_uinteger() ^ arguments[1].as_uinteger());
}
Value bit_not(const Value* arguments, std::size_t) {
  return like(arguments[0], ~arguments[0].as_uinteger());
}

Value shift_left(const Value* arguments, std::size_t) {
  const std::int64_t by = arguments[1].as_integer();
  if (by < 0) return Value::error("math.bitShiftLeft() negative offset");
  return like(arguments[0], by > 63 ? 0 : arguments[0].as_uinteger() << by);
}

/// The sign is not extended.
Value shift_right(const Value* arguments, std::size_t) {
  const std::int64_t by = arguments[1].as_integer();
  if (by < 0) return Value::error("math.bitShiftRight() negative offset");
  return like(arguments[0], by > 63 ? 0 : arguments[0].as_uinteger() >> by);
}

}  // namespace

void add_math(Environment& environment) {
  for (const auto& [name, call] :
       {std::pair<std::string_view, Implementation>{"math.greatest", greatest},
        {"math.least", least}}) {
    environment.function(name, {{"int... -> int", call},
                                {"uint... -> uint", call},
                                {"double... -> double", call},
                                {"list(int) -> int", call},
                                {"list(uint) -> uint", call},
                                {"list(double) -> double", call},
                                {"dyn... -> dyn", call}});
  }
  environment.function("math.ceil", {{"double -> double", of_real<std::ceil>}});
  environment.function("math.floor", {{"double -> double", of_real<std::floor>}});
  environment.function("math.round", {{"double -> double", of_real<std::round>}});
  environment.function("math.trunc", {{"double -> double", of_real<std::trunc>}});
  environment.function(
      "math.sqrt",
      {{"double -> double", sqrt_of}, {"int -> double", sqrt_of}, {"uint -> double", sqrt_of}});
  environment.function(
      "math.abs",
      {{"int -> int", abs_int}, {"uint -> uint", same}, {"double -> double", abs_real}});
  environment.function(
      "math.sign",
      {{"int -> int", sign_int}, {"uint -> uint", sign_uint}, {"double -> double", sign_real}});
  environment.function("math.isNaN", {{"double -> bool", is_nan}});
  environment.function("math.isInf", {{"double -> bool", is_inf}});
  environment.function("math.isFinite", {{"double -> bool", is_finite}});
  const auto bits = [&](std::string_view name, Implementation call) {
    environment.function(name, {{"int, int -> int", call}, {"uint, uint -> uint", call}});
  };
  bits("math.bitAnd", bit_and);
  bits("math.bitOr", bit_or);
  bits("math.bitXor", bit_xor);
  environment.function("math.bitNot", {{"int -> int", bit_not}, {"uint -> uint", bit_not}});
  environment.function("math.bitShiftLeft",
                       {{"int, int -> int", shift_left}, {"uint, int -> uint", shift_left}});
  environment.function("math.bitShiftRight",
                       {{"int, int -> int", shift_right}, {"uint, int -> uint", shift_right}});
}

}  // namespace dibs::cel
