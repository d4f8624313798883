#include "api/schema/field_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dibs::api {
namespace {

using json::Value;

TEST(Path, spells_fields_indices_and_keys) {
  Path spec("spec");
  Path containers = spec.child("containers");
  Path first = containers.index(0);
  Path name = first.child("name");
  Path metadata("metadata");
  Path labels = metadata.child("labels");

  EXPECT_EQ(name.str(), "spec.containers[0].name");
  EXPECT_EQ(labels.key("a/b").str(), "metadata.labels[a/b]");
  EXPECT_EQ(Path().str(), "<nil>");
  EXPECT_EQ(Path("").str(), "[]");
  Path root;
  EXPECT_EQ(root.child("spec").str(), "spec");
  EXPECT_EQ(root.index(2).str(), "[2]");
  EXPECT_EQ(labels.key("").str(), "metadata.labels[]");
}

TEST(FieldErrors, uses_the_words_of_the_api) {
  Path p("f");
  FieldErrors e;
  e.required(p);
  e.required(p, "must be set");
  e.invalid(p, "a\n", "bad");
  e.invalid(p, 3, "bad");
  e.invalid(p, true, "bad");
  e.invalid(p, Value(), "bad");
  e.invalid(p, Value::object({{"a", "<"}}), "bad");
  e.not_supported(p, "x", {"a", "b"});
  e.not_supported(p, Value::array({"None"}), {"All"});
  e.duplicate(p, "x");
  e.forbidden(p, "no");
  e.too_long(p, 63);
  e.too_long(p, 1);
  e.too_many(p, 33, 32);
  e.not_found(p, "v");
  e.type_invalid(p, "string", "must be of type integer");
  e.internal(p, "oops");

  std::vector<std::string> texts;
  for (const auto& error : e.errors()) texts.push_back(error.text);
  EXPECT_THAT(
      texts, testing::ElementsAre(
                 "Required value", "Required value: must be set", "Invalid value: \"a\\n\": bad",
                 "Invalid value: 3: bad", "Invalid value: true: bad", "Invalid value: null: bad",
                 "Invalid value: {\"a\":\"\\u003c\"}: bad",
                 "Unsupported value: \"x\": supported values: \"a\", \"b\"",
                 "Unsupported value: [\"None\"]: supported values: \"All\"",
                 "Duplicate value: \"x\"", "Forbidden: no",
                 "Too long: may not be more than 63 bytes", "Too long: may not be more than 1 byte",
                 "Too many: 33: must have at most 32 items", "Not found: \"v\"",
                 "Invalid value: \"string\": must be of type integer", "Internal error: oops"));
}

TEST(FieldErrors, makes_a_status_with_causes) {
  FieldErrors e;
  e.required(Path("driverName"));
  Error one = e.to_error("ResourceClass", "resource.k8s.io", "a");
  e.required(Path("driverName"));
  Error same = e.to_error("ResourceClass", "resource.k8s.io", "a");
  e.forbidden(Path("spec"), "no");
  Error two = e.to_error("Pod", "", "");

  EXPECT_EQ(one.message(),
            "ResourceClass.resource.k8s.io \"a\" is invalid: driverName: Required value");
  EXPECT_EQ(one.message(), same.message());
  ASSERT_EQ(same.details()->causes.size(), 2u);
  EXPECT_EQ(same.details()->causes[1].reason, "FieldValueRequired");
  EXPECT_EQ(same.details()->causes[1].message, "Required value");
  EXPECT_EQ(same.details()->causes[1].field, "driverName");
  EXPECT_EQ(same.details()->kind, "ResourceClass");
  EXPECT_EQ(two.message(),
            "Pod \"\" is invalid: [driverName: Required value, spec: Forbidden: no]");
  EXPECT_EQ(two.code(), Code::invalid);
}

}  // namespace
}  // namespace dibs::api
