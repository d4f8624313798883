#include "cel/libraries/extensions.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

bool is_zero(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return true;
    case Kind::boolean:
    case Kind::integer:
    case Kind::uinteger:
    case Kind::duration:
      return value.as_integer() == 0;
    case Kind::real:
      return value.as_real() == 0;
    case Kind::string:
    case Kind::bytes:
      return value.text().empty();
    case Kind::list:
      return value.as_list().size() == 0;
    case Kind::map:
      return value.as_map().size() == 0;
    case Kind::timestamp:
      // The first moment of year 1, where Go's clock begins.
      return value.timestamp_seconds() == -62135596800 && value.timestamp_nanos() == 0;
    default:
      return false;
  }
}

Value of(const Value* arguments, std::size_t) { return Value::some(arguments[0]); }
Value none(const Value*, std::size_t) { return Value::none(); }
Value of_non_zero(const Value* arguments, std::size_t) {
  return is_zero(arguments[0]) ? Value::none() : Value::some(arguments[0]);
}
Value has_value(const Value* arguments, std::size_t) {
  return Value::boolean(arguments[0].has_content());
}
Value value(const Value* arguments, std::size_t) {
  if (arguments[0].has_content()) return arguments[0].content();
  return Value::borrow("optional.none() dereference", Kind::error);
}

Value unwrap(const Value* arguments, std::size_t) {
  std::vector<Value> items;
  const List& list = arguments[0].as_list();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value item = list.at(i);
    if (!item.is(Kind::optional)) return Value::no_such_overload();
    if (item.has_content()) items.push_back(item.content());
  }
  return Value::list(std::move(items));
}

Value first(const Value* arguments, std::size_t) {
  const List& list = arguments[0].as_list();
  return list.size() == 0 ? Value::none() : Value::some(list.at(0));
}

Value last(const Value* arguments, std::size_t) {
  const List& list = arguments[0].as_list();
  return list.size() == 0 ? Value::none() : Value::some(list.at(list.size() - 1));
}

}  // namespace

void add_optionals(Environment& environment, int version) {
  environment.options.parser.optional_syntax = true;
  environment.type_name("optional_type", Type::optional({}));
  environment.function("optional.of", {{"A -> optional(A)", of}});
  environment.function("optional.ofNonZeroValue", {{"A -> optional(A)", of_non_zero}});
  environment.function("optional.none", {{"-> optional(A)", none}});
  environment.function("hasValue", {{".optional(A) -> bool", has_value}});
  environment.function("value", {{".optional(A) -> A", value}});
  // These two are evaluated by the evaluator itself: their argument is lazy.
  environment.function("or", {{".optional(A), optional(A) -> optional(A)"}});
  environment.function("orValue", {{".optional(A), A -> A"}});
  environment.function("_[_]", {{"optional(list(A)), int -> optional(A)"},
                                {"optional(map(A, B)), A -> optional(B)"}});
  environment.function("_[?_]", {{"list(A), int -> optional(A)"},
                                 {"optional(list(A)), int -> optional(A)"},
                                 {"map(A, B), A -> optional(B)"},
                                 {"optional(map(A, B)), A -> optional(B)"}});
  if (version < 2) return;
  environment.function("optional.unwrap", {{"list(optional(A)) -> list(A)", unwrap}});
  environment.function("unwrapOpt", {{".list(optional(A)) -> list(A)", unwrap}});
  environment.function("first", {{".list(A) -> optional(A)", first}});
  environment.function("last", {{".list(A) -> optional(A)", last}});
}

void add_bindings(Environment& environment) { environment.options.parser.bindings = true; }

void add_two_variable_macros(Environment& environment) {
  environment.options.parser.two_variable_macros = true;
}

}  // namespace dibs::cel
