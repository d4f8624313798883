#include "cel/json_value.h"

#include <gmock/gmock.h>

#include <memory>

#include "cel/environment.h"
#include "json/parse.h"

namespace dibs::cel {
namespace {

json::Value tree(std::string_view text) { return *json::parse(text); }

Value answer(std::string_view expression, std::string_view text) {
  Environment environment = Environment::standard();
  environment.variable("x", Type::parse("dyn"));
  const Compilation compiled = environment.compile(expression);
  if (compiled.program == nullptr) return Value::error("does not compile");
  const Value variables[] = {json_value(tree(text))};
  return compiled.program->evaluate(variables).value;
}

TEST(JsonValue, expressions_read_a_tree) {
  const struct {
    std::string_view expression;
    std::string_view json;
  } kCases[] = {
      {"x == 3", "3"},
      {"x == 2.5 && type(x) == double", "2.5"},
      {"type(x) == int", "7"},
      {"x == null", "null"},
      {"x == true", "true"},
      {"x == 'a string that is too long to lie in the value'",
       "\"a string that is too long to lie in the value\""},
      {"x.a.b[1] == 'two' && x.a.b.size() == 3", R"({"a": {"b": ["one", "two", "three"]}})"},
      {"has(x.a) && !has(x.b) && 'a' in x && !('b' in x) && !(1 in x)", R"({"a": null})"},
      {"x == {'a': 1, 'b': [2, 'c']}", R"({"b": [2, "c"], "a": 1})"},
      {"x.all(k, x[k].startsWith(k))", R"({"a": "apple", "b": "bee"})"},
      {"x.map(v, v * 2) == [2, 4]", "[1, 2]"},
      {"x.size() == 0", "{}"},
      {"x == []", "[]"},
  };
  for (const auto& one : kCases)
    EXPECT_TRUE(answer(one.expression, one.json).is_true()) << one.expression;
}

TEST(JsonValue, absent_members_are_errors) {
  const Value found = answer("x.b", R"({"a": 1})");

  ASSERT_TRUE(found.is_error());
  EXPECT_EQ(found.text(), "no such key: b");
}

TEST(JsonValue, keeps_order_of_members) {
  const Value map = json_value(tree(R"({"z": 1, "a": "x"})"));

  ASSERT_EQ(map.as_map().size(), 2u);
  EXPECT_EQ(map.as_map().key_at(0).text(), "z");
  EXPECT_EQ(map.as_map().value_at(1).text(), "x");
}

TEST(JsonValue, text_outlives_tree_and_container) {
  auto kept = std::make_unique<json::Value>(tree(R"({"list": ["short", "longer than fourteen"]})"));
  Value map = json_value(*kept);
  Value list;
  ASSERT_TRUE(map.as_map().find(Value::borrow("list"), list));
  const Value brief = list.as_list().at(0);
  const Value lengthy = list.as_list().at(1);

  kept->mut("list").mut(0) = "other";
  kept.reset();
  map = Value();
  list = Value();

  EXPECT_EQ(brief.text(), "short");
  EXPECT_EQ(lengthy.text(), "longer than fourteen");
}

}  // namespace
}  // namespace dibs::cel
