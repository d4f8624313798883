// Policies evaluated: what they admit, deny and say.
#include "api/expressions/policy_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? std::move(parsed).value() : Value();
}

Value with_texts(std::initializer_list<std::pair<std::string_view, Value>> members) {
  return Value::object(members);
}

Value list(std::initializer_list<Value> items) { return Value::array(items); }

Value validation(std::string_view expression, std::string_view message_expression = {}) {
  Value made = with_texts({{"expression", expression}});
  if (!message_expression.empty()) made.set("messageExpression", message_expression);
  return made;
}

Value variable(std::string_view name, std::string_view expression) {
  return with_texts({{"name", name}, {"expression", expression}});
}

PolicyInput sample_input() {
  PolicyInput input;
  input.object = from_text("{'metadata':{'name':'web'},'data':{'a':'1','b':'2'}}");
  input.request = from_text("{'operation':'CREATE','userInfo':{'username':'ann'}}");
  return input;
}

PolicyVerdict verdict_of(const Value& spec, const PolicyInput& input = sample_input()) {
  return CompiledPolicy::compile(with_texts({{"spec", spec}}))->evaluate(input);
}

/// "" for each that admits, "reason: message" for each that denies.
std::vector<std::string> decisions(const PolicyVerdict& verdict) {
  std::vector<std::string> out;
  for (const PolicyDecision& decision : verdict.decisions) {
    out.push_back(decision.denies ? cat(decision.reason, ": ", decision.message) : "");
  }
  return out;
}

std::string decision_of(std::string_view expression, const PolicyInput& input = sample_input()) {
  auto all =
      decisions(verdict_of(with_texts({{"validations", list({validation(expression)})}}), input));
  return all.size() == 1 ? all[0] : "several";
}

TEST(CompiledPolicy, admits_and_denies) {
  EXPECT_EQ(decision_of("object.data.size() == 2"), "");
  EXPECT_EQ(decision_of(" object.data.size() == 3 "),
            "Invalid: failed expression: object.data.size() == 3");
  EXPECT_EQ(decision_of("oldObject == null && namespaceObject == null"), "");
  EXPECT_EQ(decision_of("request.userInfo.username == 'ann' && !has(request.name)"), "");
  EXPECT_EQ(decision_of("object.data.absent == 'x'"),
            ": expression 'object.data.absent == 'x'' resulted in error: no such key: absent");
  EXPECT_EQ(decision_of("oldObject.data.size() == 1"),
            ": expression 'oldObject.data.size() == 1' resulted in error: no such key: data");
}

TEST(CompiledPolicy, judges_all_validations_with_their_reasons_and_messages) {
  Value forbidden = validation("!('a' in object.data)");
  forbidden.set("message", "  no a  ");
  forbidden.set("reason", "Forbidden");
  Value spec = with_texts(
      {{"variables", list({variable("n", "object.metadata.name")})},
       {"validations",
        list({validation("variables.n.size() < 2", "'too long: ' + variables.n"), forbidden,
              validation("variables.n == 'web'"), validation("false", "string(object.none)"),
              validation("false", "'two\\nlines'")})}});
  EXPECT_THAT(decisions(verdict_of(spec)), ElementsAre("Invalid: too long: web", "Forbidden: no a",
                                                       "", "Invalid: failed expression: false",
                                                       "Invalid: failed expression: false"));
}

TEST(CompiledPolicy, falls_back_from_a_message_expression_to_the_message) {
  Value both = validation("false", "'  '");
  both.set("message", "plain");
  EXPECT_THAT(decisions(verdict_of(with_texts({{"validations", list({both})}}))),
              ElementsAre("Invalid: plain"));
}

TEST(CompiledPolicy, admits_what_errs_when_failures_are_ignored) {
  Value spec =
      with_texts({{"failurePolicy", "Ignore"},
                  {"validations", list({validation("object.none == 1"), validation("false")})}});
  EXPECT_THAT(decisions(verdict_of(spec)), ElementsAre("", "Invalid: failed expression: false"));
}

TEST(CompiledPolicy, evaluates_variables_once_and_only_when_used) {
  int asked = 0;
  PolicyInput input = sample_input();
  input.authorize = std::make_shared<const cel::Authorize>(
      [&asked](const cel::AuthorizationQuery&) -> cel::AuthorizationDecision {
        ++asked;
        return {true, "", ""};
      });
  const char* check = "authorizer.path('/x').check('get').allowed()";
  Value spec = with_texts(
      {{"variables", list({variable("unused", "object.none"), variable("may", check)})},
       {"validations", list({validation("variables.may"), validation("variables.may")})}});

  EXPECT_THAT(decisions(verdict_of(spec, input)), ElementsAre("", ""));
  EXPECT_EQ(asked, 1);
}

TEST(CompiledPolicy, tells_which_variable_failed) {
  Value spec = with_texts(
      {{"variables", list({variable("a", "object.none"), variable("b", "variables.a + 1")})},
       {"validations", list({validation("variables.b == 1"), validation("has(variables.b)")})}});
  EXPECT_THAT(decisions(verdict_of(spec)).front(),
              ": expression 'variables.b == 1' resulted in error: composited variable \"b\" fails "
              "to evaluate: composited variable \"a\" fails to evaluate: no such key: none");
}

TEST(CompiledPolicy, asks_the_authorizer_about_the_request_and_others) {
  std::vector<std::string> asked;
  PolicyInput input = sample_input();
  input.resource.group = "apps";
  input.resource.resource = "deployments";
  input.resource.namespace_name = "shop";
  input.resource.name = "web";
  input.authorize = std::make_shared<const cel::Authorize>(
      [&asked](const cel::AuthorizationQuery& query) -> cel::AuthorizationDecision {
        std::string who = query.service_account ? query.service_account->name : "requester";
        asked.push_back(cat(who, " ", query.verb, " ", query.path, query.group, "/", query.resource,
                            " ", query.namespace_name, "/", query.name));
        return {query.verb != "delete", "because", ""};
      });

  EXPECT_EQ(decision_of("authorizer.requestResource.check('custom').allowed()", input), "");
  EXPECT_EQ(decision_of("authorizer.group('').resource('pods').check('delete').allowed()", input),
            "Invalid: failed expression: "
            "authorizer.group('').resource('pods').check('delete').allowed()");
  EXPECT_EQ(decision_of("authorizer.serviceAccount('shop', 'robot').path('/healthz').check('get')"
                        ".reason() == 'because'",
                        input),
            "");
  EXPECT_THAT(asked, ElementsAre("requester custom apps/deployments shop/web",
                                 "requester delete /pods /", "robot get /healthz/ /"));
}

TEST(CompiledPolicy, stays_away_when_a_condition_does_not_hold) {
  auto with_conditions = [](std::initializer_list<const char*> expressions,
                            std::string_view failure_policy) {
    Value conditions = Value::array();
    for (const char* expression : expressions) {
      conditions.push(with_texts({{"name", "c"}, {"expression", expression}}));
    }
    return decisions(verdict_of(with_texts({{"failurePolicy", failure_policy},
                                            {"matchConditions", conditions},
                                            {"validations", list({validation("false")})}})));
  };
  EXPECT_THAT(with_conditions({"true", "true"}, "Fail"),
              ElementsAre("Invalid: failed expression: false"));
  EXPECT_THAT(with_conditions({"true", "false"}, "Fail"), IsEmpty());
  EXPECT_THAT(with_conditions({"object.none", "false"}, "Fail"), IsEmpty());
  EXPECT_THAT(with_conditions({"object.none == 1"}, "Ignore"), IsEmpty());
  EXPECT_THAT(with_conditions({"object.none == 1", "true"}, "Fail"),
              ElementsAre(": expression 'object.none == 1' resulted in error: no such key: none"));
  EXPECT_THAT(with_conditions({"object.a == 1", "object.b == 1"}, "Fail"),
              ElementsAre(": [expression 'object.a == 1' resulted in error: no such key: a, "
                          "expression 'object.b == 1' resulted in error: no such key: b]"));
}

TEST(CompiledPolicy, sees_params_where_the_policy_has_a_kind_for_them) {
  PolicyInput input = sample_input();
  Value spec =
      with_texts({{"paramKind", from_text("{'apiVersion':'v1','kind':'ConfigMap'}")},
                  {"validations", list({validation("params == null || object.data.size() <= "
                                                   "int(params.data.max)",
                                                   "'more than ' + params.data.max")})}});
  EXPECT_THAT(decisions(verdict_of(spec, input)), ElementsAre(""));
  input.params = from_text("{'data':{'max':'1'}}");
  EXPECT_THAT(decisions(verdict_of(spec, input)), ElementsAre("Invalid: more than 1"));
}

TEST(CompiledPolicy, ends_where_the_budget_ends) {
  PolicyInput input = sample_input();
  Value items = Value::array();
  for (int i = 0; i < 900; ++i) items.push(i);
  input.object = with_texts({{"items", items}});
  const char* costly = "object.items.all(a, object.items.all(b, a + b >= 0))";
  EXPECT_EQ(decision_of(costly, input),
            cat(": expression '", costly,
                "' resulted in error: operation cancelled: actual cost limit exceeded"));
  Value many = Value::array();
  for (int i = 0; i < 11; ++i) many.push(validation(costly));
  EXPECT_THAT(decisions(verdict_of(with_texts({{"validations", many}}), input)),
              ElementsAre(": validation failed due to running out of cost budget, no further "
                          "validation rules will be run"));
}

TEST(CompiledPolicy, annotates_with_text_and_leaves_out_null) {
  auto annotate = [](std::string_view failure_policy) {
    auto one = [](std::string_view key, std::string_view expression) {
      return with_texts({{"key", key}, {"valueExpression", expression}});
    };
    PolicyVerdict verdict = verdict_of(
        with_texts({{"failurePolicy", failure_policy},
                    {"auditAnnotations",
                     list({one("who", "' ' + request.userInfo.username"), one("none", "null"),
                           one("empty", "''"), one("bad", "string(object.none)")})}}));
    std::vector<std::string> out;
    for (const PolicyAnnotation& annotation : verdict.annotations) {
      out.push_back(cat(annotation.key, "=", annotation.value, annotation.error));
    }
    return out;
  };
  EXPECT_THAT(annotate("Fail"),
              ElementsAre("who=ann",
                          "bad=expression 'string(object.none)' resulted in error: no "
                          "such key: none"));
  EXPECT_THAT(annotate("Ignore"), ElementsAre("who=ann"));
}

}  // namespace
}  // namespace dibs::api
