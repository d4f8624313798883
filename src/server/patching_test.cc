// Patches of all types, through a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::config_map;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::Reply;
using test::simple_pod;
using test::TestServer;
using test::to_text;
using testing::HasSubstr;

const std::string kOne = cat(kConfigMaps, "/a");

struct PatchCase {
  const char* type;
  const char* body;
  int status;
  const char* data;  // afterwards
};

class Patches : public testing::TestWithParam<PatchCase> {};

TEST_P(Patches, do_what_their_type_says) {
  TestServer api;
  api.post(kConfigMaps, config_map("a", "{'k':'v','x':'y'}"));

  Reply patched = api.patch(
      kOne + (std::string_view(GetParam().type) == "apply" ? "?fieldManager=m&force=true" : ""),
      GetParam().type, GetParam().body);

  EXPECT_EQ(patched.status, GetParam().status) << patched.text;
  EXPECT_EQ(api.get(kOne).body["data"], from_text(GetParam().data));
}

INSTANTIATE_TEST_SUITE_P(
    All, Patches,
    testing::Values(
        PatchCase{"json", "[{'op':'replace','path':'/data/k','value':'w'}]", 200,
                  "{'k':'w','x':'y'}"},
        PatchCase{"json",
                  "[{'op':'test','path':'/data/k','value':'v'},{'op':'remove','path':'/data/x'}]",
                  200, "{'k':'v'}"},
        PatchCase{"json",
                  "[{'op':'remove','path':'/data/x'},{'op':'test','path':'/data/k','value':'no'}]",
                  422, "{'k':'v','x':'y'}"},
        PatchCase{"json", "{}", 400, "{'k':'v','x':'y'}"},
        PatchCase{"json", "[{'op':'replace','path':'/metadata/name','value':'b'}]", 400,
                  "{'k':'v','x':'y'}"},
        PatchCase{"merge", "{'data':{'k':null,'n':'1'}}", 200, "{'n':'1','x':'y'}"},
        PatchCase{"merge", "[]", 400, "{'k':'v','x':'y'}"},
        PatchCase{"merge", "{'data':{'k':3}}", 422, "{'k':'v','x':'y'}"},
        PatchCase{"strategic", "{'data':{'$patch':'replace','n':'1'}}", 200, "{'n':'1'}"},
        PatchCase{"strategic", "{'data':{'k':null}}", 200, "{'x':'y'}"},
        PatchCase{"apply", "{apiVersion: v1, kind: ConfigMap, data: {k: w}}", 200,
                  "{'k':'w','x':'y'}"},
        PatchCase{"apply", "{apiVersion: v1, kind: Secret}", 400, "{'k':'v','x':'y'}"}));

class PatchRequests : public testing::Test {
 protected:
  TestServer api;
};

TEST_F(PatchRequests, options_that_the_type_does_not_have_are_refused) {
  api.add_config_map("a");
  const auto said = [&](std::string_view query, std::string_view type, std::string_view body) {
    const Reply reply = api.patch(cat(kOne, query), type, body);
    return cat(reply.status, " ", reply.body["message"].as_string());
  };
  for (const char* type : {"json", "merge", "strategic"}) {
    EXPECT_EQ(
        said("?force=false", type, std::string_view(type) == "json" ? "[]" : "{}"),
        "422 PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified "
        "for non-apply patch");
  }
  EXPECT_EQ(said("?dryRun=Some&fieldManager=a%09b", "apply", "{}"),
            "422 PatchOptions.meta.k8s.io \"\" is invalid: [fieldManager: Invalid value: "
            "\"a\\tb\": invalid character U+0009 (at position 1), dryRun: Unsupported value: "
            "[\"Some\"]: supported values: \"All\"]");
  EXPECT_EQ(said("", "apply", "{}"),
            "422 PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is "
            "required for apply patch");
}

TEST_F(PatchRequests, what_is_wrong_with_them_is_told_before_their_object_is_sought) {
  const std::string nowhere = cat(kConfigMaps, "/nowhere");
  EXPECT_EQ(api.send(test::make_request("PATCH", nowhere, "{}", "application/json")).status, 415);
  EXPECT_EQ(api.patch(nowhere + "?force=true", "merge", "{}").status, 422);
  EXPECT_EQ(api.patch(nowhere, "merge", "{").body["message"].as_string(), "invalid JSON patch");
  EXPECT_EQ(api.patch(nowhere, "merge", "{}").status, 404);
}

TEST_F(PatchRequests, a_patch_of_another_media_type_is_refused) {
  api.add_config_map("a");

  Reply patched = api.send(test::make_request("PATCH", kOne, "{}", "application/json"));

  EXPECT_EQ(patched.status, 415) << patched.text;
}

TEST_F(PatchRequests, a_strategic_patch_merges_lists_by_their_key) {
  api.add_account("default");
  api.post(kPods, simple_pod("p"));

  Reply patched = api.patch(cat(kPods, "/p"), "strategic",
                            "{'spec':{'containers':[{'name':'c','image':'new'}]}}");

  ASSERT_EQ(patched.status, 200) << patched.text;
  EXPECT_EQ(patched.body["spec"]["containers"].size(), 1U);
  EXPECT_EQ(patched.body["spec"]["containers"][0]["image"].as_string(), "new");
  EXPECT_EQ(patched.body["spec"]["containers"][0]["terminationMessagePath"].as_string(),
            "/dev/termination-log");
}

TEST_F(PatchRequests, apply_creates_and_remembers_who_applied) {
  Reply applied = api.patch(kOne + "?fieldManager=one", "apply",
                            "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");

  EXPECT_EQ(applied.status, 201) << applied.text;
  const Value& entry = applied.body["metadata"]["managedFields"][0];
  EXPECT_EQ(entry["manager"].as_string(), "one");
  EXPECT_EQ(entry["operation"].as_string(), "Apply");
}

TEST_F(PatchRequests, apply_conflicts_over_a_field_of_another_manager) {
  api.patch(kOne + "?fieldManager=one", "apply", "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");
  const char* other = "{apiVersion: v1, kind: ConfigMap, data: {k: w}}";

  Reply refused = api.patch(kOne + "?fieldManager=two", "apply", other);
  Reply forced = api.patch(kOne + "?fieldManager=two&force=true", "apply", other);

  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.message(), "Apply failed with 1 conflict: conflict with \"one\": .data.k");
  EXPECT_EQ(forced.status, 200);
  EXPECT_EQ(to_text(forced.body["data"]), "{'k':'w'}");
}

TEST_F(PatchRequests, apply_removes_what_it_no_longer_mentions) {
  api.patch(kOne + "?fieldManager=one", "apply",
            "{apiVersion: v1, kind: ConfigMap, data: {k: v, x: y}}");

  Reply applied = api.patch(kOne + "?fieldManager=one", "apply",
                            "{apiVersion: v1, kind: ConfigMap, data: {k: v}}");

  EXPECT_EQ(to_text(applied.body["data"]), "{'k':'v'}");
}

TEST_F(PatchRequests, apply_needs_a_manager) {
  Reply applied = api.patch(kOne, "apply", "{apiVersion: v1, kind: ConfigMap}");

  EXPECT_EQ(applied.status, 422);
  EXPECT_THAT(applied.message(),
              HasSubstr("fieldManager: Required value: is required for apply patch"));
}

}  // namespace
}  // namespace dibs::server
