#include "json/value.h"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "json/parse.h"

namespace dibs::json {
namespace {

TEST(Value, holds_every_kind) {
  EXPECT_TRUE(Value().is_null());
  EXPECT_TRUE(Value(nullptr).is_null());
  EXPECT_TRUE(Value(true).as_bool());
  EXPECT_EQ(Value(-7).as_int(), -7);
  EXPECT_EQ(Value(4000000000u).as_int(), 4000000000);
  EXPECT_EQ(Value(std::size_t{9}).as_int(), 9);
  EXPECT_TRUE(Value(std::size_t{9}).is_integer());
  EXPECT_EQ(Value(~0ull).kind(), Kind::number);
  EXPECT_EQ(Value(1.5).as_double(), 1.5);
  EXPECT_EQ(Value("x").as_string(), "x");
  EXPECT_TRUE(Value::array().is_array());
  EXPECT_TRUE(Value::object().is_object());
}

TEST(Value, falls_back_on_another_kind) {
  EXPECT_EQ(Value("x").as_int(3), 3);
  EXPECT_EQ(Value(1).as_string("no"), "no");
  EXPECT_TRUE(Value(0).as_bool(true));
  EXPECT_EQ(Value(2.9).as_int(), 2);
  EXPECT_EQ(Value(1e300).as_int(5), 5);
  EXPECT_EQ(Value(std::nan("")).as_int(5), 5);
  EXPECT_EQ(Value(3).as_double(), 3.0);
  EXPECT_EQ(Value("text").size(), 0u);
  EXPECT_TRUE(Value(1)["a"]["b"][3].is_null());
}

TEST(Value, keeps_strings_of_every_length) {
  for (std::size_t length = 0; length < 40; ++length) {
    const std::string text(length, static_cast<char>('a' + length % 26));
    const Value value(text);
    const Value copy = value;

    EXPECT_EQ(value.as_string(), text);
    EXPECT_EQ(copy, value);
    EXPECT_TRUE(copy.same_node(value));
  }
}

TEST(Value, an_object_keeps_order_and_takes_the_last_of_a_key) {
  const Value value = Value::object({{"z", 1}, {"a", "x"}, {"z", true}});

  std::vector<std::string> keys;
  for (const auto& [key, member] : value.members()) keys.emplace_back(key);
  EXPECT_THAT(keys, testing::ElementsAre("z", "a"));
  EXPECT_TRUE(value["z"].as_bool());
  EXPECT_EQ(value.find("none"), nullptr);
}

TEST(Value, mutators_change_the_kind_first) {
  Value a = "text";
  a.set("k", 1);
  Value b = 3;
  b.push("x");
  Value c = true;
  EXPECT_FALSE(c.erase("k"));
  Value d;
  d.mut("x").mut("y") = 5;
  Value e = "12345678901234567890";
  e.set(e.as_string(), 1);  // the key is a view into the value itself

  EXPECT_EQ(write(a), R"({"k":1})");
  EXPECT_EQ(write(b), R"(["x"])");
  EXPECT_EQ(write(c), "{}");
  EXPECT_EQ(write(d), R"({"x":{"y":5}})");
  EXPECT_EQ(write(e), R"({"12345678901234567890":1})");
}

TEST(Value, arrays_insert_and_erase) {
  Value list = Value::array({1, 3});
  list.insert(1, 2);
  list.insert(3, 4);
  list.insert(0, "a long enough string to be on the heap");
  list.erase_at(0);
  list.mut(std::size_t{3}) = "end";
  EXPECT_EQ(write(list), R"([1,2,3,"end"])");
  list.push(list);  // holds its own past
  EXPECT_EQ(write(list), R"([1,2,3,"end",[1,2,3,"end"]])");
}

TEST(Value, a_change_does_not_show_in_copies) {
  const Value original =
      Value::object({{"meta", Value::object({{"labels", Value::object({{"a", "1"}})}})},
                     {"list", Value::array({1, 2})}});
  Value copy = original;
  EXPECT_TRUE(copy.same_node(original));

  copy.mut("meta").mut("labels").set("b", "2");
  copy.mut("list").push(3);

  EXPECT_EQ(write(original), R"({"meta":{"labels":{"a":"1"}},"list":[1,2]})");
  EXPECT_EQ(write(copy), R"({"meta":{"labels":{"a":"1","b":"2"}},"list":[1,2,3]})");
}

TEST(Value, a_change_leaves_siblings_shared) {
  Value value = Value::object({{"a", Value::object({{"x", 1}})}, {"b", Value::object({{"y", 1}})}});
  const Value before = value;
  value.mut("a").set("x", 2);
  EXPECT_TRUE(value["b"].same_node(before["b"]));
  EXPECT_FALSE(value["a"].same_node(before["a"]));
}

TEST(Value, works_in_place_when_alone) {
  Value value = Value::object({{"a", 1}, {"b", 2}});
  const Value* place = value.find("a");
  value.mut("a") = 5;
  EXPECT_EQ(value.find("a"), place);
}

TEST(Value, equality_looks_inside) {
  struct Case {
    const char* a;
    const char* b;
    bool equal;
  };
  const Case cases[] = {
      {"null", "null", true},
      {"null", "false", false},
      {"1", "1.0", true},
      {"1", "1.5", false},
      {"9007199254740993", "9007199254740992", false},
      {"9007199254740993", "9007199254740992.0", true},
      {"1e2", "100", true},
      {"\"a\"", "\"a\"", true},
      {"\"a long string of many letters\"", "\"a long string of many letters\"", true},
      {"\"a\"", "\"b\"", false},
      {"[]", "{}", false},
      {"[1,[2]]", "[1,[2]]", true},
      {"[1,2]", "[2,1]", false},
      {R"({"a":1,"b":{"c":[]}})", R"({"b":{"c":[]},"a":1})", true},
      {R"({"a":1})", R"({"a":1,"b":null})", false},
      {R"({"a":null})", R"({"b":null})", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(*parse(c.a) == *parse(c.b), c.equal) << c.a << " and " << c.b;
    EXPECT_EQ(*parse(c.b) == *parse(c.a), c.equal) << c.b << " and " << c.a;
  }
}

TEST(Value, equality_of_shared_trees_is_not_exponential) {
  Value a = 1;
  Value b = 1;
  for (int i = 0; i < 200; ++i) {
    a = Value::array({a, a});
    b = Value::array({b, b});
  }
  EXPECT_TRUE(a == b);
}

TEST(Value, is_not_bound_by_the_stack) {
  Value a;
  Value b;
  for (int i = 0; i < 1000000; ++i) {
    Value outer = Value::array();
    outer.push(std::move(a));
    a = std::move(outer);
    Value object = Value::object();
    object.set("k", std::move(b));
    b = std::move(object);
  }
  const Value copy = a;
  EXPECT_TRUE(copy == a);
  EXPECT_GT(write(b).size(), 5000000u);
}

TEST(Value, large_objects_are_indexed) {
  Value object;
  for (int i = 0; i < 200000; ++i) object.set("key-number-" + std::to_string(i), i);
  for (int i = 0; i < 200000; i += 7) {
    ASSERT_EQ(object["key-number-" + std::to_string(i)].as_int(), i);
  }
  const Value before = object;
  object.set("key-number-5", "changed");
  EXPECT_EQ(before["key-number-5"].as_int(), 5);
  EXPECT_EQ(object["key-number-5"].as_string(), "changed");
  EXPECT_EQ(object.size(), 200000u);
  EXPECT_FALSE(object == before);
}

// Against a plain list of pairs, around the size where the index begins.
TEST(Value, erase_and_set_agree_with_a_model) {
  unsigned seed = 1;
  auto random = [&](unsigned below) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
  };
  for (int round = 0; round < 30; ++round) {
    Value object = Value::object();
    std::vector<std::pair<std::string, int>> model;
    std::vector<Value> history;
    for (int step = 0; step < 300; ++step) {
      const std::string key =
          (random(2) == 0 ? "k" : "a-key-longer-than-fits-") + std::to_string(random(60));
      auto at = std::find_if(model.begin(), model.end(), [&](auto& m) { return m.first == key; });
      if (random(3) == 0) {
        EXPECT_EQ(object.erase(key), at != model.end());
        if (at != model.end()) model.erase(at);
      } else {
        object.set(key, step);
        if (at != model.end())
          at->second = step;
        else
          model.emplace_back(key, step);
      }
      if (random(10) == 0) history.push_back(object);
      ASSERT_EQ(object.size(), model.size());
      for (const auto& [k, v] : model) ASSERT_EQ(object[k].as_int(-1), v);
      std::size_t i = 0;
      for (const auto& [k, v] : object.members()) ASSERT_EQ(k, model[i++].first);
    }
  }
}

TEST(Value, copies_in_many_threads) {
  Value shared = Value::object(
      {{"list", Value::array({1, 2, 3})}, {"text", "a string that lies in a node of its own"}});
  std::vector<std::thread> threads;
  std::vector<Value> results(4);
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Value mine = shared;
        mine.mut("list").push(static_cast<int>(t));
        mine.set("t", mine["text"]);
        results[t] = mine;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) {
    EXPECT_EQ(results[t]["list"][3].as_int(), static_cast<int>(t));
  }
  EXPECT_EQ(shared["list"].size(), 3u);
}

}  // namespace
}  // namespace dibs::json
