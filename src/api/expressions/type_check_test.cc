#include "api/expressions/type_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;
using testing::ElementsAre;
using testing::IsEmpty;

Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? std::move(parsed).value() : Value();
}

const GroupVersionKind kShop{"example.com", "v1", "Shop"};

const Value& document() {
  static const Value made = from_text(
      "{'components':{'schemas':{"
      "'Meta':{'type':'object','properties':{'name':{'type':'string'},'generateName':{'type':"
      "'string'},'labels':{'type':'object','additionalProperties':{'type':'string'}}}},"
      "'Port':{'oneOf':[{'type':'integer'},{'type':'string'}],'format':'int-or-string'},"
      "'Amount':{'oneOf':[{'type':'string'},{'type':'number'}]},"
      "'Part':{'type':'object','properties':{'size':{'type':'integer'},'next':{'$ref':"
      "'#/components/schemas/Part'}}},"
      "'Shop':{'type':'object','x-kubernetes-group-version-kind':[{'group':'example.com','version':"
      "'v1','kind':'Shop'}],'properties':{'kind':{'type':'string'},'apiVersion':{'type':'string'},"
      "'metadata':{'allOf':[{'$ref':'#/components/schemas/Meta'}],'default':{}},"
      "'port':{'$ref':'#/components/schemas/Port'},'amount':{'$ref':'#/components/schemas/Amount'},"
      "'opened':{'type':'string','format':'date-time'},"
      "'parts':{'type':'array','items':{'$ref':'#/components/schemas/Part'}}}}}}}");
  return made;
}

/// "field: message" of each warning, the message up to the end of its first line.
std::vector<std::string> warnings(std::string_view expression, std::string_view more_spec = "{}",
                                  const Value& params = {}) {
  Value spec = from_text(std::string(more_spec));
  spec.mut("validations").push(Value::object({{"expression", expression}}));
  std::vector<std::string> out;
  const std::vector<CheckedKind> kinds = {{kShop, resolved_schema(document(), kShop)}};
  const Value told = type_check(Value::object({{"spec", spec}}), kinds, params);
  for (const Value& warning : told.items()) {
    const std::string_view text = warning["warning"].as_string();
    out.push_back(cat(warning["fieldRef"].as_string(), ": ", text.substr(0, text.find('\n'))));
  }
  return out;
}

std::string warning(std::string_view expression) {
  const auto all = warnings(expression);
  constexpr std::string_view kStart =
      "spec.validations[0].expression: example.com/v1, Kind=Shop: ERROR: <input>:";
  if (all.size() != 1 || !all[0].starts_with(kStart)) return join(all, "; ");
  return all[0].substr(kStart.size());
}

TEST(TypeCheck, knows_the_fields_of_a_kind) {
  EXPECT_EQ(warning("object.metadata.labels['a'] == 'b' && object.parts.all(p, p.size > 1)"), "");
  EXPECT_EQ(warning("object.port == 1 || object.port == 'http'"), "");
  EXPECT_EQ(warning("object.opened > timestamp('2024-01-01T00:00:00Z')"), "");
  EXPECT_EQ(warning("oldObject.parts[0].size > '1'"),
            "1:25: found no matching overload for '_>_' applied to '(int, string)'");
  EXPECT_EQ(warning("object.nope == 1"), "1:7: undefined field 'nope'");
  // What has several types and no name for that is not seen at all.
  EXPECT_EQ(warning("has(object.amount)"), "1:4: undefined field 'amount'");
  EXPECT_EQ(warning("object.parts[0].next.size == 1"), "1:21: undefined field 'size'");
  EXPECT_EQ(warning("object.parts[0] + 1"),
            "1:17: found no matching overload for '_+_' applied to '(Shop.parts.@idx, int)'");
}

TEST(TypeCheck, knows_the_rest_of_the_environment) {
  EXPECT_EQ(warning("request.operation == 'CREATE' && namespaceObject.metadata.name == 'a'"), "");
  EXPECT_EQ(warning("authorizer.group('').resource('pods').check('get').allowed()"), "");
  EXPECT_EQ(warning("params.x == 1"), "1:1: undeclared reference to 'params' (in container '')");
}

TEST(TypeCheck, takes_variables_by_the_types_that_policies_see) {
  const std::string variables =
      "{'variables':[{'name':'size','expression':'object.parts[0].size'},{'name':'bad',"
      "'expression':'object.nope'},{'name':'part','expression':'object.parts[0]'}]}";
  EXPECT_THAT(
      warnings("variables.size > 1 && variables.bad && variables.part.nope == 1", variables),
      IsEmpty());
  EXPECT_THAT(warnings("variables.size == 'a'", variables),
              ElementsAre("spec.validations[0].expression: example.com/v1, Kind=Shop: ERROR: "
                          "<input>:1:16: found no matching overload for '_==_' applied to '(int, "
                          "string)'"));
}

TEST(TypeCheck, knows_parameters_where_their_kind_is_known) {
  const std::string kind = "{'paramKind':{'apiVersion':'example.com/v1','kind':'Shop'}}";
  EXPECT_THAT(warnings("params.nope == 1", kind), IsEmpty());
  EXPECT_THAT(warnings("params.nope == 1", kind, resolved_schema(document(), kShop)),
              ElementsAre("spec.validations[0].expression: example.com/v1, Kind=Shop: ERROR: "
                          "<input>:1:7: undefined field 'nope'"));
}

TEST(TypeCheck, tells_of_each_kind_and_of_messages) {
  const Value policy = from_text(
      "{'spec':{'validations':[{'expression':'object.x == 1'},{'expression':'true',"
      "'messageExpression':'object.y'}]}}");
  const Value schema = resolved_schema(document(), kShop);
  const Value made = type_check(policy, {{{"", "v1", "Pod"}, schema}, {kShop, schema}}, Value());
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0]["warning"].as_string(),
            "/v1, Kind=Pod: ERROR: <input>:1:7: undefined field 'x'\n | object.x == 1\n | "
            "......^\n\nexample.com/v1, Kind=Shop: ERROR: <input>:1:7: undefined field 'x'\n | "
            "object.x == 1\n | ......^\n");
  EXPECT_EQ(made[1]["fieldRef"].as_string(), "spec.validations[1].messageExpression");
  EXPECT_TRUE(type_check(policy, {}, Value()).empty());
}

TEST(TypeCheck, checks_for_what_rules_name_plainly) {
  const Value policy = from_text(
      "{'spec':{'matchConstraints':{'resourceRules':["
      "{'apiGroups':['b','a'],'apiVersions':['v1'],'resources':['y','x','z/status','*']},"
      "{'apiGroups':['*'],'apiVersions':['v1'],'resources':['pods']},"
      "{'apiGroups':[''],'apiVersions':['v*'],'resources':['pods']}]}}}");
  std::string named;
  for (const auto& rule : resources_to_check(policy)) {
    for (const RuleResource& one : rule)
      append(named, one.group, "/", one.version, "/", one.resource, " ");
  }
  EXPECT_EQ(named, "a/v1/x a/v1/y b/v1/x b/v1/y ");
}

}  // namespace
}  // namespace dibs::api
