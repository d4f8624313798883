#include "json/go_print.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "json/number.h"

namespace dibs::json {
namespace {

/// One of the two verbs over a tree.
class Printer {
 public:
  enum class Verb : char { value, syntax };

  Printer(std::string& out, Verb verb, GoKeys keys) : out_(out), verb_(verb), keys_(keys) {}

  void print(const Value& value) {
    switch (value.kind()) {
      case Kind::null:
        out_.append(verb_ == Verb::syntax ? "interface {}(nil)" : "<nil>");
        return;
      case Kind::boolean:
        append(out_, value.as_bool());
        return;
      case Kind::integer:
        append(out_, value.as_int());
        return;
      case Kind::number:
        append_short_double(out_, value.as_double());
        return;
      case Kind::string:
        print_text(value.as_string());
        return;
      default:
        break;
    }
    // What parsers let through may be deeper than the stack.
    if (depth_ == kMostDepth) return;
    ++depth_;
    if (value.is_array()) {
      print_list(value);
    } else {
      print_map(value);
    }
    --depth_;
  }

 private:
  static constexpr int kMostDepth = 1000;

  void print_text(std::string_view text) {
    if (verb_ == Verb::syntax) {
      out_.append(quoted(text));
    } else {
      out_.append(text);
    }
  }

  const char* between() const { return verb_ == Verb::syntax ? ", " : " "; }

  void print_list(const Value& list) {
    const bool syntax = verb_ == Verb::syntax;
    out_.append(syntax ? "[]interface {}{" : "[");
    const char* before = "";
    for (const Value& item : list.items()) {
      out_.append(before);
      print(item);
      before = between();
    }
    out_.push_back(syntax ? '}' : ']');
  }

  void print_map(const Value& map) {
    std::vector<const Member*> members;
    for (const Member& member : map.members()) members.push_back(&member);
    std::sort(members.begin(), members.end(),
              [](const Member* a, const Member* b) { return a->key() < b->key(); });
    const bool syntax = verb_ == Verb::syntax;
    if (syntax) {
      append(out_, keys_ == GoKeys::any ? "map[interface {}]" : "map[string]", "interface {}{");
    } else {
      out_.append("map[");
    }
    const char* before = "";
    for (const Member* member : members) {
      out_.append(before);
      print_text(member->key());
      out_.push_back(':');
      print(member->value());
      before = between();
    }
    out_.push_back(syntax ? '}' : ']');
  }

  std::string& out_;
  Verb verb_;
  GoKeys keys_;
  int depth_ = 0;
};

}  // namespace

void append_go_value(std::string& out, const Value& value) {
  Printer(out, Printer::Verb::value, GoKeys::text).print(value);
}

std::string go_value(const Value& value) {
  std::string out;
  append_go_value(out, value);
  return out;
}

std::string go_float(double number) {
  std::string out;
  append_short_double(out, number);
  return out;
}

std::string go_syntax(const Value& value, GoKeys keys) {
  std::string out;
  Printer(out, Printer::Verb::syntax, keys).print(value);
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

std::string_view go_kind(const Value& value) {
  switch (value.kind()) {
    case Kind::null:
      return "null";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
    case Kind::number:
      return "number";
    case Kind::string:
      return "string";
    case Kind::array:
      return "array";
    case Kind::object:
      return "object";
  }
  return "";
}

}  // namespace dibs::json
