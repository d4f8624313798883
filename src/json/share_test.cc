#include "json/share.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "json/parse.h"
#include "json/random_value.h"

namespace dibs::json {
namespace {

Value pod(const std::string& name) {
  Value made = *parse(R"({"kind":"Pod","apiVersion":"v1","metadata":{"labels":{
    "app.kubernetes.io/name":"web","team":"a"}},
    "spec":{"containers":[{"name":"c","image":"registry.example/image:1.2.3",
      "terminationMessagePath":"/dev/termination-log","resources":{"limits":{"cpu":"1"}}}],
      "tolerations":[{"key":"node.kubernetes.io/not-ready","effect":"NoExecute"}]}})");
  made.mut("metadata").set("name", name);
  return made;
}

struct Share : testing::Test {
  Pool pool;
};

TEST_F(Share, equal_subtrees_become_one) {
  const Value one = pool.share(pod("a"));
  const Value two = pool.share(pod("b"));
  EXPECT_EQ(one, pod("a"));
  EXPECT_EQ(two, pod("b"));
  EXPECT_TRUE(one["spec"].same_node(two["spec"]));
  EXPECT_TRUE(one["metadata"]["labels"].same_node(two["metadata"]["labels"]));
  EXPECT_FALSE(one["metadata"].same_node(two["metadata"]));
  EXPECT_TRUE(pool.share(pod("a")).same_node(one));
}

TEST_F(Share, equal_long_strings_become_one) {
  const std::string text(200, 'x');
  EXPECT_TRUE(pool.share(Value(text)).same_node(pool.share(Value(text))));
  const std::string too_long(2000, 'x');
  EXPECT_FALSE(pool.share(Value(too_long)).same_node(pool.share(Value(too_long))));
}

TEST_F(Share, a_write_changes_nobody_else) {
  const Value one = pool.share(pod("a"));
  Value two = pool.share(pod("a"));
  two.mut("spec").mut("containers").mut(0).set("image", "another");
  two.mut("metadata").mut("labels").erase("team");
  EXPECT_EQ(one, pod("a"));
  EXPECT_EQ(pool.share(pod("a")), pod("a"));
  EXPECT_EQ(two["spec"]["containers"][0]["image"], "another");
}

TEST_F(Share, parts_of_a_unique_value) {
  const std::size_t before = pool.count();
  const Value one = pool.share_parts(pod("one-of-a-kind"));
  const Value two = pool.share_parts(pod("two-of-a-kind"));
  EXPECT_GT(pool.count(), before);
  EXPECT_EQ(one, pod("one-of-a-kind"));
  EXPECT_TRUE(is_shared(one));
  EXPECT_TRUE(one["spec"].same_node(two["spec"]));
  // The root is nobody's but ours: it can be changed in place.
  EXPECT_FALSE(pool.share_parts(pod("one-of-a-kind")).same_node(one));
}

TEST_F(Share, parts_except_one) {
  const Value object = pool.share_parts(pod("a"), "spec");
  EXPECT_FALSE(is_shared(object));
  EXPECT_FALSE(object["spec"].same_node(pool.share(pod("a"))["spec"]));
  EXPECT_TRUE(object["metadata"].same_node(pool.share(pod("a"))["metadata"]));
  EXPECT_EQ(object, pod("a"));
}

TEST_F(Share, a_copy_without_a_member) {
  const Value object = pod("a");
  Value expected = object;
  expected.erase("metadata");
  EXPECT_EQ(pool.share_without(object, "metadata"), expected);
  EXPECT_EQ(pool.share_without(object, "absent"), object);
  EXPECT_EQ(object, pod("a"));
  EXPECT_TRUE(pool.share_without(object, "metadata")["spec"].same_node(pool.share(object["spec"])));
  EXPECT_TRUE(is_shared(pool.share_without(object, "metadata")));
  EXPECT_EQ(pool.share_without(Value::object({{"a", 1}}), "a"), Value::object());
  Value large = Value::object();
  for (int i = 0; i < 200; ++i) large.set("member " + std::to_string(i), pod("a"));
  EXPECT_EQ(pool.share_without(large, "member 7").size(), 199);
  EXPECT_FALSE(pool.share_without(large, "member 7").contains("member 7"));
  EXPECT_TRUE(pool.share_without(large, "member 7").contains("member 199"));
}

TEST_F(Share, parts_of_a_value_that_others_hold) {
  const Value held = pod("a");
  const Value made = pool.share_parts(held);
  EXPECT_EQ(made, held);
  EXPECT_FALSE(made.same_node(held));
  EXPECT_FALSE(is_shared(held));
}

TEST_F(Share, a_change_takes_the_mark_away) {
  Value object = pool.share_parts(pod("a"));
  EXPECT_TRUE(is_shared(object));
  object.mut("spec").set("nodeName", "a-node-with-a-long-name");
  EXPECT_FALSE(is_shared(object));
  Value other = pool.share_parts(pod("b"));
  other.mut("spec").set("nodeName", "a-node-with-a-long-name");
  EXPECT_TRUE(pool.share_parts(object)["spec"].same_node(pool.share_parts(other)["spec"]));
}

TEST_F(Share, every_small_thing) {
  const Value all[] = {Value(),        Value(true),     Value(1),  Value(1.5), Value("short"),
                       Value::array(), Value::object(), Value(""), Value(-0.0)};
  for (const Value& value : all) {
    EXPECT_EQ(pool.share(value), value);
    EXPECT_EQ(pool.share(value).kind(), value.kind());
    EXPECT_EQ(pool.share_parts(value), value);
  }
  Value emptied = Value::array({1});
  emptied.erase_at(0);
  EXPECT_EQ(pool.share(emptied), Value::array());
  EXPECT_EQ(pool.share(Value::object({{"a", emptied}})), Value::object({{"a", Value::array()}}));
}

TEST_F(Share, large_and_deep_things) {
  Value array = Value::array();
  for (int i = 0; i < 1000; ++i) array.push(pod("a"));
  const Value shared = pool.share(array);
  EXPECT_EQ(shared, array);
  EXPECT_TRUE(shared[0].same_node(shared[999]));
  Value object = Value::object();
  for (int i = 0; i < 200; ++i) object.set("member " + std::to_string(i), pod("a"));
  EXPECT_EQ(pool.share(object), object);
  EXPECT_EQ(pool.share_parts(object), object);
  Value deep = 1;
  for (int i = 0; i < 5000; ++i) deep = Value::array({deep});
  EXPECT_EQ(pool.share(deep), deep);
}

TEST_F(Share, random_values_stay_what_they_are) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    RandomValues random(seed);
    const Value value = random.value(5);
    const Value again = RandomValues(seed).value(5);
    const std::string text = write(value);
    Value shared = pool.share(value);
    EXPECT_EQ(shared, again);
    EXPECT_EQ(write(shared), text);
    const Value parts = pool.share_parts(again);
    EXPECT_EQ(write(parts), text);
    if (shared.is_object()) {
      shared.set("an entirely new member", seed);
      for (const auto& [key, part] : value.members()) shared.mut(key) = nullptr;
    }
    EXPECT_EQ(write(value), text);
    EXPECT_EQ(write(pool.share(value)), text);
    EXPECT_EQ(write(parts), text);
  }
}

TEST_F(Share, what_nobody_holds_goes) {
  std::thread([this] {
    pool.sweep();
    const std::size_t before = pool.count();
    for (int i = 0; i < 5000; ++i) {
      pool.share(Value::array({i, "a string that is long enough", Value::array({i, i})}));
    }
    // Not even without being asked do they all stay.
    EXPECT_LT(pool.count(), before + 10000);
  }).join();
  const Value held = pool.share(Value::array({"held", Value::array({"also held"})}));
  pool.sweep();
  const std::size_t after = pool.count();
  EXPECT_TRUE(pool.share(Value::array({"held", Value::array({"also held"})})).same_node(held));
  EXPECT_EQ(pool.count(), after);
}

TEST_F(Share, two_pools_have_nothing_in_common) {
  Value one;
  {
    Pool other;
    one = other.share(pod("a"));
    EXPECT_TRUE(other.share(pod("a")).same_node(one));
    EXPECT_GT(other.count(), 0U);
    EXPECT_EQ(pool.count(), 0U);
    EXPECT_FALSE(pool.share(pod("a")).same_node(one));
    EXPECT_TRUE(other.share(pod("a")).same_node(one));
  }
  EXPECT_EQ(one, pod("a"));
  EXPECT_TRUE(pool.share(one).same_node(one));
}

TEST_F(Share, many_threads) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  const Value common = pod("common");
  std::vector<Value> made(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t, &common, &made] {
      for (int i = 0; i < 300; ++i) {
        Value mine = pool.share(common);
        mine.mut("spec").set("nodeName", i % 7);
        mine = pool.share_parts(mine);
        mine.mut("metadata").set("name", t * 1000 + i);
        EXPECT_EQ(pool.share(mine), mine);
        EXPECT_EQ(pool.share(pod("common")), common);
        if (i % 50 == 0) pool.sweep();
      }
      made[t] = pool.share(common);
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Value& value : made) EXPECT_TRUE(value.same_node(made[0]));
  EXPECT_EQ(common, pod("common"));
}

}  // namespace
}  // namespace dibs::json
