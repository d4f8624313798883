#include "api/devices/named_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::api {
namespace {

using testing::HasSubstr;

TEST(NamedResources, has_a_map_for_each_type) {
  for (const char* expression :
       {"attributes.quantity['q'].isGreaterThan(quantity('1Mi'))", "attributes.bool['b']",
        "attributes.int['i'] > 3", "2 in attributes.intslice['is']",
        "attributes.string['s'].startsWith('a')", "'a' in attributes.stringslice['ss']",
        "attributes.version['v'].isGreaterThan(semver('1.2.0'))",
        "attributes.version['v'].major() == 1", "!('s' in attributes.int)",
        "attributes.int.size() == 1", "attributes.intslice['is'].all(x, x > 0)",
        "has(attributes.string.s)", "sets.contains(attributes.intslice['is'], [1])"})
    EXPECT_EQ(compile_named_resources(expression, true).message, "") << expression;
}

TEST(NamedResources, is_typed) {
  struct Case {
    const char* expression;
    const char* message;
  };
  const Case cases[] = {
      {"1 + 1", "must evaluate to bool"},
      {"attributes.string", "must evaluate to bool"},
      {"dyn(true)", "must evaluate to bool"},
      {"attributes.int['a'] == 'b'",
       "found no matching overload for '_==_' applied to '(int, string)'"},
      {"attributes.foo['a']", "undeclared reference"},
      {"nothing", "ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')"},
      {"true &&", "Syntax error: mismatched input '<EOF>'"},
      {"cel.bind(a, 1, a == 1)", "undeclared reference"},
      {"[1].all(i, v, v == 1)", "undeclared reference to 'all'"},
      {"[2, 1].sort() == []", "undeclared reference to 'sort'"},
      {"isSemver('v1', true)", "found no matching overload"},
      {"device.driver == ''", "undeclared reference to 'device'"},
  };
  for (const Case& c : cases)
    EXPECT_THAT(compile_named_resources(c.expression, true).message, HasSubstr(c.message))
        << c.expression;
}

TEST(NamedResources, gives_new_expressions_the_library_of_the_release_before) {
  EXPECT_NE(compile_named_resources("ip('1.2.3.4').family() == 4", true).program, nullptr);
  EXPECT_EQ(compile_named_resources("ip('1.2.3.4').family() == 4", false).program, nullptr);
}

TEST(NamedResources, are_validated_in_the_words_of_the_api) {
  FieldErrors errors;
  const Path root("selector");
  validate_named_resources("true", false, root, errors);
  validate_named_resources("1 + 1", false, root, errors);
  validate_named_resources("int('x') == 1", false, root, errors);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors.errors()[0].text, "Invalid value: \"1 + 1\": must evaluate to bool");
  EXPECT_EQ(errors.errors()[1].fault, Fault::internal);
}

}  // namespace
}  // namespace dibs::api
