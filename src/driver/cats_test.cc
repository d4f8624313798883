// The cats of examples/cats among controllers and scheduler, in one thread under virtual time: the
// documents' pod gets two of them, whatever is killed on the way.
#include "examples/cats/cats.h"

#include <gmock/gmock.h>

#include "driver/controller.h"
#include "driver/generated_parameters.h"
#include "driver/test_boxes.h"

namespace dibs::driver {
namespace {

using json::Value;
using test::DyingTransport;
using test::from_text;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const client::Gvr kTemplates = {"resource.k8s.io", "v1alpha2", "resourceclaimtemplates"};
const client::Gvr kParameters = {"cats.resource.example.com", "v1", "claimparameters"};
const client::Gvr kMade = {"resource.k8s.io", "v1alpha2", "resourceclaimparameters"};
const client::Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};

class CatsWorld : public test::ControllerWorld {
 public:
  explicit CatsWorld(const std::string& release) : ControllerWorld(options(release)) {
    settle();
    for (const char* node : {"node-0", "node-1"}) {
      patch(test::kNodes, "", node,
            "{'status': {'capacity': {'cpu': '4', 'memory': '8Gi', 'pods': '10'}, 'allocatable': "
            "{'cpu': '4', 'memory': '8Gi', 'pods': '10'}}}",
            "status");
      patch(test::kNodes, "", node, "{'spec': {'taints': null}}");
    }
  }

  void define() {
    create(kDefinitions, "", R"({'metadata': {'name': 'claimparameters.cats.resource.example.com'},
        'spec': {'group': 'cats.resource.example.com', 'scope': 'Namespaced',
                 'names': {'plural': 'claimparameters', 'kind': 'ClaimParameters'},
                 'versions': [{'name': 'v1', 'served': true, 'storage': true, 'schema':
                   {'openAPIV3Schema': {'type': 'object',
                                        'x-kubernetes-preserve-unknown-fields': true}}}]}})");
    settle();
  }

  void make_parameters(const std::string& name, const std::string& spec) {
    create(kParameters, "default",
           cat("{'apiVersion': 'cats.resource.example.com/v1', 'kind': 'ClaimParameters', "
               "'metadata': {'name': '",
               name, "'}, 'spec': ", spec, "}"));
  }

  /// Class, parameters and template of the documents.
  void install() {
    define();
    make_class("resource.example.com", cats::kName);
    make_parameters("large-black-cat-claim-parameters", "{'color': 'black', 'size': 'large'}");
    create(kTemplates, "default", R"({'metadata': {'name': 'large-black-cat-claim-template'},
        'spec': {'spec': {'resourceClassName': 'resource.example.com', 'parametersRef': {
          'apiGroup': 'cats.resource.example.com', 'kind': 'ClaimParameters',
          'name': 'large-black-cat-claim-parameters'}}}})");
  }

  void make_pod_with_cats(const std::string& name, int cats) {
    std::string entries;
    std::string uses;
    for (int i = 0; i < cats; ++i) {
      const std::string from = "'resourceClaimTemplateName': 'large-black-cat-claim-template'";
      append(entries, i > 0 ? ", " : "", "{'name': 'cat-", i, "', 'source': {", from, "}, ", from,
             "}");
      append(uses, i > 0 ? ", " : "", "{'name': 'cat-", i, "'}");
    }
    create(test::kPods, "default",
           cat("{'metadata': {'name': '", name, "'}, 'spec': {'resourceClaims': [", entries,
               "], 'containers': [{'name': 'c', 'image': 'i', 'resources': {'claims': [", uses,
               "]}}]}}"));
  }

  std::string node_of(const std::string& pod) {
    return get(test::kPods, "default", pod)["spec"]["nodeName"].str();
  }

  /// "node-0/cat-1" of every claim that is allocated.
  std::vector<std::string> given() {
    std::vector<std::string> out;
    for (const auto& claim : list(kClassicClaims, "default")) {
      for (const auto& handle : handles_of(claim, cats::kName)) {
        const auto cat = json::parse(handle.data);
        if (!claim["status"]["allocation"].is_object() || !cat) continue;
        out.push_back(dibs::cat((*cat)["node"].as_string(), "/", (*cat)["name"].as_string()));
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  std::unique_ptr<Controller> start(Allocator& allocator, client::Client& client) {
    auto started =
        Controller::start(allocator, environment_over(client), {.driver_name = cats::kName});
    EXPECT_TRUE(started.ok());
    return std::move(started).value();
  }

 private:
  static cluster::Options options(const std::string& release) {
    cluster::Options out = options_of(release);
    out.controllers.emplace();
    out.scheduler.emplace();
    return out;
  }
};

class CatsTest : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Releases, CatsTest, testing::Values("", "1.27", "1.30"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.empty() ? "newest" : "as_" + name.substr(2);
                         });

TEST_P(CatsTest, a_pod_gets_two_cats_and_the_next_one_waits_for_them) {
  CatsWorld world(GetParam());
  cats::Shelter shelter(*cats::Inventory::parse("node-0=black/large,black/large"), *world.api);
  auto controller = world.start(shelter, *world.api);
  world.install();

  // All of it in less time than it takes to find out that these nodes have no agents.
  world.make_pod_with_cats("pod-with-cats", 2);
  world.settle(std::chrono::seconds(10));
  EXPECT_EQ(world.node_of("pod-with-cats"), "node-0");
  EXPECT_THAT(world.given(), ElementsAre("node-0/cat-0", "node-0/cat-1"));
  EXPECT_THAT(world.list(kContexts, "default"), IsEmpty());

  world.make_pod_with_cats("next", 1);
  world.settle(std::chrono::seconds(5));
  EXPECT_EQ(world.node_of("next"), "");

  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  world.remove(test::kPods, "default", "pod-with-cats", now);
  world.settle(std::chrono::seconds(20));
  EXPECT_EQ(world.node_of("next"), "node-0");
  EXPECT_EQ(world.given().size(), 1u);
}

TEST_P(CatsTest, a_kill_of_the_controller_at_any_write_ends_right) {
  for (const bool arrives : {false, true}) {
    bool died = true;
    for (int writes = 0; died && writes < 30; ++writes) {
      SCOPED_TRACE(cat(arrives ? "answer lost" : "killed", " at write ", writes));
      CatsWorld world(GetParam());
      cats::Shelter shelter(*cats::Inventory::parse("*=black/large,black/large"), *world.api);
      DyingTransport way(world.way(), writes, arrives);
      client::Client dying(way);
      auto controller = world.start(shelter, dying);
      world.install();
      world.make_pod_with_cats("p", 2);
      world.make_pod_with_cats("q", 1);
      world.settle(std::chrono::seconds(10));
      died = way.died();
      controller = world.start(shelter, *world.api);
      world.settle(std::chrono::seconds(25));

      EXPECT_NE(world.node_of("p"), "");
      EXPECT_NE(world.node_of("q"), "");
      const auto given = world.given();
      EXPECT_EQ(given.size(), 3u);
      EXPECT_EQ(std::set<std::string>(given.begin(), given.end()).size(), 3u);

      client::DeleteOptions now;
      now.grace_period_seconds = 0;
      for (const char* pod : {"p", "q"}) world.remove(test::kPods, "default", pod, now);
      world.settle(std::chrono::minutes(2));
      EXPECT_THAT(world.list(kClassicClaims, "default"), IsEmpty());
      controller.reset();
    }
    EXPECT_FALSE(died) << "the story has more writes";
  }
}

TEST(Cats, an_inventory_says_who_lives_where) {
  const auto cats = cats::Inventory::parse("*=black/large,white/small;node-1=;n=grey/tiny");
  ASSERT_TRUE(cats.ok());
  ASSERT_EQ(cats->on("any").size(), 2u);
  EXPECT_EQ(cats->on("any")[1].name, "cat-1");
  EXPECT_EQ(cats->on("any")[1].color, "white");
  EXPECT_TRUE(cats->on("node-1").empty());
  EXPECT_EQ(cats->on("n")[0].size, "tiny");

  EXPECT_EQ(cats::Inventory::parse("black").error().message(),
            "--cats: not NODE=COLOR/SIZE,…: black");
  EXPECT_EQ(cats::Inventory::parse("*=black").error().message(), "--cats: not COLOR/SIZE: black");
  EXPECT_TRUE(cats::Inventory::parse(cats::kSomeCats).ok());
}

TEST(Cats, a_container_is_shown_its_cat) {
  cats::Carrier carrier(*cats::Inventory::parse("*=black/large"), "node-0");
  Claim claim;
  claim.handles = {{R"({"node":"node-0","name":"cat-3","color":"white","size":"small"})", {}}};
  auto prepared = carrier.prepare(claim);
  ASSERT_TRUE(prepared.ok());
  EXPECT_THAT((*prepared)[0].edits.env, ElementsAre("CAT_3_COLOR=white", "CAT_3_SIZE=small"));

  claim.handles = {{R"({"node":"node-1","name":"cat-3"})", {}}};
  EXPECT_EQ(carrier.prepare(claim).error().message(), "the cat is on node node-1");
  claim.handles = {{"no JSON", {}}};
  EXPECT_FALSE(carrier.prepare(claim).ok());

  // The scheduler chose.
  claim.handles = {{"", from_text("{'nodeName': 'node-0'}")}};
  claim.devices = {{"", "node-0", "cat-0"}};
  prepared = carrier.prepare(claim);
  ASSERT_TRUE(prepared.ok());
  EXPECT_THAT((*prepared)[0].edits.env, ElementsAre("CAT_0_COLOR=black", "CAT_0_SIZE=large"));
  claim.devices = {{"", "node-0", "dog"}};
  EXPECT_EQ(carrier.prepare(claim).error().message(), "no cat here is named dog");
}

// Parameters for the scheduler.

std::unique_ptr<GeneratedParameters> generate(CatsWorld& world) {
  return GeneratedParameters::start(
      [](const Value& vendor) -> Result<Value> {
        if (vendor["spec"]["color"].as_string() == "plaid")
          return Error::invalid("no cat is plaid");
        return cats::parameters_for_scheduler(vendor);
      },
      world.environment(), {.driver_name = cats::kName, .kind = cats::kParameters});
}

TEST(GeneratedParameters, follow_the_vendors_objects) {
  CatsWorld world("1.30");
  auto generated = generate(world);
  world.settle(std::chrono::seconds(5));  // the kind is not there yet
  world.define();
  world.make_parameters("a", "{'color': 'black', 'size': 'large'}");
  world.settle(std::chrono::seconds(5));

  auto made = world.list(kMade, "default");
  ASSERT_EQ(made.size(), 1u);
  const Value vendor = world.get(kParameters, "default", "a");
  EXPECT_EQ(made[0]["metadata"]["name"].str(),
            cat("a-", vendor["metadata"]["uid"].as_string().substr(0, 8)));
  EXPECT_EQ(made[0]["generatedFrom"], from_text("{'apiGroup': 'cats.resource.example.com', 'kind': "
                                                "'ClaimParameters', 'name': 'a'}"));
  EXPECT_EQ(made[0]["metadata"]["ownerReferences"][0]["uid"], vendor["metadata"]["uid"]);
  EXPECT_EQ(made[0]["driverRequests"][0]["requests"][0]["namedResources"]["selector"].as_string(),
            "attributes.string[\"color\"] == \"black\" && attributes.string[\"size\"] == "
            "\"large\"");
  const std::string version = made[0]["metadata"]["resourceVersion"].str();

  // What is in step is not written.
  world.patch(kParameters, "default", "a", "{'metadata': {'labels': {'x': 'y'}}}");
  world.settle();
  EXPECT_EQ(world.list(kMade, "default")[0]["metadata"]["resourceVersion"].str(), version);

  world.patch(kParameters, "default", "a", "{'spec': {'size': null, 'shareable': true}}");
  world.settle();
  made = world.list(kMade, "default");
  ASSERT_EQ(made.size(), 1u);
  EXPECT_TRUE(made[0]["shareable"].as_bool());
  EXPECT_EQ(made[0]["driverRequests"][0]["requests"][0]["namedResources"]["selector"].as_string(),
            "attributes.string[\"color\"] == \"black\"");

  world.remove(kParameters, "default", "a");
  world.settle();
  EXPECT_THAT(world.list(kMade, "default"), IsEmpty());
}

TEST(GeneratedParameters, come_back_when_somebody_deletes_or_changes_them) {
  CatsWorld world("1.30");
  world.define();
  world.make_parameters("a", "{'color': 'black'}");
  auto generated = generate(world);
  world.settle(std::chrono::seconds(5));
  const std::string name = world.list(kMade, "default").at(0)["metadata"]["name"].str();

  world.patch(kMade, "default", name, "{'driverRequests': null}");
  world.settle();
  EXPECT_EQ(world.get(kMade, "default", name)["driverRequests"].size(), 1u);
  world.remove(kMade, "default", name);
  world.settle();
  EXPECT_EQ(world.get(kMade, "default", name)["driverRequests"].size(), 1u);
}

TEST(GeneratedParameters, nothing_stands_for_an_object_that_is_wrong) {
  CatsWorld world("1.30");
  world.define();
  world.make_parameters("a", "{'color': 'black'}");
  world.create(kMade, "default",
               "{'metadata': {'name': 'by-hand'}, 'generatedFrom': {'apiGroup': "
               "'cats.resource.example.com', 'kind': 'ClaimParameters', 'name': 'a'}}");
  auto generated = generate(world);
  world.settle(std::chrono::seconds(5));
  EXPECT_EQ(world.list(kMade, "default").size(), 2u);

  world.patch(kParameters, "default", "a", "{'spec': {'color': 'plaid'}}");
  world.settle();

  ASSERT_EQ(world.list(kMade, "default").size(), 1u);
  EXPECT_EQ(world.list(kMade, "default")[0]["metadata"]["name"].as_string(), "by-hand");
  EXPECT_THAT(world.events("default", "a"), Contains("Warning Failed no cat is plaid"));
}

TEST(GeneratedParameters, a_restart_finds_what_was_made) {
  CatsWorld world("1.30");
  world.define();
  world.make_parameters("a", "{'color': 'black'}");
  world.make_parameters("b", "{'color': 'white'}");
  auto generated = generate(world);
  auto twin = generate(world);
  world.settle(std::chrono::seconds(5));
  EXPECT_EQ(world.list(kMade, "default").size(), 2u);
  generated.reset();
  twin.reset();
  world.remove(kParameters, "default", "b");
  world.settle();

  generated = generate(world);
  world.settle(std::chrono::seconds(5));
  ASSERT_EQ(world.list(kMade, "default").size(), 1u);
  EXPECT_EQ(world.list(kMade, "default")[0]["generatedFrom"]["name"].as_string(), "a");
}

TEST(GeneratedParameters, of_classes_lie_beside_what_they_are_made_from) {
  CatsWorld world("1.30");
  world.create({"", "v1", "configmaps"}, "default", "{'metadata': {'name': 'all'}}");
  auto generated = GeneratedParameters::start(
      [](const Value&) -> Result<Value> {
        return from_text(
            "{'filters': [{'driverName': 'boxes.example.com', 'namedResources': {'selector': "
            "'true'}}]}");
      },
      world.environment(),
      {.driver_name = "boxes.example.com", .kind = {"", "ConfigMap"}, .of_classes = true});
  world.settle(std::chrono::seconds(5));

  bool found = false;
  for (const auto& made :
       world.list({"resource.k8s.io", "v1alpha2", "resourceclassparameters"}, "default")) {
    if (made["generatedFrom"]["name"].as_string() != "all") continue;
    found = true;
    EXPECT_EQ(made["generatedFrom"]["namespace"].as_string(), "default");
    EXPECT_EQ(made["filters"].size(), 1u);
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace dibs::driver
