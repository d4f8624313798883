// Mutations of policies: what they make of objects, and what they refuse.
#include "api/expressions/policy_mutation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "api/expressions/policy_program.h"
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

const Value& deployment() {
  static const Value made = from_text(
      "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'web','labels':{'a':'1'}},"
      "'spec':{'replicas':1,'template':{'spec':{'containers':[{'name':'one','image':'x',"
      "'env':[{'name':'A','value':'1'}],'args':['-v']}]}}}}");
  return made;
}

/// The object afterwards, or the error.
std::string mutated(std::string_view type, std::string_view expression,
                    const Value& object = deployment(), std::string_view more_spec = "{}") {
  Value spec = from_text(std::string(more_spec));
  const bool operations = type == "JSONPatch";
  spec.mut("mutations")
      .push(Value::object({{"patchType", type},
                           {operations ? "jsonPatch" : "applyConfiguration",
                            Value::object({{"expression", expression}})}}));
  PolicyInput input;
  input.object = object;
  input.params = from_text("{'data':{'replicas':'7'}}");
  const auto policy = CompiledPolicy::compile(Value::object({{"spec", spec}}));
  const auto made = policy->mutate(0, input, *builtin_schema("apps", "v1", "Deployment"));
  return made.ok() ? json::write(*made) : made.error().message();
}

std::string laid(std::string_view expression) { return mutated("ApplyConfiguration", expression); }
std::string patched(std::string_view expression) { return mutated("JSONPatch", expression); }

/// The deployment with something in the place of a piece of its text.
std::string deployment_with(std::string piece, std::string other) {
  std::string text = json::write(deployment());
  std::replace(piece.begin(), piece.end(), '\'', '"');
  std::replace(other.begin(), other.end(), '\'', '"');
  const auto at = text.find(piece);
  EXPECT_NE(at, std::string::npos) << piece;
  return text.replace(at, piece.size(), other);
}

TEST(PolicyMutation, lays_a_configuration_over_the_object) {
  EXPECT_EQ(laid("Object{spec: Object.spec{replicas: object.spec.replicas + 2}}"),
            deployment_with("'replicas':1", "'replicas':3"));
  EXPECT_EQ(laid("Object{metadata: Object.metadata{labels: {'b': '2'}}}"),
            deployment_with("{'a':'1'}", "{'a':'1','b':'2'}"));
}

TEST(PolicyMutation, merges_lists_by_their_keys) {
  EXPECT_EQ(
      laid("Object{spec: Object.spec{template: Object.spec.template{spec: "
           "Object.spec.template.spec{containers: object.spec.template.spec.containers.map(c, "
           "Object.spec.template.spec.containers{name: c.name, env: "
           "[Object.spec.template.spec.containers.env{name: 'B', value: '2'}]})}}}}"),
      deployment_with("[{'name':'A','value':'1'}]",
                      "[{'name':'A','value':'1'},{'name':'B','value':'2'}]"));
}

TEST(PolicyMutation, refuses_configurations_that_do_not_fit) {
  EXPECT_EQ(laid("Object{spec: Object.spec{nope: 1}}"),
            "error applying patch: failed to convert patch object to typed object: .spec.nope: "
            "field not declared in schema");
  EXPECT_EQ(laid("Object{spec: Object.spec{template: Object.spec.template{spec: "
                 "Object.spec.template.spec{containers: "
                 "[Object.spec.template.spec.containers{name: 'one', args: ['-q']}]}}}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            "or structs: .spec.template.spec.containers[0].args");
  EXPECT_EQ(laid("Object{spec: Object.spec{selector: Object.spec.selector{}}}"),
            "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps "
            "or structs: .spec.selector");
  EXPECT_EQ(laid("Object{spec: Object.other{replicas: 1}}"),
            "type mismatch: unexpected type name \"Object.other\", expected \"Object.spec\", which "
            "matches field name path from root Object type");
  EXPECT_EQ(laid("Object.spec{replicas: 1}"), "must evaluate to Object but got Object.spec");
  EXPECT_EQ(laid("{'spec': 1}"), "must evaluate to Object but got map(string, int)");
  EXPECT_EQ(laid("Object{spec: object.nope}"),
            "expression 'Object{spec: object.nope}' resulted in error: no such key: nope");
}

TEST(PolicyMutation, applies_operations) {
  EXPECT_EQ(patched("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}, "
                    "JSONPatch{op: 'add', path: '/metadata/labels/' + "
                    "jsonpatch.escapeKey('x.io/y'), value: 'z'}]"),
            [] {
              Value made = deployment();
              made.mut("spec").set("replicas", 5);
              made.mut("metadata").mut("labels").set("x.io/y", "z");
              return json::write(made);
            }());
  EXPECT_EQ(patched("[JSONPatch{op: 'add', path: '/spec/strategy', value: "
                    "Object.spec.strategy{type: 'Recreate'}}]"),
            [] {
              Value made = deployment();
              made.mut("spec").mut("strategy").set("type", "Recreate");
              return json::write(made);
            }());
  EXPECT_EQ(patched("object.spec.replicas > 0 ? [JSONPatch{op: 'move', from: '/metadata/labels/a', "
                    "path: '/metadata/labels/b'}] : []"),
            deployment_with("{'a':'1'}", "{'b':'1'}"));
}

TEST(PolicyMutation, changes_nothing_where_a_test_fails) {
  EXPECT_EQ(patched("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}, "
                    "JSONPatch{op: 'test', path: '/spec/replicas', value: 6}]"),
            json::write(deployment()));
}

TEST(PolicyMutation, tells_which_operation_cannot_be_applied) {
  EXPECT_EQ(patched("[JSONPatch{op: 'add', path: '/a/b', value: 1}]"),
            "JSON Patch: add operation does not apply: doc is missing path: \"/a/b\": missing "
            "value");
  EXPECT_EQ(patched("[JSONPatch{op: 'remove', path: '/spec/nope'}]"),
            "JSON Patch: error in remove for path: '/spec/nope': Unable to remove nonexistent key: "
            "nope: missing value");
  EXPECT_EQ(patched("[JSONPatch{op: 'odd', path: '/spec/nope'}]"),
            "JSON Patch: Unexpected kind: odd");
  EXPECT_EQ(patched("[]"), "must evaluate to list(JSONPatch) but got list(dyn)");
  EXPECT_EQ(patched("[JSONPatch{op: 'add', path: '/spec/x', value: quantity('1')}]"),
            "JSONPath valueExpression evaluated to a type that could not marshal to JSON: type "
            "conversion error from 'kubernetes.Quantity' to '*structpb.Value'");
}

TEST(PolicyMutation, sees_variables_and_parameters) {
  EXPECT_EQ(mutated("ApplyConfiguration", "Object{spec: Object.spec{replicas: variables.twice}}",
                    deployment(),
                    "{'paramKind':{'apiVersion':'v1','kind':'ConfigMap'},'variables':[{'name':"
                    "'twice','expression':'int(params.data.replicas) * 2'}]}"),
            deployment_with("'replicas':1", "'replicas':14"));
  EXPECT_EQ(mutated("ApplyConfiguration", "variables.made", deployment(),
                    "{'variables':[{'name':'made','expression':'Object{}'}]}"),
            "must evaluate to Object but got dyn");
}

TEST(PolicyMutation, ends_where_it_costs_too_much) {
  std::string loops = "1";
  for (int i = 0; i < 6; ++i)
    loops = cat("[1,2,3,4,5,6,7,8,9,10,11,12].map(x", i, ", ", loops, ")");
  EXPECT_EQ(laid(cat("Object{spec: Object.spec{replicas: size(", loops, ")}}")).substr(0, 10),
            "expression");
}

}  // namespace
}  // namespace dibs::api
