#include "cel/libraries/standard_library.h"

#include <re2/re2.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/cost/cost.h"
#include "cel/operations.h"
#include "cel/regex.h"

namespace dibs::cel {

namespace {

Value same(const Value* arguments, std::size_t) { return arguments[0]; }
Value size(const Value* arguments, std::size_t) { return size_of(arguments[0]); }
Value type(const Value* arguments, std::size_t) {
  return Value::type(std::string(arguments[0].type_name()));
}

Value conversion_error(std::string_view to) {
  return Value::error(cat("type conversion error from 'string' to '", to, "'"));
}

Value overflow() { return Value::error("integer overflow"); }
Value unsigned_overflow() { return Value::error("unsigned integer overflow"); }

Value int_of_uint(const Value* arguments, std::size_t) {
  if (arguments[0].as_integer() < 0) return overflow();
  return Value::integer(arguments[0].as_integer());
}

Value int_of_double(const Value* arguments, std::size_t) {
  const double d = arguments[0].as_real();
  if (!(d > -9223372036854775808.0 && d < 9223372036854775808.0)) return overflow();
  return Value::integer(static_cast<std::int64_t>(d));
}

Value int_of_string(const Value* arguments, std::size_t) {
  std::string_view text = arguments[0].text();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  std::int64_t number;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return conversion_error("int");
  return Value::integer(number);
}

Value int_of_timestamp(const Value* arguments, std::size_t) {
  return Value::integer(arguments[0].timestamp_seconds());
}

Value int_of_duration(const Value* arguments, std::size_t) {
  return Value::integer(arguments[0].as_duration());
}

Value uint_of_int(const Value* arguments, std::size_t) {
  if (arguments[0].as_integer() < 0) return unsigned_overflow();
  return Value::uinteger(arguments[0].as_uinteger());
}

Value uint_of_double(const Value* arguments, std::size_t) {
  const double d = arguments[0].as_real();
  if (!(d >= 0 && d < 18446744073709551616.0)) return unsigned_overflow();
  return Value::uinteger(static_cast<std::uint64_t>(d));
}

Value uint_of_string(const Value* arguments, std::size_t) {
  const std::string_view text = arguments[0].text();
  std::uint64_t number;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    return conversion_error("uint");
  return Value::uinteger(number);
}

Value double_of_int(const Value* arguments, std::size_t) {
  return Value::real(static_cast<double>(arguments[0].as_integer()));
}

Value double_of_uint(const Value* arguments, std::size_t) {
  return Value::real(static_cast<double>(arguments[0].as_uinteger()));
}

Value double_of_string(const Value* arguments, std::size_t) {
  std::string_view text = arguments[0].text();
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double number;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ptr != text.data() + text.size() || text.empty()) return conversion_error("double");
  if (end.ec == std::errc::result_out_of_range) {
    number = std::strtod(std::string(text).c_str(), nullptr);
    if (std::isinf(number)) return conversion_error("double");
  } else if (end.ec != std::errc()) {
    return conversion_error("double");
  }
  return Value::real(number);
}

Value bool_of_string(const Value* arguments, std::size_t) {
  const std::string_view text = arguments[0].text();
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return Value::boolean(true);
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return Value::boolean(false);
  }
  return conversion_error("bool");
}

Value string_of_bool(const Value* arguments, std::size_t) {
  return Value::borrow(arguments[0].as_boolean() ? "true" : "false");
}

Value string_of_int(const Value* arguments, std::size_t) {
  return Value::string(std::to_string(arguments[0].as_integer()));
}

Value string_of_uint(const Value* arguments, std::size_t) {
  return Value::string(std::to_string(arguments[0].as_uinteger()));
}

Value string_of_double(const Value* arguments, std::size_t) {
  return Value::string(double_text(arguments[0].as_real()));
}

Value string_of_bytes(const Value* arguments, std::size_t) {
  if (!is_valid_utf8(arguments[0].text()))
    return Value::error("invalid UTF-8 in bytes, cannot convert to string");
  return Value::string(std::string(arguments[0].text()));
}

Value string_of_timestamp(const Value* arguments, std::size_t) {
  return Value::string(show_timestamp(arguments[0].timestamp_seconds(),
                                      arguments[0].timestamp_nanos(),
                                      arguments[0].timestamp_zone()));
}

Value string_of_duration(const Value* arguments, std::size_t) {
  return Value::string(show_duration(arguments[0].as_duration()));
}

Value bytes_of_string(const Value* arguments, std::size_t) {
  return Value::bytes(std::string(arguments[0].text()));
}

Value contains(const Value* arguments, std::size_t) {
  return Value::boolean(arguments[0].text().find(arguments[1].text()) != std::string_view::npos);
}

Value starts_with(const Value* arguments, std::size_t) {
  return Value::boolean(arguments[0].text().starts_with(arguments[1].text()));
}

Value ends_with(const Value* arguments, std::size_t) {
  return Value::boolean(arguments[0].text().ends_with(arguments[1].text()));
}

Value matches(const Value* arguments, std::size_t) {
  std::string message;
  const re2::RE2* pattern = find_pattern(arguments[1].text(), message);
  if (pattern == nullptr) return Value::error(std::move(message));
  const std::string_view text = arguments[0].text();
  return Value::boolean(
      re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *pattern));
}

void add_operators(Environment& environment, bool mixed_order) {
  const auto declare = [&](std::string_view name, std::initializer_list<std::string_view> all) {
    for (const std::string_view signature : all)
      environment.overload(name, make_overload({signature, nullptr, nullptr}));
  };
  declare("_?_:_", {"bool, A, A -> A"});
  declare("_==_", {"A, A -> bool"});
  declare("_!=_", {"A, A -> bool"});
  declare("!_", {"bool -> bool"});
  // What nothing is known of becomes what the first of these takes.
  declare("-_", {"double -> double", "int -> int"});
  declare("_+_", {"bytes, bytes -> bytes", "double, double -> double",
                  "duration, duration -> duration", "duration, timestamp -> timestamp",
                  "timestamp, duration -> timestamp", "int, int -> int",
                  "list(A), list(A) -> list(A)", "string, string -> string", "uint, uint -> uint"});
  declare("_-_", {"double, double -> double", "duration, duration -> duration", "int, int -> int",
                  "timestamp, duration -> timestamp", "timestamp, timestamp -> duration",
                  "uint, uint -> uint"});
  for (const std::string_view name : {"_*_", "_/_"})
    declare(name, {"double, double -> double", "int, int -> int", "uint, uint -> uint"});
  declare("_%_", {"int, int -> int", "uint, uint -> uint"});
  for (const std::string_view name : {"_<_", "_<=_", "_>_", "_>=_"}) {
    declare(name, {"bool, bool -> bool", "int, int -> bool", "uint, uint -> bool",
                   "double, double -> bool", "string, string -> bool", "bytes, bytes -> bool",
                   "timestamp, timestamp -> bool", "duration, duration -> bool"});
    if (mixed_order)
      declare(name, {"int, uint -> bool", "int, double -> bool", "uint, int -> bool",
                     "uint, double -> bool", "double, int -> bool", "double, uint -> bool"});
  }
  declare("@in", {"A, list(A) -> bool", "A, map(A, B) -> bool"});
  declare("_[_]", {"list(A), int -> A", "map(A, B), A -> B"});
}

}  // namespace

void add_standard_library(Environment& environment, const StandardOptions& options) {
  for (const std::string_view name : {"bool", "int", "uint", "double", "string", "bytes",
                                      "google.protobuf.Timestamp", "google.protobuf.Duration"})
    environment.type_name(std::string(name), Type::parse(name));
  environment.type_name("null_type", TypeKind::null);
  environment.type_name("list", Type::list({}));
  environment.type_name("map", Type::map({}, {}));
  environment.type_name("type", Type::of_type({}));
  add_operators(environment, options.mixed_order);
  environment.function("size", {{"string -> int", size},
                                {"bytes -> int", size},
                                {"list(A) -> int", size},
                                {"map(A, B) -> int", size},
                                {".string -> int", size},
                                {".bytes -> int", size},
                                {".list(A) -> int", size},
                                {".map(A, B) -> int", size}});
  environment.function("contains", {{".string, string -> bool", contains, cost_contains}});
  const CallCost affix_cost = options.affix_counts ? cost_scan_second : cost_scan_first;
  environment.function("startsWith", {{".string, string -> bool", starts_with, affix_cost}});
  environment.function("endsWith", {{".string, string -> bool", ends_with, affix_cost}});
  environment.function("matches", {{".string, string -> bool", matches, cost_match},
                                   {"string, string -> bool", matches,
                                    options.matches_counts ? cost_match : nullptr}});
  environment.function("bool", {{"bool -> bool", same}, {"string -> bool", bool_of_string}});
  environment.function("int", {{"int -> int", same},
                               {"uint -> int", int_of_uint},
                               {"double -> int", int_of_double},
                               {"string -> int", int_of_string},
                               {"timestamp -> int", int_of_timestamp},
                               {"duration -> int", int_of_duration}});
  environment.function("uint", {{"uint -> uint", same},
                                {"int -> uint", uint_of_int},
                                {"double -> uint", uint_of_double},
                                {"string -> uint", uint_of_string}});
  environment.function("double", {{"double -> double", same},
                                  {"int -> double", double_of_int},
                                  {"uint -> double", double_of_uint},
                                  {"string -> double", double_of_string}});
  environment.function("string", {{"string -> string", same},
                                  {"bool -> string", string_of_bool},
                                  {"int -> string", string_of_int},
                                  {"uint -> string", string_of_uint},
                                  {"double -> string", string_of_double},
                                  {"bytes -> string", string_of_bytes, cost_scan_first},
                                  {"timestamp -> string", string_of_timestamp},
                                  {"duration -> string", string_of_duration}});
  environment.function(
      "bytes", {{"bytes -> bytes", same}, {"string -> bytes", bytes_of_string, cost_scan_first}});
  environment.function("dyn", {{"A -> dyn", same}});
  environment.function("type", {{"A -> type(A)", type}});
  add_time_functions(environment);
}

}  // namespace dibs::cel
