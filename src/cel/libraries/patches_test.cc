#include "cel/libraries/patches.h"

#include <gtest/gtest.h>

#include "cel/json_value.h"
#include "cel/kubernetes.h"
#include "json/parse.h"

namespace dibs::cel {
namespace {

const Environment& environment() {
  static const Environment made = [] {
    Environment environment = kubernetes_environment();
    add_patches(environment);
    return environment;
  }();
  return made;
}

std::string fault(std::string_view source) {
  const Compilation made = environment().compile(source);
  return made.program ? "" : made.issues.front().message;
}

Evaluation evaluated(std::string_view source) {
  const Compilation made = environment().compile(source);
  EXPECT_NE(made.program, nullptr) << source << ": " << fault(source);
  return made.program ? made.program->evaluate({}) : Evaluation();
}

/// The value as JSON, or the error.
std::string made(std::string_view source) {
  const Value value = evaluated(source).value;
  if (value.is_error()) return std::string(value.text());
  const auto json = to_json(value);
  return json.ok() ? json::write(*json) : json.error().message();
}

TEST(Patches, make_objects_of_any_fields) {
  EXPECT_EQ(made("Object{}"), "{}");
  EXPECT_EQ(made("Object{spec: Object.spec{replicas: 1 + 2, names: ['a'], on: true}}"),
            R"({"spec":{"replicas":3,"names":["a"],"on":true}})");
  EXPECT_EQ(made("Object{metadata: Object.metadata{labels: {'a/b': 'c'}}}"),
            R"({"metadata":{"labels":{"a/b":"c"}}})");
  EXPECT_EQ(made("Object{a: b'xyz', d: duration('90s'), t: timestamp('2024-01-02T03:04:05Z')}"),
            R"({"a":"eHl6","d":"90s","t":"2024-01-02T03:04:05Z"})");
  EXPECT_EQ(made("Object{?a: optional.none(), ?b: optional.of(1)}"), R"({"b":1})");
  EXPECT_EQ(made("Object{a: 1}.a"), "1");
  EXPECT_EQ(made("has(Object{a: 1}.b)"), "false");
  EXPECT_EQ(made("Object{a: 1} == Object{a: 1}"), "true");
  EXPECT_EQ(made("Object{a: 1} == Object{a: 2}"), "false");
  EXPECT_EQ(made("Object{a: 1 / 0}"), "division by zero");
  EXPECT_EQ(made("Object{a: quantity('1')}"),
            "type conversion error from 'kubernetes.Quantity' to '*structpb.Value'");
}

TEST(Patches, know_their_types) {
  EXPECT_EQ(environment().compile("Object{}").type.full_name(), "Object");
  EXPECT_EQ(environment().compile("Object.spec{}").type.full_name(), "Object.spec");
  EXPECT_EQ(environment().compile("[JSONPatch{op: 'add'}]").type.full_name(), "list(JSONPatch)");
  EXPECT_EQ(fault("Invalid{}"), "undeclared reference to 'Invalid' (in container '')");
  EXPECT_EQ(fault("Objects{}"), "undeclared reference to 'Objects' (in container '')");
  EXPECT_EQ(fault("JSONPatch{op: 1}"),
            "expected type of field 'op' is 'string' but provided type is 'int'");
  EXPECT_EQ(fault("JSONPatch{nope: 1}"), "undefined field 'nope'");
}

TEST(Patches, make_operations) {
  const Value value =
      evaluated("JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('k8s.io/my~x'), value: 3}")
          .value;
  const PatchOperation* operation = patch_operation(value);
  ASSERT_NE(operation, nullptr);
  EXPECT_EQ(operation->op, "add");
  EXPECT_EQ(operation->path, "/a/k8s.io~1my~0x");
  EXPECT_EQ(operation->from, "");
  EXPECT_EQ(operation->value->as_integer(), 3);
  EXPECT_EQ(made("JSONPatch{op: 'a'} == JSONPatch{op: 'a'}"), "true");
  EXPECT_EQ(made("JSONPatch{op: 'a', value: 1} == JSONPatch{op: 'a'}"), "false");
}

TEST(Patches, tell_types_that_are_not_named_after_their_place) {
  const auto faults = [](std::string_view source) {
    const Value value = evaluated(source).value;
    return type_name_faults(*made_object(value));
  };
  EXPECT_EQ(faults("Object{spec: Object.spec{list: [Object.spec.list{}]}}"), "");
  EXPECT_EQ(faults("Object{spec: Object.wrong{}}"),
            "unexpected type name \"Object.wrong\", expected \"Object.spec\", which matches field "
            "name path from root Object type");
}

TEST(Patches, cost_what_a_structure_does) {
  EXPECT_EQ(evaluated("Object{}").cost, 40u);
  EXPECT_EQ(evaluated("Object{spec: Object.spec{replicas: 3}}").cost, 80u);
  EXPECT_EQ(evaluated("jsonpatch.escapeKey('abcdefghijk')").cost, 2u);
}

}  // namespace
}  // namespace dibs::cel
