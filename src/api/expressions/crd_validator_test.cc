#include "api/expressions/crd_validator.h"

#include <gtest/gtest.h>

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

/// Faults, then warnings.
std::string shown(const FieldErrors& errors) {
  std::string text;
  for (const FieldError& error : errors.errors())
    append(text, text.empty() ? "" : "\n", error.field, ": ", error.text);
  for (const std::string& warning : errors.warnings())
    append(text, text.empty() ? "" : "\n", "warning: ", warning);
  return text;
}

/// Judges a spec by a schema of it.
class Rules {
 public:
  explicit Rules(std::string_view spec)
      : validator_(make_cel_validator(
            parsed(cat(R"j({"type":"object","properties":{"spec":)j", spec, "}}")))) {}

  std::string create(std::string_view spec) const {
    FieldErrors errors;
    validator_(object(spec), nullptr, errors);
    return shown(errors);
  }
  std::string update(std::string_view old, std::string_view spec) const {
    FieldErrors errors;
    const Value before = object(old);
    validator_(object(spec), &before, errors);
    return shown(errors);
  }

 private:
  static Value object(std::string_view spec) {
    return parsed(cat(R"j({"kind":"A","metadata":{"name":"n"},"spec":)j", spec, "}"));
  }
  CelValidator validator_;
};

TEST(CelValidator, is_empty_without_rules) {
  EXPECT_FALSE(make_cel_validator(parsed(R"j({"type":"object"})j")));
  EXPECT_FALSE(make_cel_validator(Value()));
}

TEST(CelValidator, words_follow_the_rule) {
  const Rules rules(R"j({"type":"object","properties":{
      "plain":{"type":"integer","x-kubernetes-validations":[{"rule":" self > 1 "}]},
      "said":{"type":"string","x-kubernetes-validations":[{"rule":"self == ''","message":" no "}]},
      "made":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self > 1","messageExpression":"' ' + string(self) + ' is low '"}]},
      "failing":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self > 1","messageExpression":"string(1 / self)","message":"m"}]},
      "long":{"type":"boolean","x-kubernetes-validations":[
          {"rule":"self","messageExpression":"'a\\nb'"}]},
      "blank":{"type":"boolean","x-kubernetes-validations":[
          {"rule":"self","messageExpression":"' '"}]},
      "taken":{"type":"string","x-kubernetes-validations":[
          {"rule":"false","reason":"FieldValueDuplicate","message":"m"}]},
      "never":{"type":"object","x-kubernetes-validations":[
          {"rule":"false","reason":"FieldValueForbidden"}]},
      "twice":{"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[
          {"rule":"false","reason":"FieldValueDuplicate"}]},
      "at":{"type":"object","properties":{"a":{"type":"object","additionalProperties":
          {"type":"string"}}},"x-kubernetes-validations":[
          {"rule":"false","fieldPath":".a['b.c']","reason":"FieldValueRequired"}]}}})j");
  const struct {
    std::string_view spec;
    std::string_view wanted;
  } cases[] = {
      {R"j({"plain":1})j", "spec.plain: Invalid value: 1: failed rule: self > 1"},
      {R"j({"plain":null})j", ""},
      {R"j({"said":"x\"y"})j", "spec.said: Invalid value: \"x\\\"y\": no"},
      {R"j({"made":0})j", "spec.made: Invalid value: 0: 0 is low"},
      {R"j({"failing":0})j", "spec.failing: Invalid value: 0: m"},
      {R"j({"long":false})j", "spec.long: Invalid value: false: failed rule: self"},
      {R"j({"blank":false})j", "spec.blank: Invalid value: false: failed rule: self"},
      {R"j({"taken":"x"})j", "spec.taken: Duplicate value: \"x\""},
      {R"j({"never":{}})j", "spec.never: Forbidden: failed rule: false"},
      {R"j({"twice":[1]})j", "spec.twice: Duplicate value"},
      {R"j({"at":{}})j", "spec.at.a[b.c]: Required value: failed rule: false"},
  };
  for (const auto& test : cases) EXPECT_EQ(rules.create(test.spec), test.wanted) << test.spec;
}

TEST(CelValidator, tells_what_cannot_be_evaluated) {
  const Rules rules(R"j({"type":"object","properties":{"a":{"type":"integer"},
      "l":{"type":"array","items":{"type":"integer"}},"q":{"x-kubernetes-int-or-string":true}},
      "x-kubernetes-validations":[
      {"rule":"self.l[0] == 0 || self.a > 1"},{"rule":"1 / self.l[0] < 9","message":"m"},
      {"rule":"!has(self.q) || self.q.startsWith('x')"}]})j");
  EXPECT_EQ(rules.create(R"j({"a":2,"l":[0],"q":"x"})j"),
            "spec: Invalid value: \"object\": division by zero evaluating rule: m");
  EXPECT_EQ(rules.create(R"j({"l":[1]})j"),
            "spec: Invalid value: \"object\": no such key: a evaluating rule: self.l[0] == 0 || "
            "self.a > 1");
  EXPECT_EQ(rules.create(R"j({"a":2,"l":[1],"q":3})j"),
            "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a "
            "supported operator, function or macro signature for rule: !has(self.q) || "
            "self.q.startsWith('x')");
}

TEST(CelValidator, values_are_of_the_types_of_their_formats) {
  const Rules rules(R"j({"type":"object","properties":{
      "y":{"type":"string","format":"byte","x-kubernetes-validations":[{"rule":"self == b'abc'"}]},
      "d":{"type":"string","format":"date","x-kubernetes-validations":[
          {"rule":"self < timestamp('2020-01-01T00:00:01Z')"}]},
      "t":{"type":"string","format":"date-time","x-kubernetes-validations":[
          {"rule":"self.getHours() == 3"}]},
      "u":{"type":"string","format":"duration","x-kubernetes-validations":[
          {"rule":"self == duration('90m') || self == duration('168h')"}]},
      "n":{"type":"number","x-kubernetes-validations":[{"rule":"self == 2.0"}]},
      "z":{"type":"object","nullable":true,"additionalProperties":{"type":"object","nullable":true},
          "x-kubernetes-validations":[{"rule":"self.exists_one(k, self[k] == null)"}]},
      "e":{"type":"object","x-kubernetes-embedded-resource":true,
          "x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[
          {"rule":"self.metadata.name == 'x' && self.kind == 'K'"}]}},
      "x-kubernetes-validations":[{"rule":"!has(self.z) || size(self.z) > 0"}]})j");
  EXPECT_EQ(rules.create(R"j({"y":"YWJj","d":"2020-01-01","t":"2020-01-01T04:00:00+01:00",
      "u":"1h30m",
      "n":2,"z":{"a":null,"b":{}},"e":{"kind":"K","metadata":{"name":"x","namespace":"y"}}})j"),
            "");
  EXPECT_EQ(rules.create(R"j({"u":"1 week","z":null})j"), "");
  EXPECT_EQ(rules.create(R"j({"y":"YWJk"})j"),
            "spec.y: Invalid value: \"YWJk\": failed rule: self == b'abc'");
}

TEST(CelValidator, lists_compare_and_add_by_their_type) {
  const auto rule = [](std::string_view text) {
    return Rules(cat(R"j({"type":"object","properties":{
        "s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
        "t":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"integer"}},
        "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
            "items":{"type":"object","properties":{"n":{"type":"string"},"v":{"type":"integer"}}}},
        "j":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],
            "items":{"type":"object","properties":{"n":{"type":"string"},"v":{"type":"integer"}}}},
        "l":{"type":"array","items":{"type":"integer"}},
        "x":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object",
            "x-kubernetes-map-type":"atomic","properties":{"n":{"type":"string"}}}}},
        "x-kubernetes-validations":[{"rule":")j",
                     text, "\"}]}"));
  };
  constexpr std::string_view kSpec = R"j({"s":[1,2],"t":[2,1],"l":[2,1],"x":[{"n":"a"}],
      "k":[{"n":"a","v":1},{"n":"b","v":2}],"j":[{"n":"b","v":2},{"n":"a","v":1}]})j";
  for (const char* kept :
       {"self.s == self.t", "self.s == self.l", "self.l != self.s", "self.s == [2, 1]",
        "self.s + [2, 3] == [3, 2, 1]", "(self.s + [3]).size() == 3",
        "(self.s + self.t).size() == 2", "self.s + [3, 3] + [4] == [1, 2, 3, 4]",
        "self.l + [2] == [2, 1, 2]", "self.s != [1, 3]",
        // What is added may be looked at by position again.
        "(self.s + [7])[2] == 7", "1 in self.s", "self.s.all(i, i > 0)"})
    EXPECT_EQ(rule(kept).create(kSpec), "") << kept;
  for (const char* kept :
       {"(self.k + self.k).size() == 2", "(self.k + self.k.filter(i, i.v > 1))[0].n == 'a'",
        "self.k + self.k == self.k", "self.k.exists(i, i.n == 'b' && i.v == 2)"})
    EXPECT_EQ(rule(kept).create(kSpec), "") << kept;
  EXPECT_NE(rule("self.x == self.x").create(kSpec).find("listSet operations are only supported"),
            std::string::npos);

  // Two lists of one type: the value and what it was.
  const Rules same(R"j({"type":"object","properties":{"k":{"type":"array",
      "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n"],"items":{"type":"object",
      "properties":{"n":{"type":"string"},"v":{"type":"integer"}}},
      "x-kubernetes-validations":[{"rule":"self == oldSelf","message":"changed"}]}}})j");
  EXPECT_EQ(same.update(R"j({"k":[{"n":"a","v":1},{"n":"b"}]})j",
                        R"j({"k":[{"n":"b"},{"n":"a","v":1}]})j"),
            "");
  EXPECT_EQ(same.update(R"j({"k":[{"n":"a","v":1}]})j", R"j({"k":[{"n":"a","v":2}]})j"),
            "spec.k: Invalid value: changed");
}

TEST(CelValidator, objects_compare_by_what_they_hold) {
  const Rules rules(R"j({"type":"object","x-kubernetes-preserve-unknown-fields":true,
      "properties":{"a":{"type":"integer","nullable":true},
      "x":{"x-kubernetes-preserve-unknown-fields":true}},
      "x-kubernetes-validations":[{"rule":"self == oldSelf","message":"changed"}]})j");
  EXPECT_EQ(rules.update(R"j({"a":1,"x":{"y":1}})j", R"j({"x":{"y":1},"a":1})j"), "");
  EXPECT_EQ(rules.update(R"j({"a":1})j", R"j({"a":2})j"), "spec: Invalid value: changed");
  EXPECT_EQ(rules.update(R"j({"x":{"y":1}})j", R"j({"x":{"y":2}})j"),
            "spec: Invalid value: changed");
  EXPECT_EQ(rules.update(R"j({"u":1})j", R"j({"u":2})j"), "spec: Invalid value: changed");
}

TEST(CelValidator, transitions_are_judged_where_there_was_something) {
  const Rules rules(R"j({"type":"object","properties":{
      "f":{"type":"string","x-kubernetes-validations":[{"rule":"self == oldSelf"}]},
      "o":{"type":"string","x-kubernetes-validations":[
          {"rule":"oldSelf.orValue('x') == 'x'","optionalOldSelf":true,
           "messageExpression":"'was ' + oldSelf.value()"}]},
      "k":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["n","i"],
          "items":{"type":"object","properties":{"n":{"type":"string"},"i":{"type":"integer"},
          "v":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf"}]}}}},
      "m":{"type":"object","additionalProperties":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self >= oldSelf"}]}}}})j");
  EXPECT_EQ(rules.create(R"j({"f":"a","o":"b","k":[{"n":"a","i":1,"v":1}],"m":{"a":1}})j"), "");
  EXPECT_EQ(rules.update(R"j({"f":"a"})j", R"j({"f":"b"})j"),
            "spec.f: Invalid value: \"b\": failed rule: self == oldSelf");
  EXPECT_EQ(rules.update(R"j({"f":null})j", R"j({"f":"b"})j"), "");
  EXPECT_EQ(rules.update(R"j({"f":"a"})j", R"j({})j"), "");
  // The message sees the old value as it is, so that this one has none.
  EXPECT_EQ(rules.update(R"j({"o":"a"})j", R"j({"o":"b"})j"),
            "spec.o: Invalid value: \"b\": failed rule: oldSelf.orValue('x') == 'x'");
  EXPECT_EQ(rules.update(R"j({"k":[{"n":"a","i":1,"v":5},{"n":"a","i":2,"v":1}]})j",
                         R"j({"k":[{"n":"a","i":2,"v":2},{"n":"a","i":1,"v":4}]})j"),
            "spec.k[1].v: Invalid value: 4: failed rule: self >= oldSelf");
  EXPECT_EQ(rules.update(R"j({"m":{"a.b":2}})j", R"j({"m":{"a.b":1,"c":0}})j"),
            "spec.m[a.b]: Invalid value: 1: failed rule: self >= oldSelf");
}

TEST(CelValidator, what_was_wrong_before_only_warns) {
  const Rules rules(R"j({"type":"object","properties":{
      "a":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","message":"m"}]},
      "b":{"type":"integer"},
      "l":{"type":"array","items":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self > 1","message":"m"}]}},
      "o":{"type":"object","properties":{"c":{"type":"integer"}},"x-kubernetes-validations":[
          {"rule":"self.c > 1","message":"m"}]},
      "t":{"type":"integer","x-kubernetes-validations":[
          {"rule":"self > oldSelf","message":"m"}]}}})j");
  EXPECT_EQ(rules.update(R"j({"a":0,"b":1})j", R"j({"a":0,"b":2})j"),
            "warning: spec.a: Invalid value: 0: m");
  EXPECT_EQ(rules.update(R"j({"a":0})j", R"j({"a":1})j"), "spec.a: Invalid value: 1: m");
  // Items of a list without keys are as old as the list.
  EXPECT_EQ(rules.update(R"j({"l":[0],"b":1})j", R"j({"l":[0],"b":2})j"),
            "warning: spec.l[0]: Invalid value: 0: m");
  EXPECT_EQ(rules.update(R"j({"l":[0]})j", R"j({"l":[0,2]})j"), "spec.l[0]: Invalid value: 0: m");
  EXPECT_EQ(rules.update(R"j({"o":{"c":0}})j", R"j({"o":{"c":0}})j"),
            "warning: spec.o: Invalid value: m");
  // Rules about the change are not forgiven.
  EXPECT_EQ(rules.update(R"j({"t":1})j", R"j({"t":1})j"), "spec.t: Invalid value: 1: m");
}

TEST(CelValidator, work_is_bounded) {
  // Each evaluation costs more than half a million, of ten million that there are.
  const Rules rules(R"j({"type":"object","properties":{"l":{"type":"array",
      "items":{"type":"array","items":{"type":"integer"},"x-kubernetes-validations":[
      {"rule":"self.all(x, self.all(y, x >= 0 || y < 0))","message":"m"}]}}}})j");
  std::string list = "[0";
  for (int i = 1; i < 300; ++i) append(list, ",", i);
  list += "]";
  std::string lists = list;
  for (int i = 1; i < 30; ++i) append(lists, ",", list);

  EXPECT_EQ(rules.create(cat(R"j({"l":[)j", list, "]}")), "");
  EXPECT_EQ(rules.create(cat(R"j({"l":[)j", lists, "]}")),
            "spec.l[22]: Invalid value: \"array\": validation failed due to running out of cost "
            "budget, no further validation rules will be run");
  std::string longer = list;
  longer.pop_back();
  for (int i = 300; i < 600; ++i) append(longer, ",", i);
  EXPECT_EQ(rules.create(cat(R"j({"l":[)j", longer, "]]}")),
            "spec.l[0]: Invalid value: \"array\": 'operation cancelled: actual cost limit "
            "exceeded': no further validation rules will be run due to call cost exceeds limit for "
            "rule: m");
}

TEST(CelValidator, names_of_the_root_are_shown) {
  const CelValidator validator = make_cel_validator(parsed(
      R"j({"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name != 'n'",
      "fieldPath":".spec","message":"m"},{"rule":"self.kind == 'B'"}],
      "properties":{"spec":{"type":"object"}}})j"));
  FieldErrors errors;
  validator(parsed(R"j({"kind":"A","metadata":{"name":"n"}})j"), nullptr, errors);
  EXPECT_EQ(shown(errors),
            "spec: Invalid value: m\n<nil>: Invalid value: failed rule: self.kind == 'B'");
}

TEST(CelDefaults, must_keep_the_rules) {
  const auto judge = [](std::string_view schema, std::int64_t budget = kObjectBudget) {
    const Value value = parsed(schema);
    const Path path("default");
    FieldErrors errors;
    judge_default({value, path, false, budget}, errors);
    return cat(shown(errors), budget < 0 ? " spent" : "");
  };
  EXPECT_EQ(judge(R"j({"type":"integer","default":1,
      "x-kubernetes-validations":[{"rule":"self > 0"}]})j"),
            "");
  EXPECT_EQ(judge(R"j({"type":"integer","default":0,
      "x-kubernetes-validations":[{"rule":"self > 0"}]})j"),
            "default: Invalid value: 0: failed rule: self > 0");
  EXPECT_EQ(judge(R"j({"type":"integer","default":0,"x-kubernetes-validations":[
      {"rule":"oldSelf.hasValue()","optionalOldSelf":true}]})j"),
            "default: Invalid value: 0: failed rule: oldSelf.hasValue()");
  EXPECT_EQ(judge(R"j({"type":"integer","default":0,"x-kubernetes-validations":[{"rule":"z"}]})j"),
            "default: Invalid value: \"integer\": rule compile error: compilation failed: ERROR: "
            "<input>:1:1: undeclared reference to 'z' (in container '')\n | z\n | ^");
  EXPECT_EQ(judge(R"j({"type":"integer","default":0,
      "x-kubernetes-validations":[{"rule":"self > 0"}]})j",
                  0),
            "default: Invalid value: \"integer\": validation failed due to running out of cost "
            "budget, no further validation rules will be run spent");
}

}  // namespace
}  // namespace dibs::api
