#include "cel/ext_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cel/calendar.h"
#include "cel/operations.h"

namespace dibs::cel {

namespace {

constexpr int kDefaultPrecision = 6;
constexpr int kMaxPrecision = 1000;

std::string show_real(double number) {
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return show_double(number);
}

bool show(std::string& out, const Value& value);

bool show_map(std::string& out, const Map& map) {
  std::vector<std::pair<std::string, std::string>> entries(map.size());
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (!show(entries[i].first, map.key_at(i)) || !show(entries[i].second, map.value_at(i)))
      return false;
  }
  std::sort(entries.begin(), entries.end());
  out += '{';
  for (std::size_t i = 0; i < entries.size(); ++i)
    append(out, i == 0 ? "" : ", ", entries[i].first, ": ", entries[i].second);
  out += '}';
  return true;
}

/// What %s shows; false for kinds that have no text.
bool show(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::real:
      out += show_real(value.as_real());
      return true;
    case Kind::timestamp:
      out += show_timestamp(value.timestamp_seconds(), value.timestamp_nanos());
      return true;
    case Kind::duration:
      out += show_duration(value.as_duration());
      return true;
    case Kind::list:
      out += '[';
      for (std::size_t i = 0; i < value.as_list().size(); ++i) {
        if (i > 0) out += ", ";
        if (!show(out, value.as_list().at(i))) return false;
      }
      out += ']';
      return true;
    case Kind::map:
      return show_map(out, value.as_map());
    case Kind::optional:
    case Kind::opaque:
    case Kind::error:
      return false;
    default:
      out += show_key(value);
      return true;
  }
}

std::string in_base(const Value& value, int base) {
  char buffer[80];
  const auto end = value.is(Kind::uinteger)
                       ? std::to_chars(buffer, buffer + sizeof buffer, value.as_uinteger(), base)
                       : std::to_chars(buffer, buffer + sizeof buffer, value.as_integer(), base);
  return std::string(buffer, end.ptr);
}

std::string with_precision(double number, int precision, char verb) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  const char pattern[] = {'%', '.', '*', verb, '\0'};
  std::string out(400 + static_cast<std::size_t>(precision), '\0');
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int length = std::snprintf(out.data(), out.size(), pattern, precision, number);
#pragma GCC diagnostic pop
  out.resize(static_cast<std::size_t>(length));
  return out;
}

std::string misused(std::string_view rule, const Value& value) {
  return cat("error during formatting: ", rule, ", was given ", value.type_name());
}

bool is_whole(const Value& value) { return value.is(Kind::integer) || value.is(Kind::uinteger); }

/// Appends one argument; the error is empty when that worked.
std::string append_clause(std::string& out, char verb, int precision, const Value& value) {
  switch (verb) {
    case 's':
      if (show(out, value)) return "";
      return misused(
          "string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
          "lists, types, durations, and timestamps",
          value);
    case 'd':
      if (is_whole(value)) {
        out += in_base(value, 10);
        return "";
      }
      // Infinities and NaN only: they are what integers become that do not fit.
      if (value.is(Kind::real) && !std::isfinite(value.as_real())) {
        out += show_real(value.as_real());
        return "";
      }
      return misused("decimal clause can only be used on integers", value);
    case 'o':
      if (!is_whole(value)) return misused("octal clause can only be used on integers", value);
      out += in_base(value, 8);
      return "";
    case 'b':
      if (value.is(Kind::boolean)) {
        out += value.as_boolean() ? '1' : '0';
        return "";
      }
      if (!is_whole(value))
        return misused("only integers and bools can be formatted as binary", value);
      out += in_base(value, 2);
      return "";
    case 'x':
    case 'X': {
      std::string shown;
      if (is_whole(value))
        shown = in_base(value, 16);
      else if (value.is(Kind::string) || value.is(Kind::bytes))
        shown = hex_encode(value.text());
      else
        return misused("only integers, byte buffers, and strings can be formatted as hex", value);
      out += verb == 'X' ? to_upper(shown) : shown;
      return "";
    }
    case 'e':
    case 'f': {
      double number;
      if (value.is(Kind::real))
        number = value.as_real();
      else if (value.is(Kind::integer))
        number = static_cast<double>(value.as_integer());
      else if (value.is(Kind::uinteger))
        number = static_cast<double>(value.as_uinteger());
      else
        return misused(verb == 'e' ? "scientific clause can only be used on doubles"
                                   : "fixed-point clause can only be used on doubles",
                       value);
      out += with_precision(number, precision, verb);
      return "";
    }
    default:
      return cat("could not parse formatting clause: unrecognized formatting clause \"", verb,
                 "\"");
  }
}

}  // namespace

Value format_string(std::string_view format, const List& arguments) {
  std::string out;
  std::size_t used = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (++i >= format.size()) return Value::error("unexpected end of string");
    if (format[i] == '%') {
      out += '%';
      continue;
    }
    int precision = kDefaultPrecision;
    if (format[i] == '.') {
      precision = 0;
      for (++i; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i) {
        precision = precision * 10 + (format[i] - '0');
        if (precision > kMaxPrecision)
          return Value::error("could not parse formatting clause: precision too large");
      }
      if (i >= format.size())
        return Value::error("could not parse formatting clause: unexpected end of string");
    }
    if (std::string_view("sdobxXef").find(format[i]) == std::string_view::npos) {
      return Value::error(cat(
          "could not parse formatting clause: unrecognized formatting clause \"", format[i], "\""));
    }
    if (used >= arguments.size()) return Value::error(cat("index ", used, " out of range"));
    std::string wrong = append_clause(out, format[i], precision, arguments.at(used++));
    if (!wrong.empty()) return Value::error(std::move(wrong));
  }
  return Value::string(std::move(out));
}

}  // namespace dibs::cel
