#include "api/expressions/crd_checker.h"

#include <gtest/gtest.h>

#include "api/expressions/crd_programs.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

std::string shown(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors.errors())
    append(text, text.empty() ? "" : "\n", error.field, ": ", error.text);
  return text;
}

std::string check(std::string_view schema, bool is_stored = false,
                  const FieldErrors& faults = FieldErrors()) {
  FieldErrors errors;
  const Value value = parsed(schema);
  const Path path("schema");
  make_cel_checker().rules({value, path, faults, is_stored}, errors);
  return shown(errors);
}

/// The worst cost of a rule at the root of a schema, "0" for one that does not compile.
std::string cost_of(std::string_view schema, std::string_view rule) {
  Value value = parsed(schema);
  value.set("x-kubernetes-validations", Value::array({Value::object({{"rule", rule}})}));
  const auto typed = make_typed_schema(value, false, "selfType");
  const auto programs = RuleCompiler(*typed).compile(*typed);
  return programs[0].error.empty() ? std::to_string(programs[0].cost) : programs[0].error;
}

constexpr std::string_view kHint =
    " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, "
    "maps, and strings are declared)";

TEST(CelChecker, tells_what_does_not_compile) {
  const std::string begin = "schema.x-kubernetes-validations[0].rule: Invalid value: {\"Rule\":\"";
  const std::string end =
      "\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\"FieldPath\":\"\","
      "\"OptionalOldSelf\":null}: ";
  const struct {
    std::string_view rule;
    std::string_view wanted;
  } cases[] = {
      {"self.b == 1",
       "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b == 1\n | ....^"},
      {"self.a", "cel expression must evaluate to a bool"},
      {"dyn(self.a)", "cel expression must evaluate to a bool"},
      {"int('x') == 1",
       "program instantiation failed: type conversion error from 'string' to 'int'"},
  };
  for (const auto& test : cases) {
    EXPECT_EQ(check(cat(R"j({"type":"object","properties":{"a":{"type":"string"}},)j",
                        R"j("x-kubernetes-validations":[{"rule":")j", test.rule, "\"}]}")),
              cat(begin, test.rule, end, test.wanted));
  }
}

TEST(CelChecker, knows_names_as_expressions_spell_them) {
  EXPECT_EQ(check(R"j({"type":"object","properties":{"spec":{"type":"object","properties":{
      "if":{"type":"integer"},"a-b":{"type":"integer"},"a.b":{"type":"integer"},
      "a__b":{"type":"integer"},"a/b":{"type":"integer"},"namespace":{"type":"integer"}},
      "x-kubernetes-validations":[{"rule":"self.__if__ + self.a__dash__b + self.a__dot__b > 1"},
      {"rule":"self.a__underscores__b + self.a__slash__b > 1"},
      {"rule":"self.__namespace__ == self.namespace"}]}}})j"),
            "");
}

TEST(CelChecker, knows_what_every_resource_has) {
  EXPECT_EQ(check(R"j({"type":"object","properties":{"t":{"type":"object",
      "x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,
      "x-kubernetes-validations":[{"rule":"self.kind == 'Pod' && self.metadata.name != ''"}]}},
      "x-kubernetes-validations":[{"rule":"self.apiVersion == self.kind"},
      {"rule":"self.metadata.name.startsWith(self.metadata.generateName)"}]})j"),
            "");
  EXPECT_NE(check(R"j({"type":"object","x-kubernetes-validations":[
      {"rule":"self.metadata.namespace == ''"}]})j")
                .find("undefined field 'namespace'"),
            std::string::npos);
}

TEST(CelChecker, types_follow_the_schema) {
  constexpr std::string_view kSchema = R"j({"type":"object","properties":{
      "s":{"type":"string","maxLength":10},"i":{"type":"integer"},"n":{"type":"number"},
      "b":{"type":"boolean"},"y":{"type":"string","format":"byte"},
      "d":{"type":"string","format":"date"},"t":{"type":"string","format":"date-time"},
      "u":{"type":"string","format":"duration"},"q":{"x-kubernetes-int-or-string":true},
      "l":{"type":"array","maxItems":5,"items":{"type":"string","maxLength":5}},
      "m":{"type":"object","maxProperties":5,"additionalProperties":{"type":"integer"}},
      "o":{"type":"object"},"x":{"x-kubernetes-preserve-unknown-fields":true},
      "1":{"type":"string"}}})j";
  const struct {
    std::string_view rule;
    bool compiles;
  } cases[] = {
      {"self.s.size() == self.i && self.n < 1.5 && self.b", true},
      {"self.y == b'abc' && self.d < self.t && self.t - self.d > self.u", true},
      {"type(self.q) == int ? self.q < 5 : self.q == '5'", true},
      {"self.l.all(x, x.startsWith('a')) && self.m.all(k, self.m[k] > 1) && self.m.a == 1", true},
      {"has(self.o)", true},
      {"self.o == self.o", true},
      {"self.n == self.i", false},
      {"self.s == self.t", false},
      {"has(self.x)", false},
      {"self.x == 1", false},
      {"self.o.a == 1", false},
  };
  for (const auto& test : cases)
    EXPECT_EQ(cost_of(kSchema, test.rule).find("compilation failed") == std::string::npos,
              test.compiles)
        << test.rule << "\n"
        << cost_of(kSchema, test.rule);
}

TEST(CelChecker, costs_follow_the_bounds_of_the_schema) {
  constexpr std::string_view kSchema = R"j({"type":"object","required":["r"],"properties":{
      "s":{"type":"string","maxLength":10},"long":{"type":"string"},
      "e":{"type":"string","enum":["a","bbbb"]},"i":{"type":"integer"},"r":{"type":"string"},
      "y":{"type":"string","format":"byte","maxLength":100},
      "t":{"type":"string","format":"date-time"},
      "q":{"x-kubernetes-int-or-string":true,"maxLength":20},
      "l":{"type":"array","maxItems":5,"items":{"type":"string","maxLength":5}},
      "open":{"type":"array","items":{"type":"integer"}},
      "m":{"type":"object","maxProperties":5,
          "additionalProperties":{"type":"string","maxLength":5}},
      "free":{"type":"object","additionalProperties":{"type":"integer"}},
      "o":{"type":"object","properties":{"a":{"type":"string","maxLength":10}}}}})j";
  const struct {
    std::string_view rule;
    std::string_view cost;
  } cases[] = {
      {"true", "0"},
      {"self.i > 1", "3"},
      // A scalar has no size here, so that comparing it is free.
      {"self.i == 1", "2"},
      {"self.o == self.o", "4"},
      {"has(self.s)", "1"},
      // Four bytes for a character.
      {"self.s == self.s", "8"},
      {"self.s == 'abc'", "3"},
      {"self.long == self.long", "314577"},
      {"self.e == self.e", "5"},
      {"self.y == self.y", "14"},
      {"self.t > timestamp('2020-01-01T00:00:00Z')", "4"},
      // A name of a type is taken for a path to the value itself.
      {"type(self.q) == int", "4"},
      {"self.s.contains('a')", "6"},
      {"self.s.matches('ab')", "7"},
      {"self.s.startsWith('ab')", "3"},
      {"self.l.all(x, x == 'a')", "28"},
      {"self.l.all(x, x.contains('a'))", "33"},
      {"self.l.exists(x, x.size() > 1)", "38"},
      {"self.l.join(',') == 'a'", "14"},
      {"self.l.isSorted()", "17"},
      {"'a' in self.l", "7"},
      {"self.l.size() < 3", "4"},
      {"self.l[0] == 'a'", "4"},
      {"self.m['a'] == self.m['b']", "8"},
      {"self.m.a == 'a'", "4"},
      {"self.m.all(k, k == 'a')", "23"},
      {"'a' in self.m", "3"},
      {"self.open.all(x, x > 1)", "7864318"},
      {"self.free.all(k, k != '')", "1797559"},
      {"['a', 'b'].exists(x, x == self.s)", "25"},
      {"self.l.map(x, x.size()).sum() > 1", "89"},
      {"self.l.filter(x, x != '').size() == 1", "85"},
      {"self.s.replace('a', 'bb').size() > 1", "12"},
      {"self.s.split(',').size() > 1", "12"},
      {"self.?s.hasValue()", "3"},
      {"self.o.?a.orValue('x') == 'y'", "5"},
      {"sets.contains(self.l, ['a', 'b'])", "23"},
      {"quantity(self.s) == quantity('1')", "8"},
      {"isIP(self.s) && ip(self.s).family() == 4", "14"},
  };
  for (const auto& test : cases) EXPECT_EQ(cost_of(kSchema, test.rule), test.cost) << test.rule;
}

TEST(CelChecker, costs_count_as_often_as_a_value_can_occur) {
  const auto nested = [](std::string_view limits) {
    return check(cat(R"j({"type":"object","properties":{"l":{"type":"array",)j", limits,
                     R"j("items":{"type":"string","x-kubernetes-validations":[
        {"rule":"self.contains('a')"}]}}}})j"));
  };
  const std::string at = "schema.properties[l].items.x-kubernetes-validations[0].rule: ";
  // 314574 each.
  EXPECT_EQ(nested(R"j("maxItems":10,)j"), "");
  EXPECT_EQ(nested(R"j("maxItems":32,)j"),
            cat(at, "Forbidden: estimated rule cost exceeds budget by factor of 1.006637x", kHint));
  EXPECT_EQ(nested(R"j("maxItems":100,)j"),
            cat(at, "Forbidden: estimated rule cost exceeds budget by factor of 3.1x", kHint));
  // As many as fit into a request.
  EXPECT_EQ(nested(""),
            cat(at, "Forbidden: estimated rule cost exceeds budget by factor of more than 100x",
                kHint, "\n", at,
                "Forbidden: contributed to estimated rule cost total exceeding cost limit for "
                "entire OpenAPIv3 schema\nschema: Forbidden: x-kubernetes-validations estimated "
                "rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than "
                "100x",
                kHint));
}

TEST(CelChecker, names_the_most_expensive_rules) {
  std::string rules;
  for (int i = 0; i < 8; ++i)
    append(rules, i == 0 ? "" : ",", R"j({"rule":"self.all(x, x != ')j", i, R"j(')"})j");
  const std::string found =
      check(cat(R"j({"type":"object","properties":{"l":{"type":"array","maxItems":3000000,)j",
                R"j("items":{"type":"string"},"x-kubernetes-validations":[)j", rules, "]}}}"));
  std::size_t contributed = 0;
  for (std::string_view line : split(found, '\n'))
    contributed += line.find("contributed to") != std::string_view::npos;
  EXPECT_EQ(contributed, 4u) << found;
  EXPECT_NE(found.find("schema: Forbidden: x-kubernetes-validations estimated rule cost total for "
                       "entire OpenAPIv3 schema exceeds budget by factor of 1.200000x"),
            std::string::npos)
      << found;
}

TEST(CelChecker, stored_rules_may_cost_too_much) {
  EXPECT_EQ(check(R"j({"type":"object","properties":{"l":{"type":"array","maxItems":100,
      "items":{"type":"string","x-kubernetes-validations":[{"rule":"self.contains('a')"}]}}}})j",
                  true),
            "");
}

TEST(CelChecker, messages_are_judged_like_rules) {
  const auto message = [](std::string_view expression) {
    return check(cat(R"j({"type":"object","properties":{"l":{"type":"array",
        "items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"true",
        "messageExpression":")j",
                     expression, "\"}]}"));
  };
  EXPECT_EQ(message("'size is ' + (self.l.size() > 1 ? 'large' : 'small')"), "");
  EXPECT_NE(message("1").find("messageExpression: Invalid value: {\"Rule\":\"true\""),
            std::string::npos);
  EXPECT_NE(message("1").find(": messageExpression must evaluate to a string"), std::string::npos);
  EXPECT_NE(message("self.z").find(": messageExpression compilation failed: ERROR"),
            std::string::npos);
  EXPECT_NE(message("self.l.join('')")
                .find("messageExpression: Forbidden: estimated messageExpression cost exceeds "
                      "budget by factor of more than 100x"),
            std::string::npos);
}

TEST(CelChecker, transitions_need_a_past) {
  const auto items = [](std::string_view list_type) {
    return check(cat(R"j({"type":"object","properties":{"l":{"type":"array",)j", list_type,
                     R"j("items":{"type":"object","required":["k"],"properties":{
        "k":{"type":"string"},"v":{"type":"string","x-kubernetes-validations":[
        {"rule":"self == oldSelf"}]}}}}}})j"));
  };
  const std::string refused =
      "schema.properties[l].items.properties[v].x-kubernetes-validations[0].rule: Invalid value: "
      "\"self == oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema "
      "within schema.properties[l]";
  EXPECT_EQ(items(R"j("maxItems":9,"x-kubernetes-list-type":"map",
                      "x-kubernetes-list-map-keys":["k"],)j"),
            "");
  EXPECT_EQ(items("\"maxItems\":9,"), refused);
  EXPECT_EQ(items(R"j("maxItems":9,"x-kubernetes-list-type":"set",)j"), refused);
  EXPECT_EQ(check(R"j({"type":"object","x-kubernetes-validations":[
      {"rule":"true","optionalOldSelf":false}]})j"),
            "schema.x-kubernetes-validations[0].optionalOldSelf: Invalid value: false: may not be "
            "set if oldSelf is not used in rule");
}

TEST(CelChecker, leaves_rules_alone_where_the_schema_has_faults) {
  FieldErrors faults;
  faults.forbidden(Path("schema.properties[a].uniqueItems"), "no");
  EXPECT_EQ(check(R"j({"type":"object","properties":{
      "a":{"type":"string","x-kubernetes-validations":[{"rule":"z"}]},
      "ab":{"type":"string","x-kubernetes-validations":[{"rule":"1"}]}},
      "x-kubernetes-validations":[{"rule":"z"}]})j",
                  false, faults),
            "schema.properties[ab].x-kubernetes-validations[0].rule: Invalid value: "
            "{\"Rule\":\"1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,"
            "\"FieldPath\":\"\",\"OptionalOldSelf\":null}: cel expression must evaluate to a bool");
}

TEST(CelChecker, rules_need_a_type) {
  EXPECT_EQ(check(R"j({"type":"object","properties":{"x":{
      "x-kubernetes-preserve-unknown-fields":true,
      "x-kubernetes-validations":[{"rule":"true"}]}}})j"),
            "schema.properties[x].x-kubernetes-validations: Internal error: internal error: failed "
            "to construct type information for x-kubernetes-validations rules: unable to convert "
            "structural schema to CEL declarations");
}

TEST(SchemaTypes, names_escape_both_ways) {
  for (const char* name : {"a", "if", "a-b", "a.b", "a/b", "a__b", "a___b", "namespace", "_x"})
    EXPECT_EQ(unescape_name(escape_name(name).value_or("?")), name);
  EXPECT_EQ(escape_name("a-b"), "a__dash__b");
  EXPECT_EQ(escape_name("in"), "__in__");
  EXPECT_EQ(escape_name("1a"), std::nullopt);
  EXPECT_EQ(escape_name("a b"), std::nullopt);
  EXPECT_EQ(escape_name(""), std::nullopt);
  EXPECT_EQ(unescape_name("a__nothing__b"), std::nullopt);
}

}  // namespace
}  // namespace dibs::api
