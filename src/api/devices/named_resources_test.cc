#include "api/devices/named_resources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::HasSubstr;

constexpr std::string_view kAttributes = R"([
  {"name": "q", "quantity": "1Gi"}, {"name": "b", "bool": true}, {"name": "i", "int": 5},
  {"name": "is", "intSlice": {"ints": [1, 2]}}, {"name": "s", "string": "abc"},
  {"name": "ss", "stringSlice": {"strings": ["a", "b"]}}, {"name": "v", "version": "1.2.3"}])";

std::string ask(std::string_view expression, std::string_view attributes = kAttributes) {
  const Selector selector = compile_named_resources(expression, true);
  const DeviceMatch made = match(selector, NamedResourcesInput::read(*json::parse(attributes)));
  return made.error.empty() ? cat(made.matches) : made.error;
}

TEST(NamedResources, has_a_map_for_each_type) {
  for (const char* expression :
       {"attributes.quantity['q'].isGreaterThan(quantity('1Mi'))", "attributes.bool['b']",
        "attributes.int['i'] > 3", "2 in attributes.intslice['is']",
        "attributes.string['s'].startsWith('a')", "'a' in attributes.stringslice['ss']",
        "attributes.version['v'].isGreaterThan(semver('1.2.0'))",
        "attributes.version['v'].major() == 1", "!('s' in attributes.int)",
        "attributes.int.size() == 1", "attributes.intslice['is'].all(x, x > 0)",
        "has(attributes.string.s)", "sets.contains(attributes.intslice['is'], [1])"})
    EXPECT_EQ(ask(expression), "true") << expression;
  EXPECT_EQ(ask("attributes.string['i'] == ''"), "no such key: i");
  EXPECT_EQ(ask("attributes.int['none'] == 0"), "no such key: none");
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

TEST(NamedResources, numbers_a_bad_version_as_if_it_were_a_character) {
  const auto with = [](std::size_t before) {
    std::string text = "[";
    for (std::size_t i = 0; i < before; ++i) append(text, R"({"name": "x", "bool": true}, )");
    return text + R"({"name": "v", "version": "1"}])";
  };
  const auto wanted = [](std::string_view number) {
    return cat("extract attributes with type version: attribute ", number,
               ": parse semantic version: No Major.Minor.Patch elements found");
  };
  EXPECT_EQ(ask("true", with(0)), wanted("'\\x00'"));
  EXPECT_EQ(ask("true", with(7)), wanted("'\\a'"));
  EXPECT_EQ(ask("true", with(10)), wanted("'\\n'"));
  EXPECT_EQ(ask("true", with(16)), wanted("'\\x10'"));
  EXPECT_EQ(ask("true", with(34)), wanted("'\"'"));
  EXPECT_EQ(ask("true", with(39)), wanted("'\\''"));
  EXPECT_EQ(ask("true", with(127)), wanted("'\\x7f'"));
  EXPECT_EQ(ask("true", with(128)), wanted("'\\u0080'"));
}

}  // namespace
}  // namespace dibs::api
