#include "api/merge/field_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "api/merge/test_support.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using test::from_text;
using ::testing::ElementsAre;

FieldSet set_from(std::string_view text) {
  auto set = FieldSet::from_json(from_text(text));
  EXPECT_TRUE(set.ok()) << text;
  return set.ok() ? *set : FieldSet();
}

std::vector<std::string> paths(const FieldSet& set) {
  std::vector<std::string> out;
  set.for_each([&](const FieldPath& path) { out.push_back(to_string(path)); });
  return out;
}

TEST(FieldSet, reads_and_writes_fields_v1) {
  const char* text =
      R"({"f:metadata":{"f:finalizers":{".":{},"v:\"e.com/a\"":{}},"f:labels":{"f:a":{}}},)"
      R"("f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}},"f:x":{"i:3":{}}}})";

  const auto set = FieldSet::from_json(*json::parse(text));

  ASSERT_TRUE(set.ok());
  EXPECT_EQ(json::write(set->to_json()), text);
  EXPECT_THAT(paths(*set),
              ElementsAre(".metadata.finalizers", ".metadata.finalizers[=\"e.com/a\"]",
                          ".metadata.labels.a", ".spec.ports[port=80,protocol=\"TCP\"]",
                          ".spec.ports[port=80,protocol=\"TCP\"].port", ".spec.x[3]"));
  EXPECT_EQ(set->size(), 6u);
}

TEST(FieldSet, writes_in_one_order) {
  const auto set = FieldSet::from_json(*json::parse(
      R"({"v:\"b\"":{},"k:{\"b\":1,\"a\":2}":{},"f:z":{},"f:a":{},"v:10":{},"v:9":{},"v:true":{},"i:1":{}})"));
  EXPECT_EQ(
      json::write(set->to_json()),
      R"({"f:a":{},"f:z":{},"k:{\"a\":2,\"b\":1}":{},"v:9":{},"v:10":{},"v:\"b\"":{},"v:true":{},"i:1":{}})");
}

TEST(FieldSet, refuses_what_is_none_and_skips_what_it_does_not_know) {
  for (const char* text :
       {"{'bad':{}}", "{'f':{}}", "{'f:a':1}", "{'v:x':{}}", "{'k:1':{}}", "{'i:x':{}}", "[]"}) {
    EXPECT_FALSE(FieldSet::from_json(from_text(text)).ok()) << text;
  }
  EXPECT_EQ(json::write(set_from("{'f:a':{},'q:x':{'f:b':{}}}").to_json()), R"({"f:a":{}})");
  EXPECT_TRUE(set_from("{}").empty());
  EXPECT_TRUE(set_from("null").empty());
}

TEST(FieldSet, is_the_value_it_was_read_from_when_that_is_spelled_as_ours) {
  for (const char* text : {"{}", "{'f:a':{}}",
                           "{'f:a':{'.':{},'f:b':{}},'f:c':{'k:{\\'a\\':1,\\'b\\':\\'x y\\'}':{}}}",
                           "{'v:-3':{},'v:0':{},'v:12':{},'v:\\'a\\'':{}}",
                           "{'k:{\\'n\\':\\'a\\'}':{},'k:{\\'n\\':\\'a b\\'}':{}}"}) {
    const Value fields = from_text(text);
    EXPECT_TRUE(set_from(text).to_json() == fields) << text;
    auto set = FieldSet::from_json(fields);
    ASSERT_TRUE(set.ok());
    EXPECT_TRUE(set->to_json().same_node(fields)) << text;
  }
}

TEST(FieldSet, spells_what_it_reads_in_one_way) {
  struct Case {
    const char* given;
    const char* spelled;
  };
  for (const Case& c : {
           Case{"{'.':{},'f:a':{}}", "{'f:a':{}}"},
           {"{'f:a':{'.':{}}}", "{'f:a':{}}"},
           {"{'f:a':null}", "{'f:a':{}}"},
           {"{'f:a':{'f:b':{},'.':{}}}", "{'f:a':{'.':{},'f:b':{}}}"},
           {"{'f:a':{'.':{'f:x':{}},'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}"},
           {"{'f:b':{},'f:a':{}}", "{'f:a':{},'f:b':{}}"},
           {"{'v:1.0':{}}", "{'v:1':{}}"},
           {"{'v: 1':{}}", "{'v:1':{}}"},
           {"{'v:-0':{}}", "{'v:0':{}}"},
           {"{'v:1':{'f:a':{}},'v:1.0':{'f:b':{}}}", "{'v:1':{'f:b':{}}}"},
           {"{'k:{\\'b\\':1,\\'a\\':2}':{}}", "{'k:{\\'a\\':2,\\'b\\':1}':{}}"},
           {"{'k:{\\'a\\': 1}':{}}", "{'k:{\\'a\\':1}':{}}"},
           {"{'i:03':{}}", "{'i:3':{}}"},
           {"{'q:x':{},'f:a':{'q:y':{}}}", "{'f:a':{}}"},
       }) {
    EXPECT_EQ(json::write(set_from(c.given).to_json()), json::write(from_text(c.spelled)))
        << c.given;
  }
}

TEST(FieldSet, orders_spelled_elements_as_the_elements) {
  std::vector<PathElement> elements;
  for (const char* text : {"", "a", "b", "aa", "a b", "a!", "a\"b", "<", "\xc3\xa9", "z"}) {
    elements.push_back(PathElement::field(text));
    elements.push_back(PathElement::value(Value(text)));
    elements.push_back(PathElement::key(Value::object({{"n", text}})));
    elements.push_back(PathElement::key(Value::object({{"n", text}, {"o", 1}})));
    elements.push_back(PathElement::key(Value::object({{"nn", text}})));
  }
  for (const long long number : {-20ll, -3ll, 0ll, 1ll, 9ll, 10ll, 1ll << 60}) {
    elements.push_back(PathElement::value(Value(number)));
    elements.push_back(PathElement::index(number));
    elements.push_back(PathElement::key(Value::object({{"n", number}})));
    elements.push_back(PathElement::key(Value::object({{"n", number}, {"o", "x"}})));
  }
  for (const Value& odd : {Value(1.5), Value(true), Value(), Value::array({1, "a"})}) {
    elements.push_back(PathElement::value(odd));
    elements.push_back(PathElement::key(Value::object({{"n", odd}})));
  }
  const auto sign = [](int c) { return c < 0 ? -1 : c > 0 ? 1 : 0; };
  for (const PathElement& a : elements) {
    for (const PathElement& b : elements) {
      EXPECT_EQ(sign(compare_spelled(a.spelling(), b.spelling())), sign(compare(a, b)))
          << a.spelling() << " " << b.spelling();
    }
    auto again = PathElement::parse(a.spelling());
    ASSERT_TRUE(again.ok() && *again) << a.spelling();
    EXPECT_EQ(**again, a);
  }
}

TEST(FieldSet, takes_away_members_or_whole_branches) {
  const FieldSet set = set_from("{'f:a':{'.':{},'f:b':{'f:c':{}}},'f:d':{}}");
  EXPECT_THAT(paths(set.without(set_from("{'f:a':{}}"))), ElementsAre(".d", ".a.b.c"));
  EXPECT_THAT(paths(set.without_all_below(set_from("{'f:a':{}}"))), ElementsAre(".d"));
  EXPECT_THAT(paths(set.without_all_below(set_from("{'f:a':{'f:b':{}}}"))),
              ElementsAre(".a", ".d"));
  EXPECT_THAT(paths(set.common(set_from("{'f:a':{'f:b':{'.':{},'f:c':{}}},'f:x':{}}"))),
              ElementsAre(".a.b.c"));
}

TEST(FieldSet, shares_what_does_not_change) {
  const FieldSet set = set_from("{'f:a':{'f:b':{}},'f:c':{}}");
  EXPECT_TRUE(set.without(set_from("{'f:x':{},'f:a':{'f:y':{}}}")).same(set));
  EXPECT_TRUE(set.united(set_from("{'f:c':{}}")).same(set));
  EXPECT_TRUE(set.united(FieldSet()).same(set));
  EXPECT_TRUE(FieldSet().united(set).same(set));
}

FieldSet random_set(std::mt19937& random, int size) {
  FieldSet set;
  for (int i = 0; i < size; ++i) {
    FieldPath path;
    for (std::size_t depth = 1 + random() % 3; depth > 0; --depth) {
      const auto letter = static_cast<long long>(random() % 4);
      switch (random() % 3) {
        case 0:
          path.push_back(PathElement::field(std::string(1, static_cast<char>('a' + letter))));
          break;
        case 1:
          path.push_back(PathElement::key(Value::object({{"name", letter}})));
          break;
        default:
          path.push_back(PathElement::value(Value(letter)));
      }
    }
    set.insert(path);
  }
  return set;
}

TEST(FieldSet, obeys_the_algebra_of_sets) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const FieldSet a = random_set(random, static_cast<int>(random() % 12));
    const FieldSet b = random_set(random, static_cast<int>(random() % 12));
    const FieldSet c = random_set(random, static_cast<int>(random() % 12));
    EXPECT_EQ(a.united(b), b.united(a));
    EXPECT_EQ(a.common(b), b.common(a));
    EXPECT_EQ(a.united(b).united(c), a.united(b.united(c)));
    EXPECT_EQ(a.united(b).common(c), a.common(c).united(b.common(c)));
    EXPECT_EQ(a.without(b).united(a.common(b)), a);
    EXPECT_EQ(a.without(b).without(c), a.without(b.united(c)));
    EXPECT_TRUE(a.without(a).empty());
    EXPECT_EQ(a.united(b).size() + a.common(b).size(), a.size() + b.size());
    EXPECT_EQ(a.without(b).common(b), FieldSet());
    const auto again = FieldSet::from_json(a.to_json());
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, a);
    a.for_each([&](const FieldPath& path) {
      EXPECT_TRUE(a.has(path));
      EXPECT_EQ(a.without(b).has(path), !b.has(path));
    });
  }
}

}  // namespace
}  // namespace dibs::api
