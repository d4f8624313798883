#include "controllers/classic_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/finalizers.h"
#include "base/strings.h"
#include "controllers/pod_claims.h"
#include "controllers/test_cluster.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

const Gvr kClaims = {"resource.k8s.io", "v1alpha2", "resourceclaims"};
const Gvr kTemplates = {"resource.k8s.io", "v1alpha2", "resourceclaimtemplates"};
const Gvr kContexts = {"resource.k8s.io", "v1alpha2", "podschedulingcontexts"};
constexpr const char* kDriverFinalizer = "net.example.com/deletion-protection";

server::Options at(const std::string& release) {
  server::Options options;
  options.release = release;
  return options;
}

/// Claims that a driver's controller allocates. `far`: the server is elsewhere.
struct World {
  World(const std::string& release, bool far)
      : nests(!release.empty()), cluster(at(release), far) {}

  void make_template(const std::string& name) {
    cluster.create(kTemplates, "default",
                   cat("{'metadata': {'name': '", name,
                       "'}, 'spec': {'metadata': {'labels': {'team': 'red'}}, 'spec': "
                       "{'resourceClassName': 'net'}}}"));
  }
  /// `source`: what names claim or template; releases have put it in different places.
  Value make_pod(const std::string& name, const std::string& source, const std::string& node = "") {
    const std::string entry =
        nests ? cat("{'name': 'd', 'source': {", source, "}}") : cat("{'name': 'd', ", source, "}");
    return cluster.create(
        kPods, "default",
        cat("{'metadata': {'name': '", name, "'}, 'spec': {",
            node.empty() ? std::string() : cat("'nodeName': '", node, "', "), "'resourceClaims': [",
            entry,
            "], 'containers': [{'name': 'm', 'image': 'x', 'resources': {'claims': "
            "[{'name': 'd'}]}}]}}"));
  }
  Value make_claim(const std::string& name, const std::string& more = "") {
    return cluster.create(kClaims, "default",
                          cat("{'metadata': {'name': '", name,
                              "'}, 'spec': {'resourceClassName': 'net'", more, "}}"));
  }
  static Value consumer(const Value& pod) {
    return Value::object(
        {{"resource", "pods"}, {"name", pod["metadata"]["name"]}, {"uid", pod["metadata"]["uid"]}});
  }
  /// As the driver's controller does it, or, with the other finalizer, the scheduler.
  void allocate(const std::string& name, const std::vector<Value>& pods, bool shareable = false,
                std::string_view finalizer = kDriverFinalizer) {
    Value object = claim(name);
    object.mut("metadata").set("finalizers", Value::array({finalizer}));
    object = *cluster.api->update(kClaims, "default", object);
    Value status = from_text("{'driverName': 'net.example.com', 'allocation': {}}");
    if (shareable) status.mut("allocation").set("shareable", true);
    Value users = Value::array();
    for (const Value& pod : pods) users.push(consumer(pod));
    if (!pods.empty()) status.set("reservedFor", users);
    object.set("status", status);
    const auto written = cluster.api->update_status(kClaims, "default", object);
    ASSERT_TRUE(written.ok()) << written.error().message();
    cluster.settle();
  }
  void end(const std::string& pod) {
    cluster.patch(kPods, "default", pod, "{'status': {'phase': 'Succeeded'}}", "status");
    cluster.settle();
  }
  Value claim(const std::string& name) { return cluster.get(kClaims, "default", name); }
  Value status(const std::string& name) { return claim(name)["status"]; }
  std::vector<std::string> users(const std::string& name) {
    std::vector<std::string> out;
    for (const Value& user : status(name)["reservedFor"].items()) out.push_back(user["name"].str());
    return out;
  }
  Value context(const std::string& pod) { return cluster.get(kContexts, "default", pod); }

  const bool nests;
  TestCluster cluster;
};

constexpr const char* kFromTemplate = "'resourceClaimTemplateName': 'nic'";
constexpr const char* kNamed = "'resourceClaimName': 'c'";

class EarlyClaims : public testing::TestWithParam<bool> {
 protected:
  World world{"1.27", GetParam()};
};

INSTANTIATE_TEST_SUITE_P(NearAndFar, EarlyClaims, testing::Bool());

TEST_P(EarlyClaims, are_called_after_pod_and_entry) {
  world.make_template("nic");
  const Value pod = world.make_pod("p", kFromTemplate);
  world.cluster.settle();
  const Value made = world.claim("p-d");
  ASSERT_FALSE(made.is_null());
  EXPECT_TRUE(is_owned_by(made, pod));
  EXPECT_TRUE(controller_of(made)["blockOwnerDeletion"].as_bool());
  EXPECT_TRUE(made["metadata"]["generateName"].is_null());
  EXPECT_TRUE(made["metadata"]["annotations"].is_null());
  EXPECT_EQ(made["metadata"]["labels"]["team"].str(), "red");
  EXPECT_EQ(made["spec"]["resourceClassName"].str(), "net");
  EXPECT_TRUE(
      world.cluster.get(kPods, "default", "p")["status"]["resourceClaimStatuses"].is_null());
}

TEST_P(EarlyClaims, are_made_again_when_somebody_deletes_them) {
  world.make_template("nic");
  world.make_pod("p", kFromTemplate);
  world.cluster.settle();
  const std::string before(uid_of(world.claim("p-d")));
  world.cluster.remove(kClaims, "default", "p-d");
  world.cluster.settle();
  EXPECT_NE(std::string(uid_of(world.claim("p-d"))), before);
  EXPECT_FALSE(world.claim("p-d").is_null());
}

TEST_P(EarlyClaims, do_not_take_one_of_somebody_else) {
  world.make_template("nic");
  world.make_claim("p-d");
  world.make_pod("p", kFromTemplate);
  world.cluster.settle(std::chrono::seconds(3));
  EXPECT_THAT(world.cluster.events("default", "p"),
              testing::Contains("Warning FailedResourceClaimCreation PodResourceClaim d: "
                                "ResourceClaim default/p-d was not created for pod default/p (pod "
                                "is not owner)"));
}

TEST_P(EarlyClaims, stay_reserved_until_the_pod_itself_is_gone) {
  world.make_template("nic");
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed);
  const Value other = world.make_pod("q", kFromTemplate);
  world.cluster.settle();
  world.allocate("c", {pod});
  world.allocate("q-d", {other});
  world.end("p");
  world.end("q");
  EXPECT_THAT(world.users("c"), ElementsAre("p"));
  EXPECT_THAT(world.users("q-d"), ElementsAre("q"));
  world.cluster.remove(kPods, "default", "p");
  world.cluster.remove(kPods, "default", "q");
  world.cluster.settle();
  EXPECT_THAT(world.users("c"), IsEmpty());
  EXPECT_FALSE(world.status("c")["allocation"].is_null());
  EXPECT_TRUE(world.status("c")["deallocationRequested"].is_null());
  // Its driver lets it go.
  EXPECT_TRUE(is_deleting(world.claim("q-d")));
}

TEST_P(EarlyClaims, of_a_pod_with_a_node_are_left_to_themselves) {
  world.make_claim("c");
  world.make_pod("p", kNamed, "n");
  world.cluster.settle();
  world.allocate("c", {});
  EXPECT_THAT(world.users("c"), IsEmpty());
  EXPECT_THAT(world.cluster.names(kContexts, "default"), IsEmpty());
}

struct Place {
  const char* release;
  bool far;
};

class ClassicClaims : public testing::TestWithParam<Place> {
 protected:
  World world{GetParam().release, GetParam().far};
};

INSTANTIATE_TEST_SUITE_P(ReleasesNearAndFar, ClassicClaims,
                         testing::Values(Place{"1.30", false}, Place{"1.30", true},
                                         Place{"", false}, Place{"", true}));

TEST_P(ClassicClaims, get_a_name_that_the_pod_is_told) {
  world.make_template("nic");
  const Value pod = world.make_pod("p", kFromTemplate);
  world.cluster.settle();
  const Value told = world.cluster.get(kPods, "default", "p")["status"]["resourceClaimStatuses"];
  ASSERT_EQ(told.size(), 1U);
  const std::string name = told[0]["resourceClaimName"].str();
  EXPECT_THAT(name, StartsWith("p-d-"));
  const Value made = world.claim(name);
  EXPECT_EQ(made["metadata"]["generateName"].str(), "p-d-");
  EXPECT_EQ(made["metadata"]["annotations"][kClaimNameAnnotation].str(), "d");
  EXPECT_TRUE(is_owned_by(made, pod));
  EXPECT_TRUE(controller_of(made)["blockOwnerDeletion"].as_bool());
  EXPECT_EQ(made["spec"]["resourceClassName"].str(), "net");
}

TEST_P(ClassicClaims, are_made_again_when_somebody_deletes_them) {
  world.make_template("nic");
  world.make_pod("p", kFromTemplate);
  world.cluster.settle();
  const auto before = world.cluster.names(kClaims, "default");
  ASSERT_EQ(before.size(), 1U);
  world.cluster.remove(kClaims, "default", before[0]);
  world.cluster.settle();
  const auto after = world.cluster.names(kClaims, "default");
  ASSERT_EQ(after.size(), 1U);
  EXPECT_NE(after, before);
  const Value pod = world.cluster.get(kPods, "default", "p");
  EXPECT_EQ(pod["status"]["resourceClaimStatuses"][0]["resourceClaimName"].str(), after[0]);
}

TEST_P(ClassicClaims, of_an_early_release_are_taken_over) {
  world.make_template("nic");
  world.cluster.controllers->stop();
  const Value pod = world.make_pod("p", kFromTemplate);
  Value claim = from_text("{'metadata': {'name': 'p-d'}, 'spec': {'resourceClassName': 'net'}}");
  claim.mut("metadata").set("ownerReferences", Value::array({owner_reference(pod)}));
  world.cluster.create_object(kClaims, "default", claim);
  world.cluster.controllers->start();
  world.cluster.settle();
  const Value told = world.cluster.get(kPods, "default", "p")["status"]["resourceClaimStatuses"];
  EXPECT_EQ(told[0]["resourceClaimName"].str(), "p-d");
  EXPECT_THAT(world.cluster.names(kClaims, "default"), ElementsAre("p-d"));
}

TEST_P(ClassicClaims, without_users_go_back_to_their_driver) {
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod});
  EXPECT_TRUE(world.status("c")["deallocationRequested"].is_null());
  world.end("p");
  EXPECT_THAT(world.users("c"), IsEmpty());
  EXPECT_TRUE(world.status("c")["deallocationRequested"].as_bool());
  EXPECT_FALSE(world.status("c")["allocation"].is_null());
}

TEST_P(ClassicClaims, that_one_pod_of_two_still_uses_stay) {
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed);
  const Value other = world.make_pod("q", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod, other}, true);
  world.end("p");
  EXPECT_THAT(world.users("c"), ElementsAre("q"));
  EXPECT_TRUE(world.status("c")["deallocationRequested"].is_null());
}

TEST_P(ClassicClaims, that_were_allocated_at_once_stay_allocated) {
  world.make_claim("c", ", 'allocationMode': 'Immediate'");
  const Value pod = world.make_pod("p", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod});
  world.end("p");
  EXPECT_THAT(world.users("c"), IsEmpty());
  EXPECT_TRUE(world.status("c")["deallocationRequested"].is_null());
  EXPECT_FALSE(world.status("c")["allocation"].is_null());
}

TEST_P(ClassicClaims, of_a_template_are_deleted_when_their_pod_has_ended) {
  world.make_template("nic");
  const Value pod = world.make_pod("p", kFromTemplate);
  world.cluster.settle();
  const std::string name = world.cluster.names(kClaims, "default").at(0);
  world.allocate(name, {pod});
  world.end("p");
  EXPECT_TRUE(is_deleting(world.claim(name)));
}

TEST_P(ClassicClaims, of_the_scheduler_are_cleared_and_keep_the_drivers_name) {
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod}, false, kNamedClaimFinalizer);
  world.end("p");
  EXPECT_TRUE(world.status("c")["allocation"].is_null());
  EXPECT_TRUE(world.status("c")["deallocationRequested"].is_null());
  EXPECT_EQ(world.status("c")["driverName"].str(), "net.example.com");
  EXPECT_TRUE(world.claim("c")["metadata"]["finalizers"].empty());
}

TEST_P(ClassicClaims, of_the_scheduler_that_were_allocated_at_once_go_when_they_are_deleted) {
  world.make_claim("c", ", 'allocationMode': 'Immediate'");
  const Value pod = world.make_pod("p", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod}, false, kNamedClaimFinalizer);
  world.end("p");
  EXPECT_FALSE(world.status("c")["allocation"].is_null());
  EXPECT_FALSE(world.claim("c")["metadata"]["finalizers"].empty());
  world.cluster.remove(kClaims, "default", "c");
  world.cluster.settle();
  EXPECT_TRUE(world.claim("c").is_null());
}

TEST_P(ClassicClaims, of_a_pod_with_a_node_are_asked_for_there) {
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed, "n");
  world.cluster.settle();
  const Value context = world.context("p");
  EXPECT_EQ(context["spec"], from_text("{'selectedNode': 'n'}"));
  EXPECT_TRUE(is_owned_by(context, pod));
  EXPECT_FALSE(controller_of(context).contains("blockOwnerDeletion"));
  world.cluster.patch(kContexts, "default", "p", "{'spec': {'selectedNode': 'other'}}");
  world.cluster.settle();
  EXPECT_EQ(world.context("p")["spec"]["selectedNode"].str(), "n");
  world.allocate("c", {});
  EXPECT_THAT(world.users("c"), ElementsAre("p"));
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  ASSERT_TRUE(world.cluster.api->remove(kPods, "default", "p", now).ok());
  world.cluster.settle();
  EXPECT_TRUE(world.context("p").is_null());
}

TEST_P(ClassicClaims, that_are_not_shareable_are_reserved_for_one_pod) {
  world.make_claim("c", ", 'allocationMode': 'Immediate'");
  world.make_pod("p", kNamed, "n");
  world.make_pod("q", kNamed, "n");
  world.cluster.settle();
  EXPECT_THAT(world.cluster.names(kContexts, "default"), IsEmpty());
  world.allocate("c", {});
  EXPECT_EQ(world.users("c").size(), 1U);
}

TEST_P(ClassicClaims, that_are_to_be_freed_are_reserved_for_nobody) {
  world.make_claim("c");
  const Value pod = world.make_pod("p", kNamed);
  world.cluster.settle();
  world.allocate("c", {pod}, true);
  world.end("p");
  ASSERT_TRUE(world.status("c")["deallocationRequested"].as_bool());
  world.make_pod("q", kNamed, "n");
  world.cluster.settle();
  EXPECT_THAT(world.users("c"), IsEmpty());
}

TEST(BothModels, are_handled_side_by_side) {
  World world("", false);
  const Gvr structured = {"resource.k8s.io", "v1", "resourceclaims"};
  world.make_claim("old");
  world.cluster.create(structured, "default",
                       "{'metadata': {'name': 'new'}, 'spec': {'devices': {'requests': [{'name': "
                       "'d', 'exactly': {'deviceClassName': 'c'}}]}}}");
  const Value pod = world.cluster.create(
      kPods, "default",
      "{'metadata': {'name': 'p'}, 'spec': {'resourceClaims': [{'name': 'a', 'resourceClaimName': "
      "'old'}, {'name': 'b', 'resourceClaimName': 'new'}], 'containers': [{'name': 'm', 'image': "
      "'x', 'resources': {'claims': [{'name': 'a'}, {'name': 'b'}]}}]}}");
  world.cluster.settle();
  world.allocate("old", {pod});
  Value object = world.cluster.get(structured, "default", "new");
  object.mut("metadata").set("finalizers", Value::array({kClaimFinalizer}));
  object = *world.cluster.api->update(structured, "default", object);
  object.set("status", from_text("{'allocation': {'devices': {'results': [{'request': 'd', "
                                 "'driver': 'x.example.com', 'pool': 'p', 'device': 'a'}]}}}"));
  object.mut("status").set("reservedFor", Value::array({World::consumer(pod)}));
  ASSERT_TRUE(world.cluster.api->update_status(structured, "default", object).ok());
  world.end("p");
  EXPECT_TRUE(world.status("old")["deallocationRequested"].as_bool());
  EXPECT_TRUE(world.cluster.get(structured, "default", "new")["status"]["allocation"].is_null());
}

}  // namespace
}  // namespace dibs::controllers
