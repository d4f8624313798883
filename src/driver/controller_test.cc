// The controller of a classic driver against an API server: every transition of a claim and of a
// pod that is being scheduled, in the releases that had them and in today's.
#include "driver/controller.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "client/testing/fake_api.h"
#include "driver/controller_for_test.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::Boxes;
using test::ControllerWorld;
using test::from_text;
using test::kClaims2;
using test::kDriver;
using test::kFinalizer;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

INSTANTIATE_TEST_SUITE_P(Releases, ControllerTest, testing::Values("", "1.27", "1.30"),
                         name_of_release);

TEST_P(ControllerTest, allocates_an_immediate_claim_where_it_pleases) {
  world.make_class();
  world.make_claim("c", "Immediate");
  auto controller = start();

  const Value claim = world.claim("c");
  EXPECT_EQ(claim["metadata"]["finalizers"], Value::array({kFinalizer}));
  EXPECT_EQ(claim["status"]["driverName"].as_string(), kDriver);
  const Value& allocation = claim["status"]["allocation"];
  EXPECT_EQ(allocation["resourceHandles"],
            from_text("[{'driverName': 'boxes.example.com', 'data': 'node-0/box-0'}]"));
  EXPECT_EQ(allocation["availableOnNodes"], only_on("node-0"));
  EXPECT_FALSE(allocation["shareable"].as_bool());
  EXPECT_TRUE(claim["status"]["reservedFor"].is_null());
  EXPECT_THAT(boxes.calls, ElementsAre("allocate c on ''"));
}

TEST_P(ControllerTest, a_delayed_claim_waits_for_its_pod) {
  world.make_class();
  world.make_claim("c");
  auto controller = start();

  EXPECT_EQ(world.claim("c")["status"], from_text("{}"));
  EXPECT_TRUE(world.claim("c")["metadata"]["finalizers"].is_null());
  EXPECT_THAT(boxes.calls, IsEmpty());
}

TEST_P(ControllerTest, tells_which_nodes_cannot_serve_the_pod) {
  boxes.per_node = {{"node-0", 0}, {"node-1", 1}};
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "", {"node-0", "node-1"});
  auto controller = start();

  EXPECT_EQ(world.context("p")["status"]["resourceClaims"],
            from_text("[{'name': 'c', 'unsuitableNodes': ['node-0']}]"));
  EXPECT_TRUE(world.claim("c")["status"]["allocation"].is_null());
  EXPECT_THAT(boxes.calls, ElementsAre("unsuitable p c of node-0 node-1"));

  // Nothing changes: it is asked again and again, but not written.
  const std::string version = world.context("p")["metadata"]["resourceVersion"].str();
  world.settle(std::chrono::seconds(31));
  EXPECT_EQ(boxes.calls.size(), 2u);
  EXPECT_EQ(world.context("p")["metadata"]["resourceVersion"].str(), version);

  boxes.per_node["node-0"] = 1;
  world.settle(std::chrono::seconds(30));
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"], from_text("[{'name': 'c'}]"));
}

TEST_P(ControllerTest, says_in_the_pods_events_why_no_node_will_do) {
  boxes.per_node = {{"node-0", 0}, {"node-1", 0}};
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "", {"node-0", "node-1"});
  auto controller = start();
  EXPECT_THAT(world.events("default", "p"),
              Contains("Warning UnsuitableNodes node-0, node-1: no box is free"));

  // Whoever waits is looked at again as soon as the driver wants it.
  boxes.per_node["node-0"] = 1;
  controller->look_again();
  world.settle();
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"],
            from_text("[{'name': 'c', 'unsuitableNodes': ['node-1']}]"));
}

TEST(Reasons, stand_once_for_all_nodes_that_have_them) {
  EXPECT_EQ(describe_reasons({}), "");
  EXPECT_EQ(describe_reasons({{"a", "x"}, {"b", "y"}, {"c", "x"}}), "a, c: x; b: y");
  EXPECT_EQ(describe_reasons({{"a", "x"}, {"b", "x"}, {"c", "x"}, {"d", "x"}, {"e", "x"}}),
            "a, b, c and 2 more: x");
  std::map<std::string, std::string> many;
  for (int i = 0; i < 100; ++i) many[cat("node-", i)] = cat(std::string(90, 'x'), i);
  const std::string text = describe_reasons(many);
  EXPECT_LT(text.size(), 1024u);
  EXPECT_THAT(text, testing::EndsWith(" more reasons"));
}

TEST_P(ControllerTest, allocates_and_reserves_for_the_selected_node_in_one_write) {
  world.make_class();
  world.make_claim("c");
  world.make_claim("d");
  const Value pod = world.make_pod("p", {"c", "d"});
  auto controller = start();

  world.make_context("p", "node-1", {"node-0", "node-1"});
  world.settle();

  for (const char* name : {"c", "d"}) {
    const Value claim = world.claim(name);
    EXPECT_EQ(claim["status"]["allocation"]["availableOnNodes"], only_on("node-1"));
    ASSERT_EQ(claim["status"]["reservedFor"].size(), 1u);
    EXPECT_EQ(claim["status"]["reservedFor"][0]["resource"].as_string(), "pods");
    EXPECT_EQ(claim["status"]["reservedFor"][0]["name"].as_string(), "p");
    EXPECT_EQ(claim["status"]["reservedFor"][0]["uid"], pod["metadata"]["uid"]);
    EXPECT_EQ(claim["metadata"]["finalizers"], Value::array({kFinalizer}));
  }
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-1/box-0", "node-1/box-1"));
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"],
            from_text("[{'name': 'c'}, {'name': 'd'}]"));
  EXPECT_THAT(boxes.calls,
              ElementsAre("unsuitable p c d of node-0 node-1", "allocate c d on 'node-1'"));
}

TEST_P(ControllerTest, a_selected_node_that_cannot_serve_gets_nothing) {
  boxes.per_node = {{"node-0", 0}, {"node-1", 1}};
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-1"});
  auto controller = start();

  // The selected node is asked about though it is not among the potential ones.
  EXPECT_THAT(boxes.calls, ElementsAre("unsuitable p c of node-1 node-0"));
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"],
            from_text("[{'name': 'c', 'unsuitableNodes': ['node-0']}]"));
  EXPECT_TRUE(world.claim("c")["status"]["allocation"].is_null());
}

TEST_P(ControllerTest, a_pod_that_has_its_node_is_served_without_asking) {
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-1", {});
  auto controller = start();

  EXPECT_THAT(boxes.calls, ElementsAre("allocate c on 'node-1'"));
  EXPECT_EQ(world.claim("c")["status"]["reservedFor"].size(), 1u);
}

TEST_P(ControllerTest, claims_made_from_templates_are_found) {
  world.make_class();
  const Value pod = world.make_pod_with_template("p", "cat");
  const bool old = std::string(GetParam()) == "1.27";
  const std::string name = old ? "p-cat" : "p-cat-x7k2p";
  world.make_claim(name, "WaitForFirstConsumer", &pod);
  if (!old) {
    world.patch({"", "v1", "pods"}, "default", "p",
                "{'status': {'resourceClaimStatuses': [{'name': 'cat', 'resourceClaimName': "
                "'p-cat-x7k2p'}]}}",
                "status");
  }
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();

  EXPECT_EQ(world.claim(name)["status"]["reservedFor"].size(), 1u);
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"], from_text("[{'name': 'cat'}]"));
}

TEST_P(ControllerTest, a_claim_that_was_made_for_another_pod_is_refused) {
  world.make_class();
  world.make_pod_with_template("p", "cat");
  world.make_claim("p-cat");
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();

  EXPECT_TRUE(world.claim("p-cat")["status"]["allocation"].is_null());
  EXPECT_THAT(world.events("default", "p"), Contains(HasSubstr("Warning Failed pod claim cat: ")));
}

TEST_P(ControllerTest, two_entries_of_a_pod_may_mean_one_claim) {
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c", "c"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();

  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));
  EXPECT_EQ(world.claim("c")["status"]["reservedFor"].size(), 1u);
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"],
            from_text("[{'name': 'c'}, {'name': 'c-1'}]"));
}

TEST_P(ControllerTest, frees_a_claim_that_is_deleted) {
  world.make_class();
  world.make_claim("c", "Immediate");
  auto controller = start();

  world.remove(kClaims2, "default", "c");
  world.settle();

  EXPECT_TRUE(world.claim("c").is_null());
  EXPECT_THAT(boxes.calls, ElementsAre("allocate c on ''", "deallocate c of node-0/box-0"));
}

TEST_P(ControllerTest, a_deleted_claim_stays_while_it_is_in_use) {
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();

  world.remove(kClaims2, "default", "c");
  world.settle();
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));

  world.patch(kClaims2, "default", "c", "{'status': {'reservedFor': null}}", "status");
  world.settle();
  EXPECT_TRUE(world.claim("c").is_null());
  EXPECT_THAT(boxes.calls, Contains("deallocate c of node-0/box-0"));
}

TEST_P(ControllerTest, deallocates_on_request_and_is_ready_for_the_next) {
  world.make_class();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();
  world.remove({"resource.k8s.io", "v1alpha2", "podschedulingcontexts"}, "default", "p");

  world.patch(kClaims2, "default", "c", "{'status': {'reservedFor': null}}", "status");
  world.patch(kClaims2, "default", "c", "{'status': {'deallocationRequested': true}}", "status");
  world.settle();

  EXPECT_EQ(world.claim("c")["status"], from_text("{}"));
  EXPECT_TRUE(world.claim("c")["metadata"]["finalizers"].is_null());
  EXPECT_THAT(world.boxes_in_use(), IsEmpty());

  world.make_context("p", "node-1", {"node-1"});
  world.settle();
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-1/box-0"));
}

TEST_P(ControllerTest, what_is_freed_is_told_to_who_waits) {
  boxes.per_node = {{"node-0", 1}};
  world.make_class();
  world.make_claim("held", "Immediate");
  auto controller = start();
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-0"});
  world.settle();
  EXPECT_EQ(world.context("p")["status"]["resourceClaims"][0]["unsuitableNodes"],
            from_text("['node-0']"));

  world.remove(kClaims2, "default", "held");
  world.settle(std::chrono::seconds(2));

  EXPECT_EQ(world.claim("c")["status"]["reservedFor"].size(), 1u);
}

TEST_P(ControllerTest, stops_an_allocation_that_never_ended) {
  boxes.per_node = {};
  world.make_class();
  world.make_claim("c", "Immediate");
  auto controller = start();
  EXPECT_EQ(world.claim("c")["metadata"]["finalizers"], Value::array({kFinalizer}));
  EXPECT_THAT(world.events("default", "c"),
              Contains("Warning Failed allocating claim: no box is free"));

  world.remove(kClaims2, "default", "c");
  world.settle();

  EXPECT_TRUE(world.claim("c").is_null());
  EXPECT_THAT(boxes.calls, Contains("deallocate c of nothing"));
}

TEST_P(ControllerTest, leaves_alone_what_is_not_its_own) {
  world.make_class("boxes", "other.example.com");
  world.make_claim("now", "Immediate");
  world.make_claim("later");
  world.make_pod("p", {"later"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();
  EXPECT_THAT(boxes.calls, IsEmpty());
  EXPECT_EQ(world.context("p")["status"], from_text("{}"));

  // A class may change its driver.
  world.patch(kClassicClasses, "", "boxes", "{'driverName': 'boxes.example.com'}");
  world.settle();
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0", "node-0/box-1"));
}

TEST_P(ControllerTest, a_class_that_comes_late_is_used_at_once) {
  world.make_claim("now", "Immediate");
  auto controller = start();
  EXPECT_THAT(world.events("default", "now"),
              Contains("Warning Failed resourceclass.resource.k8s.io \"boxes\" not found"));
  world.settle(std::chrono::minutes(10));

  world.make_class();
  world.settle();

  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));
}

TEST_P(ControllerTest, ignores_contexts_of_other_pods) {
  world.make_class();
  world.make_claim("c");
  auto controller = start();
  world.make_pod("p", {"c"});
  // Of a pod that had this name before.
  world.make_context("p", "node-0", {"node-0"}, "11111111-2222-4333-8444-555555555555");
  // Of none.
  world.make_context("q", "node-0", {"node-0"}, "11111111-2222-4333-8444-555555555555");
  world.settle();

  EXPECT_THAT(boxes.calls, IsEmpty());
}

TEST_P(ControllerTest, parameters_that_are_wrong_are_told_to_class_claim_and_pod) {
  world.make_class("boxes", kDriver,
                   "'parametersRef': {'kind': 'ConfigMap', 'name': 'big', "
                   "'namespace': 'default'},");
  world.make_claim("c");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller = start();
  EXPECT_THAT(world.events("", "boxes"), Contains("Warning Failed configmaps \"big\" not found"));
  EXPECT_THAT(world.events("default", "p"),
              Contains("Warning Failed claim c: configmaps \"big\" not found"));

  world.create({"", "v1", "configmaps"}, "default",
               "{'metadata': {'name': 'big'}, 'data': {'prefix': 'big-'}}");
  world.settle(std::chrono::minutes(1));

  EXPECT_THAT(world.boxes_in_use(), ElementsAre("big-node-0/box-0"));
}

TEST_P(ControllerTest, references_to_other_kinds_are_not_followed) {
  world.create({"", "v1", "secrets"}, "default", "{'metadata': {'name': 's'}}");
  world.make_class();
  world.make_claim("c", "Immediate", nullptr, ", 'parametersRef': {'kind': 'Secret', 'name': 's'}");
  auto controller = start();

  EXPECT_THAT(world.events("default", "c"),
              Contains("Warning Failed parametersRef: Secret is no kind of parameters of this "
                       "driver, which takes none"));
  EXPECT_TRUE(world.claim("c")["metadata"]["finalizers"].is_null());
}

TEST_P(ControllerTest, what_the_author_throws_or_forgets_is_an_error) {
  world.make_class();
  world.make_claim("c", "Immediate");
  boxes.mood = Boxes::Mood::throws;
  auto controller = start();
  EXPECT_THAT(world.events("default", "c"), Contains("Warning Failed the driver threw: splinters"));

  boxes.mood = Boxes::Mood::forgets;
  world.settle(std::chrono::minutes(2));
  EXPECT_THAT(world.events("default", "c"),
              Contains("Warning Failed allocating claim: missing allocation from driver"));

  boxes.mood = Boxes::Mood::good;
  world.settle(std::chrono::minutes(20));
  EXPECT_THAT(world.boxes_in_use(), ElementsAre("node-0/box-0"));
}

TEST_P(ControllerTest, one_claim_of_a_pod_may_fail_alone) {
  world.make_class();
  world.make_claim("c");
  world.make_claim("unlucky");
  world.make_pod("p", {"c", "unlucky"});
  world.make_context("p", "node-0", {});
  auto controller = start();

  EXPECT_EQ(world.claim("c")["status"]["reservedFor"].size(), 1u);
  EXPECT_TRUE(world.claim("unlucky")["status"]["allocation"].is_null());
  EXPECT_THAT(world.events("default", "p"),
              Contains("Warning Failed claim unlucky: allocating claim: bad luck"));
}

TEST(Controller, leaves_structured_parameters_to_the_scheduler) {
  ControllerWorld world("1.30");
  Boxes boxes;
  world.make_class("boxes", kDriver, "'structuredParameters': true,");
  world.make_claim("c");
  world.make_claim("now", "Immediate");
  world.make_pod("p", {"c"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller =
      Controller::start(boxes, world.environment(), {.driver_name = std::string(kDriver)});
  world.settle(std::chrono::minutes(1));

  EXPECT_THAT(boxes.calls, IsEmpty());
}

TEST(Controller, does_not_touch_claims_of_the_other_model) {
  ControllerWorld world("");
  Boxes boxes;
  const Value claim = world.TestWorld::make_claim(
      "new",
      "{'devices': {'results': [{'request': 'r', 'driver': 'boxes.example.com', 'pool': 'p', "
      "'device': 'd'}]}}");
  world.make_class();
  world.make_pod("p", {"new"});
  world.make_context("p", "node-0", {"node-0"});
  auto controller =
      Controller::start(boxes, world.environment(), {.driver_name = std::string(kDriver)});
  world.settle(std::chrono::minutes(1));

  EXPECT_THAT(boxes.calls, IsEmpty());
  EXPECT_EQ(world.get(test::kClaims, "default", "new"), claim);
}

/// A server that checks nothing shows objects of any shape.
TEST(Controller, gets_over_garbage_from_the_server) {
  runtime::SimRuntime sim;
  client::FakeApi server;
  auto way = client::make_in_process_transport(server.handler(), sim.runtime());
  client::Client api(*way);
  auto files = runtime::make_memory_files();
  const std::string group = "/apis/resource.k8s.io/v1alpha2/";
  const char* shapes[] = {
      "{}",
      "{'spec': null, 'status': null}",
      "{'spec': 'x', 'status': 3}",
      "{'spec': {'resourceClassName': 'none', 'allocationMode': 'Immediate'}}",
      "{'spec': {'resourceClassName': 'odd', 'allocationMode': 'Immediate'}, 'status': []}",
      "{'spec': {'resourceClassName': 3, 'allocationMode': {}}, 'status': {'reservedFor': 1}}",
      "{'spec': {'resourceClassName': 'odd'}, 'status': {'allocation': {'resourceHandles': 'x'}}}",
      "{'spec': {'selectedNode': 'node-0', 'potentialNodes': 'x'}, 'status': {'resourceClaims': "
      "1}}",
      "{'spec': {'potentialNodes': [1, null, 'node-0']}, 'status': {'resourceClaims': [null]}}",
  };
  const auto put = [&](const std::string& path, const std::string& name, const char* shape) {
    Value object = from_text(shape);
    object.set("metadata", Value::object({{"name", name},
                                          {"namespace", "default"},
                                          {"uid", name},
                                          {"finalizers", Value::array({kFinalizer, 3})},
                                          {"ownerReferences", "x"}}));
    server.put(path + name, object);
  };
  int count = 0;
  for (const char* shape : shapes) {
    const std::string name = cat("o", count++);
    put(group + "namespaces/default/resourceclaims/", name, shape);
    put(group + "namespaces/default/podschedulingcontexts/", name, shape);
    put("/api/v1/namespaces/default/pods/", name, shape);
  }
  server.put(group + "resourceclasses/odd",
             from_text("{'metadata': {'name': 'odd'}, 'driverName': ['x'], 'parametersRef': 1}"));
  Boxes boxes;
  auto controller =
      Controller::start(boxes, {api, sim.runtime(), *files}, {.driver_name = std::string(kDriver)});
  ASSERT_TRUE(controller.ok());
  sim.advance(std::chrono::minutes(1));

  EXPECT_TRUE((*controller)->is_working());
  EXPECT_THAT(boxes.calls, Not(Contains(testing::StartsWith("allocate"))));
  (*controller)->stop();
  sim.run_until_idle();
}

TEST(Controller, needs_a_name) {
  ControllerWorld world("");
  Boxes boxes;
  EXPECT_EQ(Controller::start(boxes, world.environment(), {}).error().message(),
            "a driver needs a name");
}

TEST(CutNodes, keeps_the_selected_one) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 130; ++i) nodes.push_back(cat("n", i));

  EXPECT_EQ(cut_nodes(nodes, nodes, "n129").size(), 128u);
  EXPECT_THAT(cut_nodes(nodes, nodes, "n129"), Contains("n129"));
  EXPECT_THAT(cut_nodes(nodes, nodes, "n0"), Contains("n0"));
  EXPECT_THAT(cut_nodes({"a", "b", "a", "unasked"}, {"b", "a"}, ""), ElementsAre("b", "a"));
}

}  // namespace
}  // namespace dibs::driver
