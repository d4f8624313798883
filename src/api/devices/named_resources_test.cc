#include "api/devices/named_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"

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

TEST(NamedResources, are_asked_about_instances) {
  const auto instance = InstanceInput::read(*json::parse(
      R"({"name":"all","attributes":[{"name":"q","quantity":"1500m"},{"name":"b","bool":true},
          {"name":"i","int":7},{"name":"is","intSlice":{"ints":[1,2]}},{"name":"s","string":"x"},
          {"name":"ss","stringSlice":{"strings":["a","b"]}},{"name":"v","version":"1.2.3"}]})"));
  struct Case {
    const char* expression;
    bool matches;
    const char* error;
  };
  const Case cases[] = {
      {"attributes.quantity['q'].isLessThan(quantity('2'))", true, ""},
      {"attributes.bool['b']", true, ""},
      {"attributes.int['i'] + 1 == 8", true, ""},
      {"2 in attributes.intslice['is']", true, ""},
      {"attributes.string['s'] == 'x'", true, ""},
      {"attributes.stringslice['ss'].exists(e, e == 'b')", true, ""},
      {"attributes.version['v'].isGreaterThan(semver('1.0.0'))", true, ""},
      {"'s' in attributes.int", false, ""},
      {"attributes.string.size() == 1 && attributes.int.all(k, attributes.int[k] == 7)", true, ""},
      {"attributes.string['nothing'] == 'x'", false, "no such key: nothing"},
      {"attributes.int['s'] > 7 || false", false, "no such key: s"},
      {"attributes.intslice['is'][5] == 1", false, "index out of bounds: 5"},
      {"semver(attributes.string['s']).major() == 1", false, "No Major.Minor.Patch elements found"},
  };
  for (const Case& c : cases) {
    const DeviceMatch found = match(compile_named_resources(c.expression, true), instance);
    EXPECT_EQ(found.matches, c.matches) << c.expression;
    EXPECT_EQ(found.error, c.error) << c.expression;
  }
}

TEST(NamedResources, without_attributes_have_empty_maps) {
  const auto instance = InstanceInput::read(*json::parse(R"({"name":"none"})"));
  EXPECT_TRUE(match(compile_named_resources("attributes.int.size() == 0", true), instance).matches);
}

TEST(NamedResources, that_cannot_be_read_fail_every_selector) {
  const auto instance = InstanceInput::read(
      *json::parse(R"({"name":"bad","attributes":[{"name":"v","version":"1"}]})"));
  EXPECT_THAT(match(compile_named_resources("true", true), instance).error,
              HasSubstr("attribute v: parse semantic version"));
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
