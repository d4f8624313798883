#pragma once
// The operators of the language over values: equality, order, arithmetic, indexing.
//
// All of them are total: what cannot be done is an error value with the text that users see. None
// looks at its operands being errors; the evaluator does that before.

#include <string>

#include "cel/value.h"

namespace dibs::cel {

/// No operation makes longer text or longer lists: what an expression costs does not bound them.
inline constexpr std::size_t kMaxTextBytes = 16 << 20;
inline constexpr std::size_t kMaxItems = 1 << 20;
Value too_long();

/// Steps through what values hold, for which costs do not account either: a small expression can
/// make a list of lists of lists that share their parts. False from work() says that the evaluation
/// that goes on in this thread has had its share; without one there is no limit.
class WorkShare {
 public:
  WorkShare();
  WorkShare(const WorkShare&) = delete;
  WorkShare& operator=(const WorkShare&) = delete;
  ~WorkShare();

 private:
  std::uint64_t before_;
};
bool work();

/// true, false, or an error where a type refuses to be compared with others.
Value equal(const Value& a, const Value& b);

enum class Order : std::uint8_t { less, same, greater, unordered, no_overload };
/// Numbers compare across their kinds. Unordered: one of them is NaN.
Order order(const Value& a, const Value& b);

Value add(const Value& a, const Value& b);
Value subtract(const Value& a, const Value& b);
Value multiply(const Value& a, const Value& b);
Value divide(const Value& a, const Value& b);
Value modulo(const Value& a, const Value& b);
Value negate(const Value& a);

/// `x in container`.
Value contained(const Value& x, const Value& container);
/// container[key].
Value at(const Value& container, const Value& key);
/// operand.field.
Value select(const Value& operand, const Value& field);
/// container[?key] and operand.?field: an optional, or an error; `lenient`: nothing where there are
/// neither fields nor elements.
Value at_optional(const Value& container, const Value& key, bool lenient = true);
/// has(operand.field).
Value has_field(const Value& operand, const Value& field);
/// The position that a number stands for in a list; false when it is none.
bool list_position(const Value& key, std::int64_t& position);
/// Elements, entries, bytes or code points.
Value size_of(const Value& value);

/// What Go calls the value's type, where its errors show that.
std::string_view go_name(const Value& value);
/// For what nothing can be asked in a container.
Value invalid_qualifier(const Value& key);
/// "no such overload: name(int, string)".
Value no_such_overload(std::string_view function, const Value* arguments, std::size_t count);
/// How a key is shown in "no such key: ...".
std::string show_key(const Value& key);

std::size_t code_points(std::string_view text);
void append_code_point(std::string& out, std::uint32_t code_point);
/// Steps over one code point; broken UTF-8 counts byte by byte as U+FFFD.
std::uint32_t next_code_point(std::string_view text, std::size_t& offset);

/// As Go's strconv 'g' with the fewest digits, an exponent below 1e-4 and from 1e21 on.
std::string show_double(double number);
/// What string(x) gives: the same, but with an exponent from 1e6 on.
std::string double_text(double number);
bool is_valid_timestamp(std::int64_t seconds);

}  // namespace dibs::cel
