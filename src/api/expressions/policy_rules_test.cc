// What is wrong with the expressions of policies, told when they are written.
#include "api/expressions/policy_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/schema/builtin.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  auto parsed = json::parse(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? std::move(parsed).value() : Value();
}

/// A policy that matches pods, with `more` in its spec.
Value policy(const std::string& more) {
  Value made = from_text(
      cat("{'metadata':{'name':'p'},'spec':{'failurePolicy':'Fail','matchConstraints':{"
          "'resourceRules':[{'apiGroups':[''],'apiVersions':['v1'],'operations':['CREATE'],"
          "'resources':['pods'],'scope':'*'}]},",
          more, "}}"));
  admission_rules_with_expressions("ValidatingAdmissionPolicy").set_defaults(made);
  return made;
}

std::string faults(const FieldErrors& errors) {
  std::string out;
  for (const FieldError& error : errors.errors()) {
    append(out, out.empty() ? "" : "\n", error.field, ": ", error.text);
  }
  return out;
}

std::string faults_of(const Value& object, std::string_view kind = "ValidatingAdmissionPolicy") {
  FieldErrors errors;
  admission_rules_with_expressions(kind).validate(object, errors);
  return faults(errors);
}

/// Of a validation with that expression.
std::string fault_of(const std::string& expression, const std::string& more = "") {
  Value object = policy(cat("'validations':[{'expression':'x'}]", more));
  object.mut("spec").mut("validations").mut(std::size_t{0}).set("expression", expression);
  std::string told = faults_of(object);
  std::string before =
      cat("spec.validations[0].expression: Invalid value: ", quoted(expression), ": ");
  return told.starts_with(before) ? told.substr(before.size()) : told;
}

TEST(PolicyRules, accepts_what_compiles_to_a_boolean) {
  for (const char* expression :
       {"true", "object.spec.replicas < 3", "oldObject == null || has(object.spec)",
        "request.userInfo.groups.exists(g, g == 'x') && request.operation == 'CREATE'",
        "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][0].orValue('') != ''",
        "namespaceObject.metadata.labels['a'] == 'b'", "request.options.x == 1",
        "authorizer.group('').resource('pods').namespace('n').check('create').allowed()",
        "authorizer.requestResource.check('update').allowed()"}) {
    EXPECT_EQ(fault_of(expression), "") << expression;
  }
}

TEST(PolicyRules, tells_why_an_expression_is_refused) {
  EXPECT_EQ(fault_of("object.zzz +"),
            "compilation failed: ERROR: <input>:1:13: Syntax error: mismatched input '<EOF>' "
            "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
            "NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.zzz +\n | ............^");
  EXPECT_EQ(fault_of("1"), "must evaluate to bool but got int");
  EXPECT_EQ(fault_of("object.spec"), "must evaluate to bool but got dyn");
  EXPECT_EQ(fault_of("request"), "must evaluate to bool but got kubernetes.AdmissionRequest");
  EXPECT_EQ(fault_of("variables.none == 1"),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in "
            "container '')\n | variables.none == 1\n | ^");
  EXPECT_EQ(fault_of("request.object == 1"),
            "compilation failed: ERROR: <input>:1:8: undefined field 'object'\n"
            " | request.object == 1\n | .......^");
}

TEST(PolicyRules, has_params_only_with_a_kind_for_them) {
  EXPECT_EQ(fault_of("params == null"),
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in "
            "container '')\n | params == null\n | ^");
  EXPECT_EQ(fault_of("params == null", ",'paramKind':{'apiVersion':'v1','kind':'ConfigMap'}"), "");
}

TEST(PolicyRules, knows_variables_in_order_and_by_type) {
  const std::string validations = ",'validations':[{'expression':'variables.b.size() > 1'}]";
  EXPECT_EQ(faults_of(policy(cat("'variables':[{'name':'a','expression':'[1, 2]'},"
                                 "{'name':'b','expression':'variables.a'}]",
                                 validations))),
            "");
  EXPECT_EQ(faults_of(policy(cat("'variables':[{'name':'b','expression':'variables.a'},"
                                 "{'name':'a','expression':'1'}]",
                                 validations))),
            "spec.variables[0].expression: Invalid value: \"variables.a\": compilation failed: "
            "ERROR: <input>:1:10: undefined field 'a'\n | variables.a\n | .........^");
  EXPECT_EQ(
      faults_of(policy(cat("'variables':[{'name':'b','expression':'1'}]", validations))),
      "spec.validations[0].expression: Invalid value: \"variables.b.size() > 1\": compilation "
      "failed: ERROR: <input>:1:17: found no matching overload for 'size' applied to 'int.()'\n"
      " | variables.b.size() > 1\n | ................^");
}

TEST(PolicyRules, judges_each_role_by_its_own_type_and_variables) {
  EXPECT_EQ(faults_of(policy("'validations':[{'expression':'true','messageExpression':'1'}]")),
            "spec.validations[0].messageExpression: Invalid value: \"1\": must evaluate to string "
            "but got int");
  EXPECT_EQ(faults_of(policy("'validations':[{'expression':'true','messageExpression':"
                             "'string(authorizer == null)'}]"))
                .substr(0, 127),
            "spec.validations[0].messageExpression: Invalid value: \"string(authorizer == null)\": "
            "compilation failed: ERROR: <input>:1:8: und");
  EXPECT_EQ(faults_of(policy("'auditAnnotations':[{'key':'a','valueExpression':' 1 '},"
                             "{'key':'b','valueExpression':'null'}]")),
            "spec.auditAnnotations[0].valueExpression: Invalid value: \" 1 \": must evaluate to "
            "one of [string null_type] but got int");
  EXPECT_EQ(faults_of(policy("'matchConditions':[{'name':'a','expression':' 1 '}],"
                             "'validations':[{'expression':'true'}]")),
            "spec.matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but "
            "got int");
  EXPECT_EQ(faults_of(policy("'matchConditions':[{'name':'a','expression':'variables.x'}],"
                             "'variables':[{'name':'x','expression':'true'}],"
                             "'validations':[{'expression':'variables.x'}]")),
            "spec.matchConditions[0].expression: Invalid value: \"variables.x\": compilation "
            "failed: ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n"
            " | variables.x\n | ^");
}

TEST(PolicyRules, tells_of_expressions_among_the_other_faults_of_an_entry) {
  EXPECT_EQ(faults_of(policy("'validations':[{'expression':'1','reason':'Odd'},"
                             "{'expression':' '}]")),
            "spec.validations[0].expression: Invalid value: \"1\": must evaluate to bool but got "
            "int\nspec.validations[0].reason: Unsupported value: \"Odd\": supported values: "
            "\"Forbidden\", \"Invalid\", \"RequestEntityTooLarge\"\n"
            "spec.validations[1].expression: Required value: expression is not specified");
}

TEST(PolicyRules, does_not_judge_old_match_conditions_again) {
  Value object = policy(
      "'matchConditions':[{'name':'a','expression':'1'}],"
      "'validations':[{'expression':'true'}]");
  Value changed = object;
  changed.mut("spec").set("matchConditions", from_text("[{'name':'b','expression':'1'}]"));
  const KindRules& rules = admission_rules_with_expressions("ValidatingAdmissionPolicy");
  FieldErrors same;
  FieldErrors other;

  rules.validate_update(object, object, same);
  rules.validate_update(changed, object, other);

  EXPECT_EQ(faults(same), "");
  EXPECT_EQ(faults(other),
            "spec.matchConditions[0].expression: Invalid value: \"1\": must evaluate to bool but "
            "got int");
}

TEST(PolicyRules, judges_the_conditions_of_webhooks) {
  Value object = from_text(
      "{'metadata':{'name':'h'},'webhooks':[{'name':'a.b.c','sideEffects':'None',"
      "'admissionReviewVersions':['v1'],'clientConfig':{'url':'https://x'},"
      "'matchConditions':[{'name':'x','expression':'params.x'}]}]}");
  admission_rules_with_expressions("ValidatingWebhookConfiguration").set_defaults(object);
  EXPECT_EQ(faults_of(object, "ValidatingWebhookConfiguration"),
            "webhooks[0].matchConditions[0].expression: Invalid value: \"params.x\": compilation "
            "failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n"
            " | params.x\n | ^");
}

}  // namespace
}  // namespace dibs::api
