// Sub-resources that are more than a part of their object.
#include "server/subresources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::condition_of;
using test::from_text;
using test::kPods;
using test::Reply;
using test::simple_pod;
using test::TestServer;
using testing::HasSubstr;

class BindingTest : public testing::Test {
 protected:
  BindingTest() {
    api.add_account("default");
    api.post(kPods, simple_pod("p"));
  }

  Reply bind(std::string_view node, std::string_view more = "{}") {
    Value binding = from_text("{'apiVersion':'v1','kind':'Binding','metadata':{'name':'p'}}");
    binding.set("target", Value::object({{"kind", "Node"}, {"name", node}}));
    const Value metadata = from_text(more);
    for (const auto& [key, value] : metadata.members()) binding.mut("metadata").set(key, value);
    return api.post(cat(kPods, "/p/binding"), binding);
  }
  Value pod() { return api.get(cat(kPods, "/p")).body; }

  TestServer api;
};

TEST_F(BindingTest, puts_a_pod_on_its_node) {
  Reply bound = bind("n1");

  EXPECT_EQ(bound.status, 201) << bound.text;
  EXPECT_EQ(bound.body["status"].as_string(), "Success");
  EXPECT_EQ(pod()["spec"]["nodeName"].as_string(), "n1");
  EXPECT_EQ(condition_of(pod(), "PodScheduled")["status"].as_string(), "True");
}

TEST_F(BindingTest, happens_once) {
  bind("n1");

  Reply again = bind("n2");

  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.message(), HasSubstr("pod p is already assigned to node \"n1\""));
  EXPECT_EQ(pod()["spec"]["nodeName"].as_string(), "n1");
}

TEST_F(BindingTest, of_another_uid_conflicts) {
  EXPECT_EQ(bind("n1", "{'uid':'other'}").status, 409);
  EXPECT_FALSE(pod()["spec"].contains("nodeName"));
}

TEST_F(BindingTest, hands_on_annotations) {
  EXPECT_EQ(bind("n1", "{'annotations':{'a':'b'}}").status, 201);
  EXPECT_EQ(pod()["metadata"]["annotations"]["a"].as_string(), "b");
}

TEST(Scale, is_the_replicas_of_its_object) {
  TestServer api;
  const std::string target = "/apis/apps/v1/namespaces/default/deployments/d";
  Reply made = api.post("/apis/apps/v1/namespaces/default/deployments",
                        from_text("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':"
                                  "'d'},'spec':{'replicas':2,'selector':{'matchLabels':{'a':'b'}},"
                                  "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'containers'"
                                  ":[{'name':'c','image':'i'}]}}}}"));
  ASSERT_EQ(made.status, 201) << made.text;

  Reply scale = api.get(target + "/scale");
  EXPECT_EQ(scale.body["kind"].as_string(), "Scale");
  EXPECT_EQ(scale.body["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(scale.body["status"]["selector"].as_string(), "a=b");
  scale.body.mut("spec").set("replicas", 5);
  Reply scaled = api.put(target + "/scale", scale.body);
  Reply stale = api.put(target + "/scale", scale.body);

  EXPECT_EQ(scaled.status, 200) << scaled.text;
  EXPECT_EQ(api.get(target).body["spec"]["replicas"].as_int(), 5);
  EXPECT_EQ(api.get(target).body["metadata"]["generation"].as_int(), 2);
  EXPECT_EQ(stale.status, 409);
}

}  // namespace
}  // namespace dibs::server
