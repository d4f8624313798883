// What a DELETE answers. The write is left to whoever serves the request, so the answer is made
// apart from it, from the object as it was read.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using json::Value;
using test::from_text;
using test::kConfigMaps;
using test::kPods;
using test::Reply;
using test::TestServer;
using test::version_of;

constexpr const char* kClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";

class DeletionAnswer : public testing::Test {
 protected:
  TestServer api;
};

TEST_F(DeletionAnswer, a_pod_that_goes_at_once_is_shown_at_the_version_it_had) {
  api.add_account("default");
  const Value pod = api.run_pod("p");

  const Reply gone = api.remove(cat(kPods, "/p"), "{'gracePeriodSeconds':0}");

  EXPECT_EQ(gone.status, 200);
  EXPECT_EQ(gone.body["kind"].as_string(), "Pod");
  EXPECT_EQ(version_of(gone.body), version_of(pod));
  EXPECT_EQ(gone.body["metadata"]["deletionGracePeriodSeconds"].as_int(-1), 0);
  EXPECT_TRUE(gone.body["metadata"]["deletionTimestamp"].is_string());
  EXPECT_EQ(api.get(cat(kPods, "/p")).status, 404);
}

TEST_F(DeletionAnswer, what_waits_is_shown_as_it_is_stored) {
  api.add_account("default");
  api.run_pod("p");

  const Reply waits = api.remove(cat(kPods, "/p"));

  EXPECT_EQ(waits.status, 200);
  EXPECT_EQ(waits.body, api.get(cat(kPods, "/p")).body);
}

TEST_F(DeletionAnswer, a_claim_is_shown_as_it_was_at_the_version_of_its_end) {
  const Reply made = api.post(
      kClaims, from_text("{'apiVersion':'resource.k8s.io/v1','kind':'ResourceClaim','metadata':"
                         "{'name':'c'},'spec':{'devices':{'requests':[{'name':'d','exactly':"
                         "{'deviceClassName':'x'}}]}}}"));
  ASSERT_EQ(made.status, 201) << made.text;

  const Reply gone = api.remove(cat(kClaims, "/c"));

  EXPECT_EQ(version_of(gone.body), api.store->revision());
  EXPECT_GT(version_of(gone.body), version_of(made.body));
  Value as_it_was = made.body;
  as_it_was.mut("metadata").set("resourceVersion", gone.body["metadata"]["resourceVersion"]);
  EXPECT_EQ(gone.body, as_it_was);
}

TEST_F(DeletionAnswer, a_kind_says_whether_it_is_shown_when_it_is_gone) {
  const std::pair<const char*, const char*> cases[] = {
      {"/api/v1/namespaces/default/resourcequotas",
       "{'apiVersion':'v1','kind':'ResourceQuota','metadata':{'name':'a'}}"},
      {"/api/v1/namespaces/default/limitranges",
       "{'apiVersion':'v1','kind':'LimitRange','metadata':{'name':'a'},'spec':{'limits':[]}}"},
      {"/apis/storage.k8s.io/v1/storageclasses",
       "{'apiVersion':'storage.k8s.io/v1','kind':'StorageClass','metadata':{'name':'a'},"
       "'provisioner':'p'}"}};
  std::vector<std::string> answered;
  for (const auto& [path, object] : cases) {
    const Reply made = api.post(path, from_text(object));
    ASSERT_EQ(made.status, 201) << made.text;
    answered.push_back(api.remove(cat(path, "/a")).body["kind"].str());
  }

  EXPECT_EQ(answered, (std::vector<std::string>{"ResourceQuota", "Status", "StorageClass"}));
}

TEST_F(DeletionAnswer, comes_in_the_form_that_was_asked_for) {
  api.add_account("default");
  api.run_pod("p");
  auto request = test::make_request("DELETE", cat(kPods, "/p"), "{\"gracePeriodSeconds\":0}");
  request.headers.set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  EXPECT_EQ(api.send(std::move(request)).body["kind"].as_string(), "PartialObjectMetadata");

  api.add_config_map("a");
  request = test::make_request("DELETE", cat(kConfigMaps, "/a"));
  request.headers.set("Accept", "application/yaml");
  const Reply status = api.send(std::move(request));
  EXPECT_EQ(status.headers.get("Content-Type"), "application/yaml");
  EXPECT_NE(status.text.find("status: Success"), std::string::npos) << status.text;
}

TEST_F(DeletionAnswer, a_dry_run_writes_nothing) {
  api.add_config_map("a");
  const auto before = api.store->revision();

  EXPECT_EQ(api.remove(cat(kConfigMaps, "/a?dryRun=All")).status, 200);

  EXPECT_EQ(api.store->revision(), before);
  EXPECT_EQ(api.get(cat(kConfigMaps, "/a")).status, 200);
}

}  // namespace
}  // namespace dibs::server
