#include "server/stored.h"

#include <gtest/gtest.h>

#include "server/test_support.h"
#include "store/commons.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::to_text;

std::string stored_form(std::string_view text) {
  std::string out = encode_stored(from_text(text));
  for (char& c : out) {
    if (c == '"') c = '\'';
  }
  return out;
}

TEST(Stored, begins_with_kind_version_and_metadata) {
  EXPECT_EQ(
      stored_form("{'spec':{'a':1},'metadata':{'labels':{'x':'y'},'name':'n'},'apiVersion':'v1','"
                  "kind':'K'}"),
      "{'kind':'K','apiVersion':'v1','metadata':{'name':'n','labels':{'x':'y'}},'spec':{'a':1}}");
}

TEST(Stored, leaves_the_version_to_the_store) {
  EXPECT_EQ(
      stored_form(
          "{'kind':'K','apiVersion':'v1','metadata':{'name':'n','resourceVersion':'7','uid':'u'}}"),
      "{'kind':'K','apiVersion':'v1','metadata':{'name':'n','uid':'u'}}");
}

TEST(Stored, keeps_metadata_it_does_not_know) {
  EXPECT_EQ(stored_form("{'kind':'K','apiVersion':'v1','metadata':{'odd':1,'name':'n'}}"),
            "{'kind':'K','apiVersion':'v1','metadata':{'name':'n','odd':1}}");
}

TEST(Stored, is_not_parsed_where_the_writer_left_the_object) {
  Value object = from_text("{'kind':'K','apiVersion':'v1','metadata':{'name':'n'},'a':1}");
  store::Op op = stored_op("/registry/k/n", object, 4);
  EXPECT_EQ(*op.value, encode_stored(object));
  EXPECT_EQ(op.expected, 4);
  store::Commons commons;
  const store::Record record(commons, op.key, *op.value, 3, 9);
  record.attach(attachment_for(from_text("{'metadata':{},'a':2}")));

  auto known = decode_stored(record);
  ASSERT_TRUE(known.ok());
  EXPECT_EQ((*known)["a"].as_int(), 2);
  EXPECT_EQ((*known)["metadata"]["resourceVersion"].as_string(), "9");

  record.attach(nullptr);
  EXPECT_EQ((*decode_stored(record))["a"].as_int(), 1);
}

TEST(Stored, is_one_tree_for_all_who_keep_it) {
  json::Pool trees;
  Value object = from_text(
      "{'kind':'K','apiVersion':'v1','metadata':{'name':'n','managedFields':[{'manager':'m'}]},"
      "'spec':{'a':[1,2,3]}}");
  store::Commons commons;
  const store::Record record(commons, "/registry/k/n", encode_stored(object), 3, 9);
  const store::Record other(commons, "/registry/k/o", encode_stored(object), 3, 10);
  for (const store::Record* one : {&record, &other}) {
    // Where nobody has left anything, and where the writer has.
    for (int i = 0; i < 2; ++i) {
      Value whole = object;
      whole.mut("metadata").set("resourceVersion", std::to_string(one->modified));
      EXPECT_EQ(*decode_stored(*one), whole);
      Value kept = whole;
      kept.mut("metadata").erase("managedFields");
      EXPECT_EQ(*decode_kept(*one, trees), kept);
      EXPECT_EQ(*decode_stored(*one), whole);
      EXPECT_TRUE(decode_kept(*one, trees)->same_node(*decode_kept(*one, trees)));
      EXPECT_TRUE(decode_stored(*one)->same_node(*decode_stored(*one)));
      EXPECT_TRUE(
          (*decode_kept(record, trees))["spec"].same_node((*decode_kept(other, trees))["spec"]));
      EXPECT_TRUE((*decode_stored(*one))["spec"].same_node((*decode_kept(other, trees))["spec"]));
      one->attach(attachment_for(object));
    }
  }
  EXPECT_EQ(object["metadata"].size(), 2u);
}

TEST(Stored, comes_back_with_the_version_of_its_record) {
  Value object =
      from_text("{'kind':'K','apiVersion':'v1','metadata':{'name':'n'},'data':{'a':'b'}}");
  store::Commons commons;
  const store::Record record(commons, "/registry/k/n", encode_stored(object), 3, 9);

  auto back = decode_stored(record);

  ASSERT_TRUE(back.ok());
  EXPECT_EQ((*back)["metadata"]["resourceVersion"].as_string(), "9");
  EXPECT_EQ((*back)["data"], object["data"]);
}

TEST(Stored, says_which_key_holds_rubbish) {
  store::Commons commons;
  for (const char* rubbish : {"", "{", "[]", "3"}) {
    auto back = decode_stored(store::Record(commons, "/registry/k/n", rubbish, 1, 1));
    ASSERT_FALSE(back.ok()) << rubbish;
    EXPECT_EQ(back.error().code(), Code::internal);
    EXPECT_NE(back.error().message().find("/registry/k/n"), std::string::npos);
  }
}

struct WireCase {
  const char* object;
  const char* version;
  const char* whole;
  const char* item;
};

class Wire : public testing::TestWithParam<WireCase> {};

TEST_P(Wire, is_the_stored_form_with_the_version) {
  const WireCase& one = GetParam();
  std::string stored = encode_stored(from_text(one.object));
  std::string whole;
  std::string item;

  EXPECT_TRUE(append_wire(whole, stored, one.version));
  EXPECT_TRUE(append_wire_item(item, stored, one.version));

  EXPECT_EQ(to_text(from_text(whole)), one.whole);
  EXPECT_EQ(to_text(from_text(item)), one.item);
}

INSTANTIATE_TEST_SUITE_P(
    All, Wire,
    testing::Values(
        WireCase{
            "{'kind':'K','apiVersion':'v1','metadata':{'name':'n'},'a':1}", "5",
            "{'kind':'K','apiVersion':'v1','metadata':{'resourceVersion':'5','name':'n'},'a':1}",
            "{'metadata':{'resourceVersion':'5','name':'n'},'a':1}"},
        WireCase{"{'kind':'K','apiVersion':'v1','metadata':{}}", "5",
                 "{'kind':'K','apiVersion':'v1','metadata':{'resourceVersion':'5'}}",
                 "{'metadata':{'resourceVersion':'5'}}"},
        WireCase{"{'kind':'K','apiVersion':'v1','metadata':{'name':'n'}}", "",
                 "{'kind':'K','apiVersion':'v1','metadata':{'name':'n'}}",
                 "{'metadata':{'name':'n'}}"}));

TEST(Wire, is_not_misled_by_values_that_look_like_metadata) {
  Value object = from_text("{'kind':'K','apiVersion':'v1','metadata':{'name':'n'}}");
  object.set("data", ",\"metadata\":{");
  object.mut("metadata").mut("annotations").set("a", ",\"metadata\":{");
  std::string out;

  EXPECT_TRUE(append_wire(out, encode_stored(object), "5"));

  object.mut("metadata").set("resourceVersion", "5");
  EXPECT_EQ(from_text(out), object);
}

TEST(Stored, bytes_that_are_none_of_ours_do_not_go_on_the_wire) {
  for (const char* bytes : {"", "{", "{}", "null", "\xff\xfe", R"({"kind":"K","apiVersion":"v1"})",
                            R"({"kind":"K","apiVersion":"v1","metadata":{)", R"(x,"metadata":{}})",
                            R"({"apiVersion":"v1","kind":"K","metadata":{}})"}) {
    std::string out = "before";
    EXPECT_FALSE(append_wire(out, bytes, "5")) << bytes;
    EXPECT_FALSE(append_wire_item(out, bytes, "5")) << bytes;
    EXPECT_EQ(out, "before");
  }
}

}  // namespace
}  // namespace dibs::server
