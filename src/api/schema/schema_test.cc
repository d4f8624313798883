#include "api/schema/schema.h"

#include <gtest/gtest.h>

#include "api/schema/builtin.h"

namespace dibs::api {
namespace {

TEST(Schema, finds_every_field_of_every_type_by_its_name) {
  std::size_t looked_at = 0;
  for (const GroupInfo& group : builtin_catalog().groups) {
    for (const VersionInfo& version : group.versions) {
      for (const ResourceInfo& resource : version.resources) {
        if (resource.schema == nullptr) continue;
        for (const Field& field : resource.schema->fields) {
          ASSERT_EQ(resource.schema->field(field.name), &field) << field.name;
          if (field.schema == nullptr) continue;
          for (const Field& below : field.schema->fields) {
            ASSERT_EQ(field.schema->field(below.name), &below) << below.name;
            EXPECT_EQ(field.schema->field(below.name + "x"), nullptr);
            ++looked_at;
          }
        }
        for (const char* name : {"", "x", "statu", "Spec"}) {
          EXPECT_EQ(resource.schema->field(name), nullptr);
        }
      }
    }
  }
  EXPECT_GT(looked_at, 100u);
}

TEST(Schema, finds_fields_with_no_index_or_an_old_one) {
  Schema schema;
  for (const char* name : {"b", "d"}) {
    Field field;
    field.name = name;
    schema.fields.push_back(field);
  }
  EXPECT_EQ(schema.field("d"), &schema.fields[1]);

  schema.index_fields();
  EXPECT_EQ(schema.field("b"), &schema.fields[0]);

  Field first;
  first.name = "a";
  schema.fields.insert(schema.fields.begin(), first);
  for (const Field& field : schema.fields) EXPECT_EQ(schema.field(field.name), &field);
  schema.fields.resize(1);
  EXPECT_EQ(schema.field("d"), nullptr);
}

}  // namespace
}  // namespace dibs::api
