#include "json/patch.h"

#include <gmock/gmock.h>

#include "json/parse.h"

namespace dibs::json {
namespace {

const std::string kRefused = "the server rejected our request due to an error in our request";

std::string apply(const char* document, std::string_view patch) {
  auto result = apply_json_patch(*parse(document), *parse(patch));
  return result.ok() ? write(*result) : result.error().message();
}

TEST(JsonPatch, applies_or_refuses) {
  const char* document = R"({"data":{"k":"v"},"list":["a","b"],"o":{"x/y":1,"t~u":2},"null":null})";
  struct Case {
    const char* operations;
    std::string result;  // what becomes of `document`, or the message
  };
  const std::string rest = R"("list":["a","b"],"o":{"x/y":1,"t~u":2},"null":null})";
  const std::string unchanged = R"({"data":{"k":"v"},)" + rest;
  auto with_data = [&](const std::string& data) { return R"({"data":)" + data + "," + rest; };
  auto with_list = [&](const std::string& list) {
    return R"({"data":{"k":"v"},"list":)" + list + R"(,"o":{"x/y":1,"t~u":2},"null":null})";
  };
  const Case cases[] = {
      {"[]", unchanged},
      {"null", unchanged},
      {R"([{"op":"add","path":"/data/n","value":"1"}])", with_data(R"({"k":"v","n":"1"})")},
      {R"([{"op":"add","path":"/data/k","value":"2"}])", with_data(R"({"k":"2"})")},
      {R"([{"op":"replace","path":"/data/k","value":"3"}])", with_data(R"({"k":"3"})")},
      {R"([{"op":"replace","path":"/data/new","value":"3"}])", with_data(R"({"k":"v","new":"3"})")},
      {R"([{"op":"remove","path":"/data/k"}])", with_data("{}")},
      {R"([{"op":"remove","path":"/data/none"}])", kRefused},
      {R"([{"op":"remove","path":""}])", kRefused},
      {R"([{"op":"remove","path":"/none/k"}])", kRefused},
      {R"([{"op":"add","path":"/none/k","value":1}])", kRefused},
      {R"([{"op":"add","path":"/null/k","value":1}])", kRefused},
      {R"([{"op":"add","path":"/data/k/x","value":1}])", kRefused},
      {R"([{"op":"add","path":"/data/k"}])", with_data(R"({"k":null})")},
      {R"([{"op":"add","value":1}])", kRefused},
      {R"([{"op":"add","path":"","value":{}}])", kRefused},
      {R"([{"op":"add","path":"data/n","value":1}])",
       unchanged.substr(0, unchanged.size() - 1) + R"(,"n":1})"},
      {R"([{"op":"replace","path":"","value":{"a":1}}])", R"({"a":1})"},
      {R"([{"op":"replace","path":"","value":1}])", kRefused},
      {R"([{"op":"add","path":"/list/1","value":"x"}])", with_list(R"(["a","x","b"])")},
      {R"([{"op":"add","path":"/list/2","value":"x"}])", with_list(R"(["a","b","x"])")},
      {R"([{"op":"add","path":"/list/-","value":"x"}])", with_list(R"(["a","b","x"])")},
      {R"([{"op":"add","path":"/list/-1","value":"x"}])", with_list(R"(["a","b","x"])")},
      {R"([{"op":"add","path":"/list/3","value":"x"}])", kRefused},
      {R"([{"op":"add","path":"/list/x","value":"x"}])", kRefused},
      {R"([{"op":"add","path":"/list/-4","value":"x"}])", kRefused},
      {R"([{"op":"replace","path":"/list/0","value":"x"}])", with_list(R"(["x","b"])")},
      {R"([{"op":"replace","path":"/list/-1","value":"x"}])", with_list(R"(["a","x"])")},
      {R"([{"op":"replace","path":"/list/2","value":"x"}])", kRefused},
      {R"([{"op":"replace","path":"/list/-","value":"x"}])", kRefused},
      {R"([{"op":"remove","path":"/list/-1"}])", with_list(R"(["a"])")},
      {R"([{"op":"remove","path":"/list/+1"}])", with_list(R"(["a"])")},
      {R"([{"op":"remove","path":"/list/2"}])", kRefused},
      {R"([{"op":"remove","path":"/list/-3"}])", kRefused},
      {R"([{"op":"move","from":"/data/k","path":"/data/m"}])", with_data(R"({"m":"v"})")},
      {R"([{"op":"move","from":"/data/none","path":"/data/m"}])", kRefused},
      {R"([{"op":"move","from":"/data","path":"/data/m"}])", kRefused},
      {R"([{"op":"move","from":"/list/1","path":"/list/0"}])", with_list(R"(["b","a"])")},
      {R"([{"op":"move","path":"/data/m"}])", kRefused},
      {R"([{"op":"copy","from":"/data/k","path":"/data/m"}])", with_data(R"({"k":"v","m":"v"})")},
      {R"([{"op":"copy","from":"/data/none","path":"/data/m"}])",
       with_data(R"({"k":"v","m":null})")},
      {R"([{"op":"copy","from":"/list/5","path":"/data/m"}])", kRefused},
      {R"([{"op":"copy","from":"","path":"/data/m"}])", kRefused},
      {R"([{"op":"copy","from":"/data","path":"/data/m"}])",
       with_data(R"({"k":"v","m":{"k":"v"}})")},
      {R"([{"op":"test","path":"/data/k","value":"v"}])", unchanged},
      {R"([{"op":"test","path":"/data/k","value":"w"}])", kRefused},
      {R"([{"op":"test","path":"/data/k"}])", kRefused},
      {R"([{"op":"test","path":"/data/none","value":"w"}])", kRefused},
      {R"([{"op":"test","path":"/data/none","value":null}])", unchanged},
      {R"([{"op":"test","path":"/data/none"}])", unchanged},
      {R"([{"op":"test","path":"/none/none","value":null}])", kRefused},
      {R"([{"op":"test","path":"/list/7","value":null}])", kRefused},
      {R"([{"op":"test","path":"/data","value":{"k":"v"}}])", unchanged},
      {R"([{"op":"test","path":"","value":{"k":"v"}}])", kRefused},
      {R"([{"op":"test","path":"/o/x~1y","value":1},{"op":"test","path":"/o/t~0u","value":2}])",
       unchanged},
      {R"([{"op":"replace","path":"/data/k","value":"x"},{"op":"test","path":"/data/k","value":"v"}])",
       kRefused},
      {R"([{"op":"frob","path":"/data/k"}])", kRefused},
      {R"([{"path":"/data/k","value":"x"}])", kRefused},
      {R"([null])", kRefused},
      {R"({"op":"add"})",
       "error decoding patch: json: cannot unmarshal object into Go value of type "
       "[]handlers.jsonPatchOp"},
      {R"("x")",
       "error decoding patch: json: cannot unmarshal string into Go value of type "
       "[]handlers.jsonPatchOp"},
      {"[1]",
       "error decoding patch: json: cannot unmarshal number into Go value of type "
       "handlers.jsonPatchOp"},
      {"[[]]",
       "error decoding patch: json: cannot unmarshal array into Go value of type "
       "handlers.jsonPatchOp"},
      {R"([{"op":5,"path":"/a"}])",
       "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of "
       "type string"},
  };
  for (const Case& c : cases) EXPECT_EQ(apply(document, c.operations), c.result) << c.operations;
}

TEST(JsonPatch, leaves_the_document_alone) {
  const Value document = *parse(R"({"a":{"b":[1,2]}})");
  auto patched = apply_json_patch(
      document,
      *parse(R"([{"op":"add","path":"/a/b/0","value":0},{"op":"remove","path":"/a/b"}])"));
  ASSERT_TRUE(patched.ok());
  EXPECT_EQ(write(document), R"({"a":{"b":[1,2]}})");
  EXPECT_EQ(write(*patched), R"({"a":{}})");
}

TEST(JsonPatch, has_codes) {
  const Value document = Value::object();
  auto code_of = [&](const Value& patch) {
    return apply_json_patch(document, patch).error().code();
  };
  EXPECT_EQ(code_of(Value(1)), Code::bad_request);
  EXPECT_EQ(code_of(Value::array({Value::object()})), Code::invalid);
  Value many = Value::array();
  const Value operation = *parse(R"({"op":"test","path":"/x","value":null})");
  for (int i = 0; i < 10000; ++i) many.push(operation);
  EXPECT_TRUE(apply_json_patch(document, many).ok());
  many.push(operation);
  auto refused = apply_json_patch(document, many);
  EXPECT_EQ(refused.error().code(), Code::too_large);
  EXPECT_EQ(refused.error().message(),
            "Request entity too large: The allowed maximum operations in a JSON patch is 10000, "
            "got 10001");
}

TEST(JsonPatch, copies_cannot_grow_without_bound) {
  Value patch = Value::array();
  for (int i = 0; i < 1000; ++i) {
    patch.push(
        Value::object({{"op", "copy"}, {"from", "/a"}, {"path", "/a/" + std::to_string(i)}}));
  }
  auto result = apply_json_patch(*parse(R"({"a":{"x":"y"}})"), patch);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(), kRefused);
}

TEST(JsonPatch, cannot_nest_without_bound) {
  // Each copy doubles the depth.
  Value patch = Value::array();
  std::string end = "/a";
  for (int i = 0; i < 14; ++i) {
    patch.push(Value::object({{"op", "copy"}, {"from", "/a"}, {"path", end + "/a"}}));
    std::string twice = end;
    twice += end;
    end = twice;
  }
  auto result = apply_json_patch(*parse(R"({"a":{}})"), patch);
  EXPECT_FALSE(result.ok());
}

TEST(MergePatch, applies) {
  struct Case {
    const char* document;
    const char* patch;
    const char* result;
  };
  const Case cases[] = {
      {R"({"a":"b"})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"b"})", R"({"b":"c"})", R"({"a":"b","b":"c"})"},
      {R"({"a":"b"})", R"({"a":null})", "{}"},
      {R"({"a":"b","b":"c"})", R"({"a":null})", R"({"b":"c"})"},
      {R"({"a":["b"]})", R"({"a":"c"})", R"({"a":"c"})"},
      {R"({"a":"c"})", R"({"a":["b"]})", R"({"a":["b"]})"},
      {R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})", R"({"a":{"b":"d"}})"},
      {R"({"a":[{"b":"c"}]})", R"({"a":[1]})", R"({"a":[1]})"},
      {R"(["a","b"])", R"(["c","d"])", R"(["c","d"])"},
      {R"({"a":"b"})", R"(["c"])", R"(["c"])"},
      {R"({"a":"foo"})", "null", "null"},
      {R"({"e":null})", R"({"a":1})", R"({"e":null,"a":1})"},
      {"[1,2]", R"({"a":"b","c":null})", R"({"a":"b"})"},
      {"{}", R"({"a":{"bb":{"ccc":null}}})", R"({"a":{"bb":{}}})"},
      {R"({"a":1})", R"({"a":{"l":[{"x":null,"y":[null]}]}})", R"({"a":{"l":[{"y":[null]}]}})"},
      {R"({"a":{}})", R"({"a":{}})", R"({"a":{}})"},
      {R"({"a":{"b":1}})", R"({"a":{"b":{"c":2}}})", R"({"a":{"b":{"c":2}}})"},
  };
  for (const Case& c : cases) {
    const Value document = *parse(c.document);
    EXPECT_EQ(write(apply_merge_patch(document, *parse(c.patch))), c.result)
        << c.document << c.patch;
    EXPECT_EQ(write(document), c.document);
  }
}

TEST(MergePatch, removes_many_members_fast) {
  Value document, patch;
  for (int i = 0; i < 100000; ++i) {
    document.set("k" + std::to_string(i), i);
    if (i % 2 == 0) patch.set("k" + std::to_string(i), nullptr);
  }
  const Value result = apply_merge_patch(document, patch);
  EXPECT_EQ(result.size(), 50000u);
  EXPECT_EQ(result["k99999"].as_int(), 99999);
  EXPECT_FALSE(result.contains("k0"));
}

TEST(MergePatch, deep_documents_need_no_stack) {
  Value document = Value::object(), patch = Value::object({{"x", nullptr}});
  for (int i = 0; i < 200000; ++i) {
    Value outer = Value::object();
    outer.set("a", std::move(document));
    document = std::move(outer);
    Value around = Value::object();
    around.set("a", std::move(patch));
    patch = std::move(around);
  }
  const Value result = apply_merge_patch(document, patch);
  EXPECT_EQ(result, document);
  EXPECT_TRUE(deeper_than(result, 10000));
}

}  // namespace
}  // namespace dibs::json
