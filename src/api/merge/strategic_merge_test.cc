#include "api/merge/strategic_merge.h"

#include <gtest/gtest.h>

#include <random>

#include "api/merge/test_support.h"
#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using json::Value;
using test::from_text;

class StrategicMerge : public ::testing::Test {
 protected:
  std::string merged(std::string_view original, std::string_view patch) {
    auto result = strategic_merge(from_text(original), from_text(patch), schemas_.thing());
    if (!result.ok()) return result.error().message();
    std::string text = json::write(*result);
    for (char& c : text) {
      if (c == '"') c = '\'';
    }
    return text;
  }
  Code code(std::string_view original, std::string_view patch) {
    auto result = strategic_merge(from_text(original), from_text(patch), schemas_.thing());
    EXPECT_FALSE(result.ok());
    return result.ok() ? Code::internal : result.error().code();
  }
  test::SchemaBuilder schemas_;
};

TEST_F(StrategicMerge, merges_maps_and_removes_by_null) {
  EXPECT_EQ(merged("{'spec':{'image':'a','replicas':1}}",
                   "{'spec':{'image':'b','replicas':null,'args':['x']}}"),
            "{'spec':{'image':'b','args':['x']}}");
  EXPECT_EQ(merged("{'spec':{'args':['a','b']}}", "{'spec':{'args':['c']}}"),
            "{'spec':{'args':['c']}}");
  EXPECT_EQ(merged("{'spec':{}}", "{'spec':{'labels':{'a':'b','c':null}}}"),
            "{'spec':{'labels':{'a':'b'}}}");
  EXPECT_EQ(merged("{'spec':{}}", "null"), "{'spec':{}}");
}

TEST_F(StrategicMerge, puts_new_items_first_and_merges_the_others_in_place) {
  const char* two = "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b','image':'1'}]}}";
  EXPECT_EQ(merged(two, "{'spec':{'containers':[{'name':'c','image':'1'}]}}"),
            "{'spec':{'containers':[{'name':'c','image':'1'},{'name':'a','image':'1'},{'name':'b',"
            "'image':'1'}]}}");
  EXPECT_EQ(merged(two, "{'spec':{'containers':[{'name':'b','image':'2'}]}}"),
            "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'}]}}");
  EXPECT_EQ(merged(two, "{'spec':{'containers':[{'name':'b','image':null},{'name':'c'}]}}"),
            "{'spec':{'containers':[{'name':'a','image':'1'},{'name':'b'},{'name':'c'}]}}");
}

TEST_F(StrategicMerge, unites_lists_of_scalars) {
  EXPECT_EQ(merged("{'spec':{'set':['a','b']}}", "{'spec':{'set':['c']}}"),
            "{'spec':{'set':['c','a','b']}}");
  EXPECT_EQ(merged("{'spec':{'set':['c','b']}}",
                   "{'spec':{'$deleteFromPrimitiveList/set':['zz'],'set':['b','d']}}"),
            "{'spec':{'set':['c','b','d']}}");
  EXPECT_EQ(merged("{'spec':{'set':['c','b']}}", "{'spec':{'$deleteFromPrimitiveList/set':['c']}}"),
            "{'spec':{'set':['b']}}");
}

TEST_F(StrategicMerge, follows_the_order_it_is_given) {
  const char* three = "{'spec':{'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]}}";
  EXPECT_EQ(merged(three,
                   "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'a'}],"
                   "'containers':[{'name':'c','image':'2'}]}}"),
            "{'spec':{'containers':[{'name':'b'},{'name':'c','image':'2'},{'name':'a'}]}}");
  EXPECT_EQ(merged("{'spec':{'set':['d','c','b']}}", "{'spec':{'$setElementOrder/set':['b']}}"),
            "{'spec':{'set':['d','c','b']}}");
  EXPECT_EQ(merged("{'spec':{'set':['c','b']}}",
                   "{'spec':{'$setElementOrder/set':['d','b','c'],'set':['d']}}"),
            "{'spec':{'set':['d','b','c']}}");
  EXPECT_EQ(merged("{'spec':{}}", "{'spec':{'$setElementOrder/set':['a'],'set':['a']}}"),
            "{'spec':{'set':['a']}}");
  EXPECT_EQ(merged("{'spec':{}}", "{'spec':{'$setElementOrder/set':['a']}}"), "{'spec':{}}");
}

TEST_F(StrategicMerge, obeys_directives) {
  const char* two =
      "{'spec':{'containers':[{'name':'a'},{'name':'b'}],'labels':{'x':'1','y':'2'}}}";
  EXPECT_EQ(merged(two, "{'spec':{'containers':[{'name':'a','$patch':'delete'}],'labels':null}}"),
            "{'spec':{'containers':[{'name':'b'}]}}");
  EXPECT_EQ(merged(two,
                   "{'spec':{'containers':[{'name':'z'},{'$patch':'replace'}],"
                   "'labels':{'$patch':'delete'}}}"),
            "{'spec':{'containers':[{'name':'z'}],'labels':{}}}");
  EXPECT_EQ(merged(two, "{'spec':{'containers':null,'labels':{'$patch':'replace','z':'3'}}}"),
            "{'spec':{'labels':{'z':'3'}}}");
  EXPECT_EQ(merged(two, "{'spec':{'containers':null,'labels':{'$retainKeys':['x','n'],'n':'3'}}}"),
            "{'spec':{'labels':{'x':'1','n':'3'}}}");
  EXPECT_EQ(merged("{'spec':{}}", "{'spec':{'labels':{'$patch':'frob'}}}"), "{'spec':{}}");
  EXPECT_EQ(merged("{'a':1}", "{'$patch':'replace','b':2}"), "{'b':2}");
  EXPECT_EQ(merged("{'a':1}", "{'$patch':'delete'}"), "{}");
}

TEST_F(StrategicMerge, tells_what_cannot_be_merged) {
  const char* one =
      "{'spec':{'containers':[{'name':'a','image':'app:1'}],'labels':{'x':'1'},"
      "'set':['a']}}";
  EXPECT_EQ(merged(one, "{'spec':{'containers':[{'image':'x'}]}}"),
            "map: map[image:x] does not contain declared merge key: name");
  EXPECT_EQ(merged(one, "{'spec':{'containers':['x']}}"),
            "list element types are not identical: [[map[image:app:1 name:a]] [x]]");
  EXPECT_EQ(merged(one, "{'spec':{'containers':[{'name':'c','$patch':'bogus'}]}}"),
            "unknown patch type: bogus in map: map[$patch:bogus name:c]");
  EXPECT_EQ(merged(one, "{'spec':{'containers':[{'name':'c','$patch':'merge'}]}}"),
            "merging lists cannot yet be specified in the patch");
  EXPECT_EQ(merged(one, "{'spec':{'labels':{'$patch':3}}}"),
            "unknown patch type: %!s(int64=3) in map: map[$patch:3]");
  EXPECT_EQ(merged(one, "{'spec':{'$setElementOrder/containers':['q']}}"),
            "value for key 0 is not a map");
  EXPECT_EQ(merged(one, "{'spec':{'$setElementOrder/set':['q'],'set':['p']}}"),
            "The order in patch list:\n[p]\n doesn't match $setElementOrder list:\n[q]\n");
  EXPECT_EQ(code(one, "{'spec':{'containers':[{'image':'x'}]}}"), Code::plain);
  EXPECT_EQ(merged(one, "{'spec':{'labels':{'$retainKeys':['x'],'y':'1'}}}"),
            "invalid patch format of retainKeys");
  EXPECT_EQ(code(one, "{'spec':{'labels':{'$retainKeys':'x'}}}"), Code::bad_request);
  EXPECT_EQ(merged(one, "[]"),
            "json: cannot unmarshal array into Go value of type "
            "map[string]interface {}");
  EXPECT_EQ(code(one, "5"), Code::bad_request);
}

// The patch that a client would make of two objects: what differs, by merge key, with the order of
// what is new.
Value difference(const Value& from, const Value& to) {
  Value patch = Value::object();
  for (const auto& [key, value] : to.members()) {
    const Value* old = from.find(key);
    if (old != nullptr && *old == value) continue;
    if (key != "containers") {
      patch.set(key, value);
      continue;
    }
    Value items = Value::array();
    Value order = Value::array();
    const auto named = [](const Value& list, std::string_view name) -> const Value* {
      for (const Value& item : list.items()) {
        if (item["name"].as_string() == name) return &item;
      }
      return nullptr;
    };
    for (const Value& item : value.items()) {
      order.push(Value::object({{"name", item["name"]}}));
      const Value* before = old == nullptr ? nullptr : named(*old, item["name"].as_string());
      if (before == nullptr || !(*before == item)) items.push(item);
    }
    if (old != nullptr) {
      for (const Value& item : old->items()) {
        if (named(value, item["name"].as_string()) == nullptr) {
          items.push(Value::object({{"name", item["name"]}, {"$patch", "delete"}}));
        }
      }
    }
    patch.set(key, items);
    patch.set(cat("$setElementOrder/", key), order);
  }
  for (const auto& [key, value] : from.members()) {
    if (!to.contains(key)) patch.set(key, Value());
  }
  return patch;
}

TEST_F(StrategicMerge, of_a_difference_gives_the_other_object) {
  std::mt19937 random(3);
  const auto random_spec = [&] {
    Value spec = Value::object();
    if (random() % 2) spec.set("image", std::string(1, static_cast<char>('a' + random() % 3)));
    if (random() % 2) spec.set("replicas", static_cast<int>(random() % 3));
    std::vector<std::string> names = {"a", "b", "c", "d", "e"};
    std::shuffle(names.begin(), names.end(), random);
    names.resize(1 + random() % 4);
    Value containers = Value::array();
    for (const auto& name : names) {
      containers.push(
          Value::object({{"name", name}, {"image", static_cast<int>(random() % 2) ? "1" : "2"}}));
    }
    spec.set("containers", containers);
    return spec;
  };
  for (int round = 0; round < 300; ++round) {
    const Value from = Value::object({{"spec", random_spec()}});
    const Value to = Value::object({{"spec", random_spec()}});
    const Value patch = Value::object({{"spec", difference(from["spec"], to["spec"])}});

    const auto result = strategic_merge(from, patch, schemas_.thing());

    ASSERT_TRUE(result.ok()) << json::write(patch) << result.error().message();
    EXPECT_EQ(json::write(*result), json::write(*result));
    EXPECT_TRUE(*result == to) << json::write(from) << "\n"
                               << json::write(patch) << "\n"
                               << json::write(*result) << "\n"
                               << json::write(to);
  }
}

}  // namespace
}  // namespace dibs::api
