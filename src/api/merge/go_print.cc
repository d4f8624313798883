#include "api/merge/go_print.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/strings.h"

namespace dibs::api {
namespace {

using json::Kind;
using json::Value;

struct Pair {
  std::string_view key;
  const Value* value;
};

std::vector<Pair> sorted_members(const Value& object) {
  std::vector<Pair> pairs;
  pairs.reserve(object.size());
  for (const auto& member : object.members()) pairs.push_back({member.key(), &member.value()});
  std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
  return pairs;
}

// Go's %v of a float64: the shortest digits, with an exponent below 1e-4 and from 1e21 on.
void append_double(std::string& out, double number) {
  if (std::isnan(number) || std::isinf(number)) {
    out.append(std::isnan(number) ? "NaN" : number > 0 ? "+Inf" : "-Inf");
    return;
  }
  char digits[64];
  const double size = std::fabs(number);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e21);
  const auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(digits, digits + sizeof(digits), number, format).ptr;
  out.append(digits, end);
}

void append_syntax(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::string:
      out.append(quoted(value.as_string()));
      return;
    case Kind::array: {
      out.append("[]interface {}{");
      bool first = true;
      for (const Value& item : value.items()) {
        if (!first) out.append(", ");
        first = false;
        append_syntax(out, item);
      }
      out.push_back('}');
      return;
    }
    case Kind::object: {
      out.append("map[string]interface {}{");
      bool first = true;
      for (const Pair& pair : sorted_members(value)) {
        if (!first) out.append(", ");
        first = false;
        append(out, quoted(pair.key), ':');
        append_syntax(out, *pair.value);
      }
      out.push_back('}');
      return;
    }
    case Kind::null:
      out.append("interface {}(nil)");
      return;
    default:
      append_go_value(out, value);
  }
}

}  // namespace

void append_go_value(std::string& out, const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      out.append("<nil>");
      return;
    case Kind::boolean:
      append(out, value.as_bool());
      return;
    case Kind::integer:
      append(out, value.as_int());
      return;
    case Kind::number:
      append_double(out, value.as_double());
      return;
    case Kind::string:
      out.append(value.as_string());
      return;
    case Kind::array: {
      out.push_back('[');
      bool first = true;
      for (const Value& item : value.items()) {
        if (!first) out.push_back(' ');
        first = false;
        append_go_value(out, item);
      }
      out.push_back(']');
      return;
    }
    case Kind::object: {
      out.append("map[");
      bool first = true;
      for (const Pair& pair : sorted_members(value)) {
        if (!first) out.push_back(' ');
        first = false;
        append(out, pair.key, ':');
        append_go_value(out, *pair.value);
      }
      out.push_back(']');
      return;
    }
  }
}

std::string go_value(const Value& value) {
  std::string out;
  append_go_value(out, value);
  return out;
}

std::string go_syntax(const Value& value) {
  std::string out;
  append_syntax(out, value);
  return out;
}

std::string_view go_type(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return "<nil>";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int64";
    case Kind::number:
      return "float64";
    case Kind::string:
      return "string";
    case Kind::array:
      return "[]interface {}";
    case Kind::object:
      return "map[string]interface {}";
  }
  return "";
}

}  // namespace dibs::api
