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

TEST_F(BindingTest, of_another_version_or_namespace_is_refused) {
  Reply stale = bind("n1", "{'resourceVersion':'1'}");
  EXPECT_EQ(stale.status, 409);
  EXPECT_THAT(stale.message(),
              HasSubstr("ResourceVersion in precondition: 1, ResourceVersion in "));

  EXPECT_EQ(bind("n1", "{'namespace':'other'}").status, 400);
  EXPECT_FALSE(pod()["spec"].contains("nodeName"));
}

TEST_F(BindingTest, is_read_before_its_pod_is_looked_for) {
  Reply unnamed =
      api.post("/api/v1/namespaces/default/bindings", from_text("{'target':{'name':'n1'}}"));
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_EQ(unnamed.message(), "Name parameter required.");

  Reply other = api.post(cat(kPods, "/missing/binding"), from_text("{'target':{'name':'n1'}}"));
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(other.message(), "name in URL does not match name in Binding object");
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

TEST(Scale, judges_its_number_before_its_version) {
  TestServer api;
  const std::string target = "/apis/apps/v1/namespaces/default/deployments/d/scale";
  api.post("/apis/apps/v1/namespaces/default/deployments",
           from_text("{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d'},'spec':{"
                     "'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':"
                     "'b'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}"));
  Value scale = api.get(target).body;
  scale.mut("metadata").set("resourceVersion", "1");
  EXPECT_EQ(api.put(target, scale).status, 409);
  scale.mut("spec").set("replicas", -1);
  EXPECT_EQ(api.put(target, scale).status, 422);
}

class ReviewTest : public testing::Test {
 protected:
  Reply ask(std::string_view kind, std::string_view body) {
    return api.post(cat("/apis/authorization.k8s.io/v1/", kind), from_text(body));
  }

  TestServer api;
};

TEST_F(ReviewTest, judges_its_selectors) {
  const auto ask_with = [&](std::string_view selector) {
    return ask("subjectaccessreviews",
               cat("{'spec':{'user':'ana','resourceAttributes':{'verb':'list','resource':'pods',",
                   selector, "}}}"));
  };

  EXPECT_EQ(
      ask_with("'fieldSelector':{}").message(),
      ".authorization.k8s.io \"\" is invalid: spec.resourceAttributes.fieldSelector.requirements:"
      " Required value: when spec.resourceAttributes.fieldSelector is specified, requirements "
      "or rawSelector is required");
  EXPECT_THAT(ask_with("'fieldSelector':{'rawSelector':'a=b','requirements':[{'key':'a',"
                       "'operator':'Exists'}]}")
                  .message(),
              HasSubstr("rawSelector: Invalid value: \"a=b\": may not specified at the same time"));
  EXPECT_THAT(
      ask_with("'labelSelector':{'requirements':[{'key':'a b','operator':'In'}]}").message(),
      HasSubstr("requirements[0].values: Required value"));
  EXPECT_EQ(ask_with("'labelSelector':{'requirements':[{'key':'a','operator':'Odd'}]}")
                .body["status"]["evaluationError"]
                .as_string(),
            "spec.resourceAttributes.labelSelector ignored due to parse error");
  EXPECT_FALSE(ask_with("'labelSelector':{'rawSelector':'a in (b)'}")
                   .body["status"]
                   .contains("evaluationError"));
}

TEST_F(ReviewTest, has_no_metadata_and_in_a_namespace_no_paths) {
  const std::string_view spec = "'spec':{'user':'ana','resourceAttributes':{'verb':'get'}}";
  Reply named = ask("subjectaccessreviews", cat("{'metadata':{'name':'x'},", spec, "}"));
  EXPECT_EQ(named.status, 422);
  EXPECT_THAT(named.message(), HasSubstr("metadata: Invalid value: {\"name\":\"x\""));
  EXPECT_THAT(named.message(), HasSubstr(": must be empty"));
  Reply placed = ask("subjectaccessreviews", cat("{'metadata':{'namespace':'x'},", spec, "}"));
  EXPECT_EQ(placed.status, 201);
  EXPECT_FALSE(placed.body["metadata"].contains("namespace"));

  EXPECT_EQ(ask("namespaces/x/localsubjectaccessreviews",
                cat("{'metadata':{'namespace':'y'},", spec, "}"))
                .status,
            400);
  EXPECT_THAT(ask("namespaces/x/localsubjectaccessreviews",
                  "{'spec':{'user':'ana','nonResourceAttributes':{'path':'/x','verb':'get'}}}")
                  .message(),
              HasSubstr("spec.nonResourceAttributes: Invalid value: {\"Path\":\"/x\",\"Verb\":"
                        "\"get\"}: disallowed on this kind of request"));
}

}  // namespace
}  // namespace dibs::server
