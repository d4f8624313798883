#include "api/kinds/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Value parsed(std::string_view text) { return json::parse(text).value(); }

std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> out;
  for (const FieldError& error : errors.errors()) out.push_back(cat(error.field, ": ", error.text));
  return out;
}

std::vector<std::string> faults_of(std::string_view object, bool builtin = true) {
  FieldErrors errors;
  validate_metadata(parsed(object), true, NameRule::subdomain, errors, builtin);
  return texts(errors);
}

std::vector<std::string> faults_of_update(std::string_view object, std::string_view old) {
  FieldErrors errors;
  validate_metadata_update(parsed(object), parsed(old), errors);
  return texts(errors);
}

TEST(Metadata, wants_a_name) {
  EXPECT_THAT(faults_of(R"({"metadata":{"namespace":"n"}})"),
              ElementsAre("metadata.name: Required value: name or generateName is required"));
}

TEST(Metadata, a_namespace_is_there_or_is_not) {
  FieldErrors errors;
  validate_metadata(parsed(R"({"metadata":{"name":"a","namespace":"n"}})"), false,
                    NameRule::subdomain, errors);
  EXPECT_THAT(texts(errors),
              ElementsAre("metadata.namespace: Forbidden: not allowed on this type"));
  EXPECT_THAT(faults_of(R"({"metadata":{"name":"a"}})"),
              ElementsAre("metadata.namespace: Required value"));
}

TEST(Metadata, custom_resources_take_plain_finalizers) {
  constexpr const char* object =
      R"({"metadata":{"name":"a","namespace":"n","finalizers":["plain"]}})";
  EXPECT_THAT(faults_of(object),
              ElementsAre("metadata.finalizers[0]: Invalid value: \"plain\": name is neither a "
                          "standard finalizer name nor is it fully qualified"));
  EXPECT_THAT(faults_of(object, false), IsEmpty());
}

TEST(Metadata, annotations_have_a_limit_together) {
  Value object = parsed(R"({"metadata":{"name":"a","namespace":"n"}})");
  object.mut("metadata").mut("annotations").set("k", std::string(262144, 'x'));
  FieldErrors errors;
  validate_metadata(object, true, NameRule::subdomain, errors);
  EXPECT_THAT(texts(errors),
              ElementsAre("metadata.annotations: Too long: may not be more than 262144 bytes"));
}

TEST(Metadata, identity_does_not_change) {
  EXPECT_THAT(
      faults_of_update(R"({"metadata":{"name":"a","uid":"2","deletionGracePeriodSeconds":3}})",
                       R"({"metadata":{"name":"a","uid":"1"}})"),
      ElementsAre("metadata.uid: Invalid value: \"2\": field is immutable",
                  "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable"));
}

TEST(Metadata, an_object_being_deleted_gets_no_new_finalizers) {
  constexpr const char* old = R"({"metadata":{"name":"a","deletionTimestamp":"t",
      "finalizers":["e.com/a","e.com/b"]}})";
  EXPECT_THAT(
      faults_of_update(R"({"metadata":{"name":"a","deletionTimestamp":"t",
          "finalizers":["e.com/a","e.com/c"]}})",
                       old),
      ElementsAre("metadata.finalizers: Forbidden: no new finalizers can be added if the object is "
                  "being deleted, found new finalizers []string{\"e.com/c\"}"));
  EXPECT_THAT(faults_of_update(R"({"metadata":{"name":"a","deletionTimestamp":"t"}})", old),
              IsEmpty());
}

TEST(Metadata, keeps_what_a_client_leaves_out) {
  Value object = parsed(R"({"metadata":{"name":"a","creationTimestamp":"other"}})");
  keep_metadata(object, parsed(R"({"metadata":{"name":"a","uid":"u","creationTimestamp":"then",
      "deletionTimestamp":"soon","deletionGracePeriodSeconds":0}})"));
  EXPECT_EQ(object, parsed(R"({"metadata":{"name":"a","uid":"u","creationTimestamp":"then",
      "deletionTimestamp":"soon","deletionGracePeriodSeconds":0}})"));
}

TEST(Metadata, equal_owners_are_named_once) {
  Value object = parsed(R"({"metadata":{"ownerReferences":[{"name":"o","uid":"1"},
      {"name":"o","uid":"1"},{"name":"p","uid":"2"}]}})");
  auto warnings = dedup_owner_references(object);
  EXPECT_EQ(object["metadata"]["ownerReferences"].size(), 2u);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("duplicate UID(s) observed: 1")));
}

TEST(Metadata, field_managers_are_printable) {
  FieldErrors errors;
  validate_field_manager("b\a", Path("fieldManager"), errors);
  validate_field_manager(std::string(129, 'm'), Path("fieldManager"), errors);
  EXPECT_THAT(texts(errors),
              ElementsAre("fieldManager: Invalid value: \"b\\a\": invalid character U+0007 (at "
                          "position 1)",
                          "fieldManager: Too long: may not be more than 128 bytes"));
}

TEST(LabelSelector, is_judged_by_operator) {
  FieldErrors errors;
  validate_label_selector(parsed(R"({"matchLabels":{"a":"-"},"matchExpressions":[
      {"key":"a","operator":"In"},{"key":"a","operator":"Exists","values":["x"]},
      {"key":"b!","operator":"Is"},{"key":"a","operator":"In","values":["_"]}]})"),
                          Path("selector"), errors);
  EXPECT_THAT(
      texts(errors),
      ElementsAre(
          HasSubstr("selector.matchLabels: Invalid value: \"-\": a valid label must be"),
          "selector.matchExpressions[0].values: Required value: must be specified when `operator` "
          "is "
          "'In' or 'NotIn'",
          "selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is "
          "'Exists' or 'DoesNotExist'",
          "selector.matchExpressions[2].operator: Invalid value: \"Is\": not a valid selector "
          "operator",
          HasSubstr("selector.matchExpressions[2].key: Invalid value: \"b!\""),
          HasSubstr("selector.matchExpressions[3].values[0]: Invalid value: \"_\"")));
}

TEST(LabelSelector, matches_labels) {
  Value labels = parsed(R"({"app":"web","tier":"front"})");
  EXPECT_TRUE(label_selector_matches(parsed(R"({"matchLabels":{"app":"web"}})"), labels));
  EXPECT_FALSE(label_selector_matches(parsed(R"({"matchLabels":{"app":"db"}})"), labels));
  EXPECT_TRUE(label_selector_matches(parsed("{}"), labels));
  EXPECT_FALSE(label_selector_matches(Value(), labels));
  EXPECT_TRUE(label_selector_matches(
      parsed(R"({"matchExpressions":[{"key":"app","operator":"In","values":["a","web"]},
          {"key":"x","operator":"NotIn","values":["1"]},{"key":"tier","operator":"Exists"},
          {"key":"x","operator":"DoesNotExist"}]})"),
      labels));
}

}  // namespace
}  // namespace dibs::api
