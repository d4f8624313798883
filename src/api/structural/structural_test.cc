#include "api/structural/structural.h"

#include <gtest/gtest.h>

#include <random>

#include "api/structural/custom_rules.h"
#include "api/structural/defaults.h"
#include "api/structural/list_types.h"
#include "api/structural/prune.h"
#include "api/structural/validate.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? *value : Value();
}

CompiledSchemaPtr compiled(std::string_view text) {
  auto schema = compile_schema(parsed(text));
  EXPECT_TRUE(schema.ok()) << (schema.ok() ? "" : schema.error().message());
  return schema.ok() ? *schema : nullptr;
}

/// A schema whose .spec is the given one.
CompiledSchemaPtr with_spec(std::string_view spec) {
  return compiled(cat(R"({"type":"object","properties":{"spec":)", spec, "}}"));
}

std::string shown(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors.errors())
    append(text, text.empty() ? "" : "; ", error.field, ": ", error.text);
  return text;
}

std::string faults(const CompiledSchemaPtr& schema, std::string_view object) {
  FieldErrors errors;
  validate_value(parsed(object), schema->root(), Path(), errors);
  return shown(errors);
}

std::string changed_faults(const CompiledSchemaPtr& schema, std::string_view object,
                           std::string_view old) {
  FieldErrors errors;
  validate_changed_value(parsed(object), parsed(old), schema->root(), Path(), errors);
  return shown(errors);
}

TEST(CompileSchema, describes_types_lists_and_embedded_objects) {
  const auto schema = with_spec(R"({"type":"object","properties":{
      "s":{"type":"string","default":"x","enum":["x","y"]},
      "l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}},
           "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},
      "set":{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"set"},
      "m":{"type":"object","additionalProperties":{"type":"number"}},
      "atom":{"type":"object","x-kubernetes-map-type":"atomic"},
      "any":{"x-kubernetes-preserve-unknown-fields":true},
      "ios":{"x-kubernetes-int-or-string":true},
      "emb":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}
      },"required":["s"]})");
  const Schema& root = schema->root();
  ASSERT_NE(root.field("metadata"), nullptr);
  EXPECT_FALSE(root.field("metadata")->schema->fields.empty());
  ASSERT_NE(root.field("kind"), nullptr);
  const Schema& spec = *root.field("spec")->schema;
  EXPECT_EQ(spec.field("s")->default_value->as_string(), "x");
  EXPECT_TRUE(spec.field("s")->required);
  EXPECT_EQ(spec.field("s")->schema->enum_values.size(), 2u);
  EXPECT_EQ(spec.field("l")->schema->list_type, ListType::map);
  EXPECT_EQ(spec.field("l")->schema->map_keys, std::vector<std::string>{"k"});
  EXPECT_EQ(spec.field("l")->schema->element->shape, Shape::object);
  EXPECT_EQ(spec.field("set")->schema->list_type, ListType::set);
  EXPECT_EQ(spec.field("m")->schema->shape, Shape::map);
  EXPECT_EQ(spec.field("m")->schema->element->shape, Shape::number);
  EXPECT_TRUE(spec.field("atom")->schema->atomic);
  EXPECT_EQ(spec.field("any")->schema->shape, Shape::any);
  EXPECT_EQ(spec.field("ios")->schema->shape, Shape::int_or_string);
  EXPECT_TRUE(spec.field("emb")->schema->embedded_resource);
  EXPECT_NE(spec.field("emb")->schema->field("metadata"), nullptr);
  EXPECT_FALSE(schema->has_validations());
}

TEST(CompileSchema, refuses_what_is_not_structural) {
  for (const char* text : {R"({"$ref":"#/x"})", R"({"definitions":{"a":{}}})",
                           R"({"type":"array","items":[{"type":"string"}]})",
                           R"({"type":"object","properties":{"a":{"not":{"id":"x"}}}})"}) {
    EXPECT_FALSE(compile_schema(parsed(text)).ok()) << text;
  }
}

TEST(CompileSchema, is_bounded_for_hostile_schemas) {
  Value deep = Value::object({{"type", "string"}});
  for (int i = 0; i < 5000; ++i) {
    deep = i % 2 == 0 ? Value::object({{"type", "array"}, {"items", deep}})
                      : Value::object({{"allOf", Value::array({deep})}});
  }
  EXPECT_FALSE(compile_schema(deep).ok());
  // Shared nodes count every time they are reached: the tree they stand for is what compiling would
  // build.
  Value wide = Value::object({{"type", "string"}});
  for (int i = 0; i < 40; ++i) wide = Value::object({{"anyOf", Value::array({wide, wide})}});
  EXPECT_FALSE(compile_schema(wide).ok());
}

TEST(CompileSchema, without_a_schema_keeps_everything) {
  auto schema = compile_schema(Value());
  ASSERT_TRUE(schema.ok());
  std::vector<std::string> unknown;
  const Value object =
      parsed(R"({"apiVersion":"g/v1","kind":"K","metadata":{"name":"a"},"x":{"y":[1]}})");
  auto decoded = decode_custom(object, (*schema)->root(), unknown);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(*decoded, object);
  EXPECT_TRUE(unknown.empty());
}

TEST(Prune, keeps_what_is_specified_and_tells_the_rest) {
  const auto schema = with_spec(R"({"type":"object","properties":{
      "a":{"type":"object","properties":{"b":{"type":"string"}}},
      "l":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}}},
      "m":{"type":"object","additionalProperties":{"type":"object","properties":{"v":{"type":"integer"}}}},
      "t":{"type":"object","additionalProperties":true},
      "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
              "properties":{"known":{"type":"object","properties":{"x":{"type":"string"}}}}}}})");
  Value object =
      parsed(R"({"spec":{"a":{"b":"1","z":1},"l":[{"k":"1"},{"q":{"w":1}}],"m":{"x":{"v":1,"n":2}},
      "t":{"s":"kept","o":{"gone":1}},"free":{"any":{"thing":1},"known":{"x":"1","y":2}},"metadata":{"q":1}},"top":1})");
  std::vector<std::string> unknown;
  prune(object, schema->root(), &unknown);
  EXPECT_EQ(
      object,
      parsed(R"({"spec":{"a":{"b":"1"},"l":[{"k":"1"},{}],"m":{"x":{"v":1}},"t":{"s":"kept","o":{}},
      "free":{"any":{"thing":1},"known":{"x":"1"}}}})"));
  EXPECT_EQ(unknown,
            (std::vector<std::string>{"spec.a.z", "spec.free.known.y", "spec.l[1].q", "spec.m.x.n",
                                      "spec.metadata", "spec.t.o.gone", "top"}));
}

TEST(Prune, shares_what_does_not_change) {
  const auto schema = with_spec(
      R"({"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}}}})");
  const Value object = parsed(R"({"spec":{"a":{"b":"1"}}})");
  Value copy = object;
  prune(copy, schema->root());
  apply_custom_defaults(copy, schema->root());
  EXPECT_TRUE(copy.same_node(object));
}

TEST(Defaults, fill_in_and_replace_nulls) {
  const auto schema = with_spec(R"({"type":"object","properties":{
      "n":{"type":"integer","default":3},
      "nullable":{"type":"string","nullable":true,"default":"x"},
      "o":{"type":"object","default":{},"properties":{"deep":{"type":"string","default":"d"}}},
      "l":{"type":"array","items":{"type":"object","properties":{"v":{"type":"integer","default":1}}}},
      "m":{"type":"object","additionalProperties":{"type":"integer","default":7}},
      "items":{"type":"array","items":{"type":"integer","default":9}},
      "plain":{"type":"string"}}})");
  Value object = parsed(
      R"({"spec":{"n":null,"nullable":null,"l":[{},{"v":2}],"m":{"a":null},"items":[null,1],"plain":null}})");
  prune_nulls(object, schema->root());
  apply_custom_defaults(object, schema->root());
  EXPECT_EQ(
      object,
      parsed(R"({"spec":{"n":3,"nullable":null,"o":{"deep":"d"},"l":[{"v":1},{"v":2}],"m":{"a":7},
      "items":[9,1]}})"));
}

TEST(Validate, joins_the_faults_of_all_keywords) {
  const auto schema = with_spec(R"({"type":"object","minProperties":1,"properties":{
      "big":{"type":"integer","maximum":1000000},
      "num":{"type":"number","maximum":1000000},
      "half":{"type":"integer","minimum":0.5},
      "multi":{"type":"number","multipleOf":0.1},
      "i32":{"type":"integer","format":"int32"},
      "when":{"type":"string","format":"date-time"},
      "closed":{"type":"object","additionalProperties":false},
      "e":{"type":"string","nullable":true,"enum":["a"]},
      "en":{"enum":[1,{"a":1},null],"x-kubernetes-preserve-unknown-fields":true},
      "m":{"type":"object","additionalProperties":{"type":"object","required":["r"]}}}})");
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({"spec":{}})", "spec: Invalid value: 0: spec in body should have at least 1 properties"},
      {R"({"spec":{"big":1000001}})",
       "spec.big: Invalid value: 1000001: spec.big in body should be less than or equal to "
       "1000000"},
      {R"({"spec":{"num":1000001.5}})",
       "spec.num: Invalid value: 1.0000015e+06: spec.num in body should be less than or equal to "
       "1e+06"},
      {R"({"spec":{"half":0}})",
       "<nil>: Invalid value: \"\": Minimum boundary value must be of type integer (default "
       "format) in spec.half; "
       "spec.half: Invalid value: 0: spec.half in body should be greater than or equal to 0.5"},
      {R"({"spec":{"multi":0.25}})",
       "spec.multi: Invalid value: 0.25: spec.multi in body should be a multiple of 0.1"},
      {R"({"spec":{"multi":0.3}})", ""},
      {R"({"spec":{"i32":true}})",
       "spec.i32: Invalid value: \"\": spec.i32 in body must be of type int32: \"\""},
      {R"({"spec":{"i32":2.0}})", ""},
      {R"({"spec":{"when":5}})",
       "spec.when: Invalid value: \"int64\": spec.when in body must be of type date-time: "
       "\"int64\""},
      {R"({"spec":{"closed":{"x":1}}})",
       "spec.closed: Invalid value: \"x\": spec.closed.x in body is a forbidden property"},
      {R"({"spec":{"e":null}})", "spec.e: Unsupported value: null: supported values: \"a\""},
      {R"({"spec":{"en":{"a":1}}})", ""},
      {R"({"spec":{"en":2}})",
       "spec.en: Unsupported value: 2: supported values: \"1\", \"{\\\"a\\\":1}\", \"null\""},
      {R"({"spec":{"big":null}})",
       "spec.big: Invalid value: \"null\": spec.big in body must be of type integer: \"null\""},
      {R"({"spec":{"m":{"x":{}}}})", "spec.m.x.r: Required value"},
  };
  for (const auto& [object, want] : cases) EXPECT_EQ(faults(schema, object), want) << object;
}

TEST(Validate, metadata_may_be_narrowed_at_the_root) {
  const auto schema = compiled(
      R"({"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}}}})");
  EXPECT_EQ(faults(schema, R"({"metadata":{"name":"abcd","labels":{"x":"y"}}})"),
            "metadata.name: Too long: may not be more than 3 bytes");
}

TEST(Validate, counts_characters_not_bytes) {
  const auto schema = with_spec(R"({"type":"string","maxLength":2})");
  EXPECT_EQ(faults(schema, R"({"spec":"äö"})"), "");
  EXPECT_EQ(faults(schema, R"({"spec":"äöü"})"), "spec: Too long: may not be more than 2 bytes");
}

TEST(Ratcheting, forgives_what_did_not_change) {
  const auto schema = with_spec(R"({"type":"object","required":["must"],"properties":{
      "a":{"type":"string","maxLength":2},"b":{"type":"string"},
      "o":{"type":"object","properties":{"x":{"type":"integer","maximum":1},"y":{"type":"string"}}},
      "set":{"type":"array","items":{"type":"string","maxLength":1}},
      "keyed":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
        "items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"type":"integer","maximum":1}}}}}})");
  const std::vector<std::tuple<const char*, const char*, const char*>> cases = {
      {R"({"spec":{"must":1,"a":"long","b":"new"}})", R"({"spec":{"must":1,"a":"long","b":"old"}})",
       ""},
      {R"({"spec":{"must":1,"a":"longer"}})", R"({"spec":{"must":1,"a":"long"}})",
       "spec.a: Too long: may not be more than 2 bytes"},
      {R"({"spec":{"b":"new"}})", R"({"spec":{"b":"old"}})", "spec.must: Required value"},
      {R"({"spec":{"must":1,"o":{"x":5,"y":"new"}}})",
       R"({"spec":{"must":1,"o":{"x":5,"y":"old"}}})", ""},
      {R"({"spec":{"must":1,"set":["aa"],"b":"n"}})", R"({"spec":{"must":1,"set":["aa"],"b":"o"}})",
       ""},
      {R"({"spec":{"must":1,"set":["aa","b"]}})", R"({"spec":{"must":1,"set":["aa"]}})",
       "spec.set[0]: Too long: may not be more than 1 byte"},
      {R"({"spec":{"must":1,"keyed":[{"k":"b","v":1},{"k":"a","v":5}]}})",
       R"({"spec":{"must":1,"keyed":[{"k":"a","v":5}]}})", ""},
      {R"({"spec":{"must":1,"keyed":[{"k":"c","v":5}]}})",
       R"({"spec":{"must":1,"keyed":[{"k":"a","v":5}]}})",
       "spec.keyed[0].v: Invalid value: 5: spec.keyed[0].v in body should be less than or equal to "
       "1"},
  };
  for (const auto& [object, old, want] : cases)
    EXPECT_EQ(changed_faults(schema, object, old), want) << object;
}

TEST(ListTypes, tell_the_first_repetition) {
  const auto schema = with_spec(
      R"({"type":"object","additionalProperties":{"type":"array","x-kubernetes-list-type":"set",
      "items":{"type":"object","x-kubernetes-map-type":"atomic"}}})");
  FieldErrors errors;
  validate_list_types(parsed(R"({"spec":{"x":[{"a":1,"b":2},{"b":2,"a":1},{"a":1,"b":2}]}})"),
                      schema->root(), errors);
  EXPECT_EQ(shown(errors), R"(spec[x][1]: Duplicate value: {"a":1,"b":2})");
}

TEST(CustomRules, calls_the_evaluator_only_for_objects_that_fit) {
  int called = 0;
  CustomVersion version;
  version.schema = with_spec(R"({"type":"object","properties":{"a":{"type":"string"}},
      "x-kubernetes-validations":[{"rule":"self.a != 'x'"}]})");
  version.cel = [&](const Value&, const Value*, FieldErrors& errors) {
    ++called;
    errors.invalid(Path("spec"), "x", "failed rule");
  };
  version.selectable = {".spec.a"};
  const KindRules rules = make_custom_rules(std::move(version));

  FieldErrors fits;
  rules.validate(parsed(R"({"spec":{"a":"x"}})"), fits);
  EXPECT_EQ(shown(fits), "spec: Invalid value: \"x\": failed rule");
  FieldErrors broken;
  rules.validate(parsed(R"({"spec":{"a":1}})"), broken);
  EXPECT_EQ(shown(broken),
            "spec.a: Invalid value: \"integer\": spec.a in body must be of type string: "
            "\"integer\"; <nil>: Invalid "
            "value: null: some validation rules were not checked because the object was invalid; "
            "correct the existing "
            "errors to complete validation");
  EXPECT_EQ(called, 1);
  ASSERT_EQ(rules.selectable.size(), 1u);
  EXPECT_EQ(rules.selectable[0].label, "spec.a");
  EXPECT_EQ(rules.selectable[0].get(parsed(R"({"spec":{"a":"v"}})")), "v");
}

TEST(CustomRules, warns_of_finalizers_without_a_domain) {
  CustomVersion version;
  version.schema = with_spec(R"({"type":"object"})");
  const KindRules rules = make_custom_rules(std::move(version));
  const Value object =
      parsed(R"({"metadata":{"finalizers":["mine","e.com/x","foregroundDeletion","a.b"]}})");
  EXPECT_EQ(rules.warnings(object, nullptr),
            (std::vector<std::string>{"metadata.finalizers: \"a.b\": prefer a domain-qualified "
                                      "finalizer name including a path (/) to avoid "
                                      "accidental conflicts with other finalizer writers",
                                      "metadata.finalizers: \"mine\": prefer a domain-qualified "
                                      "finalizer name to avoid accidental conflicts "
                                      "with other finalizer writers"}));
  EXPECT_TRUE(rules.warnings(object, &object).empty());
}

// Random values against random schemas: pruning and defaults settle after one pass, and nothing
// breaks.
TEST(Properties, pruning_and_defaults_are_idempotent) {
  std::mt19937 random(7);
  auto below = [&](int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); };
  std::function<Value(int)> value = [&](int depth) -> Value {
    switch (below(depth > 0 ? 7 : 5)) {
      case 0:
        return nullptr;
      case 1:
        return below(2) == 0;
      case 2:
        return below(10);
      case 3:
        return 0.5 * below(10);
      case 4:
        return cat("s", below(5));
      case 5: {
        Value list = Value::array();
        for (int i = below(4); i > 0; --i) list.push(value(depth - 1));
        return list;
      }
      default: {
        Value object = Value::object();
        for (int i = below(5); i > 0; --i) object.set(cat("k", below(4)), value(depth - 1));
        return object;
      }
    }
  };
  std::function<Value(int)> schema = [&](int depth) -> Value {
    Value out = Value::object();
    const int kind = below(depth > 0 ? 7 : 4);
    const char* types[] = {"string", "integer", "number", "boolean", "array", "object", "object"};
    out.set("type", types[kind]);
    if (below(4) == 0) out.set("nullable", true);
    if (below(5) == 0 && kind < 4)
      out.set("default", kind == 0 ? Value("d") : kind == 3 ? Value(true) : Value(1));
    if (kind == 4) out.set("items", schema(depth - 1));
    if (kind == 5) {
      Value properties = Value::object();
      for (int i = below(4); i > 0; --i) properties.set(cat("k", below(4)), schema(depth - 1));
      out.set("properties", properties);
      if (below(4) == 0) out.set("x-kubernetes-preserve-unknown-fields", true);
    }
    if (kind == 6) out.set("additionalProperties", schema(depth - 1));
    if (below(4) == 0)
      out.set("anyOf",
              Value::array({Value::object({{"maxLength", 1}}), Value::object({{"minimum", 2}})}));
    return out;
  };
  for (int round = 0; round < 2000; ++round) {
    Value properties = Value::object({{"spec", schema(4)}});
    auto made = compile_schema(Value::object({{"type", "object"}, {"properties", properties}}));
    ASSERT_TRUE(made.ok());
    const Schema& root = (*made)->root();
    Value object = Value::object({{"apiVersion", "g/v1"}, {"kind", "K"}, {"spec", value(5)}});
    std::vector<std::string> unknown;
    auto once = decode_custom(object, root, unknown);
    ASSERT_TRUE(once.ok());
    apply_custom_defaults(*once, root);
    unknown.clear();
    auto twice = decode_custom(*once, root, unknown);
    ASSERT_TRUE(twice.ok());
    apply_custom_defaults(*twice, root);
    ASSERT_EQ(*twice, *once) << json::write(properties);
    ASSERT_TRUE(unknown.empty());
    FieldErrors errors;
    validate_value(*once, root, Path(), errors);
    FieldErrors again;
    validate_changed_value(*once, *once, root, Path(), again);
    ASSERT_LE(again.size(), errors.size());
  }
}

}  // namespace
}  // namespace dibs::api
