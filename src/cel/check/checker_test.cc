#include "cel/check/checker.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "cel/environment.h"
#include "cel/kubernetes.h"

namespace dibs::cel {
namespace {

const Environment& environment() {
  static const auto* const made = [] {
    auto* fresh = new Environment(kubernetes_environment());
    fresh->object("kubernetes.Thing",
                  {{"name", TypeKind::string}, {"tags", Type::list(TypeKind::string)}});
    fresh->variable("thing", {TypeKind::object, "kubernetes.Thing"});
    fresh->variable("any", TypeKind::any);
    fresh->variable("d", {});
    fresh->variable("a.b", TypeKind::integer);
    return fresh;
  }();
  return *made;
}

/// "column message" of each issue.
std::string told(std::string_view source) {
  std::string out;
  for (const Issue& issue : environment().compile(source).issues)
    append(out, out.empty() ? "" : "; ", issue.position + 1, " ", issue.message);
  return out;
}

TEST(Checker, says_what_does_not_fit) {
  const struct {
    std::string_view source;
    std::string_view wanted;
  } cases[] = {
      {"thing.name == 'x' && thing.tags.all(t, t != '')", ""},
      {"a.b + 1 == 2", ""},
      {"x", "1 undeclared reference to 'x' (in container '')"},
      {"f(1)", "2 undeclared reference to 'f' (in container '')"},
      {"thing.nope", "6 undefined field 'nope'"},
      {"has(thing.nope)", "4 undefined field 'nope'"},
      {"'a'.b", "4 type 'string' does not support field selection"},
      {"quantity('1').x", "14 unexpected failed resolution of 'kubernetes.Quantity'"},
      {"ip('1.1.1.1').x", "14 type 'net.IP' does not support field selection"},
      {"1 + 'a'", "3 found no matching overload for '_+_' applied to '(int, string)'"},
      {"'a'.startsWith(1)",
       "15 found no matching overload for 'startsWith' applied to 'string.(int)'"},
      {"any.all(x, true)",
       "1 expression of type 'any' cannot be range of a comprehension (must be "
       "list, map, or dynamic)"},
      {"d.all(x, x > 1)", ""},
      {"1 && true", "1 expected type 'bool' but found 'int'"},
      {"true ? 1 : 'a'",
       "6 found no matching overload for '_?_:_' applied to '(bool, int, string)'"},
      {"[1, 'a'] == []", "5 expected type 'int' but found 'string'"},
      {"[?1]", "3 expected type 'optional_type(int)' but found 'int'"},
      {"kubernetes.Nope{}", "16 undeclared reference to 'kubernetes.Nope' (in container '')"},
      {"thing{}", "6 'kubernetes.Thing' is not a type"},
      {"int{}", "4 'int' is not a message type"},
      {"kubernetes.Thing{nope: 1}", "18 undefined field 'nope'"},
      {"kubernetes.Thing{name: 1}",
       "18 expected type of field 'name' is 'string' but provided type is 'int'"},
      {"kubernetes.Thing{name: 'a'}.name == 'a'", ""},
      {"type(thing) == kubernetes.Thing", ""},
  };
  for (const auto& test : cases) EXPECT_EQ(told(test.source), test.wanted) << test.source;
}

TEST(Checker, knows_of_types_that_programs_do_not) {
  const Compilation named = environment().compile("type(thing) == kubernetes.Thing");
  ASSERT_NE(named.program, nullptr);
  EXPECT_EQ(named.program->constant_error, "reference to undefined type: kubernetes.Thing");

  const Compilation made = environment().compile("kubernetes.Thing{name: 'a'}.name == 'a'");
  ASSERT_NE(made.program, nullptr);
  EXPECT_EQ(made.program->evaluate({}).value.text(), "unknown type 'kubernetes.Thing'");
}

}  // namespace
}  // namespace dibs::cel
