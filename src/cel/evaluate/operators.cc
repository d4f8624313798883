#include "cel/evaluate/operators.h"

#include <algorithm>

#include "cel/cost/cost.h"
#include "cel/operations.h"

namespace dibs::cel {
namespace {

/// What reading the shorter of two texts costs.
std::uint64_t scan_cost(std::uint64_t size) {
  return size <= 10 ? size != 0 : scaled(size, kScanFactor);
}

bool is_text(const Value& value) { return value.is(Kind::string) || value.is(Kind::bytes); }

bool has_size(const Value& value) {
  return value.is(Kind::string) || value.is(Kind::bytes) || value.is(Kind::list) ||
         value.is(Kind::map) || value.is(Kind::optional) || value.is(Kind::opaque);
}

std::uint64_t comparison_cost(const Value& left, const Value& right) {
  const std::uint64_t a = has_size(left) ? cost_size(left) : 1;
  if (a == 0) return 0;
  return scan_cost(std::min(a, has_size(right) ? cost_size(right) : 1));
}

/// Whether values of this kind know an operator at all, if only to refuse what is on its right.
bool knows(Kind kind, OpCode code) {
  switch (kind) {
    case Kind::string:
    case Kind::timestamp:
    case Kind::duration:
    case Kind::integer:
    case Kind::uinteger:
      return true;
    case Kind::real:
      return code != OpCode::modulo;
    case Kind::boolean:
      return code >= OpCode::less || code == OpCode::negate;
    case Kind::bytes:
      return code >= OpCode::less || code == OpCode::add;
    case Kind::list:
      return code == OpCode::add;
    default:
      return false;
  }
}

/// Null for an operator that all values know.
const char* refusal_text(OpCode code) {
  switch (code) {
    case OpCode::negate:
      return "no such overload: -_";
    case OpCode::add:
      return "no such overload: _+_";
    case OpCode::subtract:
      return "no such overload: _-_";
    case OpCode::multiply:
      return "no such overload: _*_";
    case OpCode::divide:
      return "no such overload: _/_";
    case OpCode::modulo:
      return "no such overload: _%_";
    case OpCode::less:
      return "no such overload: _<_";
    case OpCode::less_equal:
      return "no such overload: _<=_";
    case OpCode::greater:
      return "no such overload: _>_";
    case OpCode::greater_equal:
      return "no such overload: _>=_";
    default:
      return nullptr;
  }
}

/// An operator that the value on its left does not know is named in the error.
Value named_refusal(OpCode code, const Value& left, Value made) {
  if (!made.is_error() || made.text() != "no such overload" || knows(left.kind(), code))
    return made;
  const char* text = refusal_text(code);
  return text == nullptr ? made : Value::borrow(text, Kind::error);
}

Value ordered(OpCode code, Order order) {
  if (order == Order::no_overload) return Value::no_such_overload();
  if (order == Order::unordered) return Value::borrow("NaN values cannot be ordered", Kind::error);
  switch (code) {
    case OpCode::less:
      return Value::boolean(order == Order::less);
    case OpCode::less_equal:
      return Value::boolean(order != Order::greater);
    case OpCode::greater:
      return Value::boolean(order == Order::greater);
    default:
      return Value::boolean(order != Order::less);
  }
}

}  // namespace

Value apply_operator(OpCode code, const Value& left, const Value& right) {
  switch (code) {
    case OpCode::add:
      return named_refusal(code, left, add(left, right));
    case OpCode::subtract:
      return named_refusal(code, left, subtract(left, right));
    case OpCode::multiply:
      return named_refusal(code, left, multiply(left, right));
    case OpCode::divide:
      return named_refusal(code, left, divide(left, right));
    case OpCode::modulo:
      return named_refusal(code, left, modulo(left, right));
    case OpCode::equal:
      return equal(left, right);
    case OpCode::not_equal:
      return Value::boolean(!equal(left, right).is_true());
    case OpCode::in:
      return contained(left, right);
    default:
      return named_refusal(code, left, ordered(code, order(left, right)));
  }
}

Value apply_negation(const Value& operand) {
  return named_refusal(OpCode::negate, operand, negate(operand));
}

std::uint64_t operator_cost(const Op& op, const Value& left, const Value& right) {
  switch (op.code) {
    case OpCode::equal:
      if (left.is(Kind::opaque)) return 1;
      return comparison_cost(left, right);
    case OpCode::not_equal:
      return comparison_cost(left, right);
    case OpCode::less:
    case OpCode::less_equal:
    case OpCode::greater:
    case OpCode::greater_equal:
      return op.flag && (is_text(left) || is_text(right)) ? comparison_cost(left, right) : 1;
    case OpCode::add:
      if (!op.flag || !(is_text(left) || is_text(right))) return 1;
      return scaled(cost_size(left) + cost_size(right), kScanFactor);
    case OpCode::in:
      if (op.slot2 != 0) return 0;
      return op.flag && right.is(Kind::list) ? cost_size(right) : 1;
    default:
      return 1;
  }
}

}  // namespace dibs::cel
