// Claims with the structured parameters of Kubernetes 1.30, from claim to bound pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const Gvr kClassic = {"resource.k8s.io", "v1alpha2", "resourceclaims"};
const Gvr kResourceClasses = {"resource.k8s.io", "v1alpha2", "resourceclasses"};
const Gvr kNamedSlices = {"resource.k8s.io", "v1alpha2", "resourceslices"};
const Gvr kClaimParameters = {"resource.k8s.io", "v1alpha2", "resourceclaimparameters"};
const Gvr kClassParameters = {"resource.k8s.io", "v1alpha2", "resourceclassparameters"};

class NamedCluster : public TestCluster {
 public:
  using TestCluster::TestCluster;

  void add_resource_class(const std::string& more = "", const std::string& name = "k") {
    create(kResourceClasses, "",
           cat("{'metadata':{'name':'", name, "'},'driverName':'d.example.com',",
               "'structuredParameters':true", more, "}"));
  }
  /// Instances with attributes.int["n"] from 0 on.
  void add_instances(const std::string& node, int count,
                     const std::string& driver = "d.example.com", int from = 0) {
    std::string list;
    for (int i = from; i < from + count; ++i) {
      append(list, i > from ? "," : "", "{'name':'i", i, "','attributes':[{'name':'n','int':", i,
             "}]}");
    }
    create(kNamedSlices, "",
           cat("{'metadata':{'name':'", node, "-", driver, "-", from, "'},'nodeName':'", node,
               "','driverName':'", driver, "','namedResources':{'instances':[", list, "]}}"));
  }
  void add_named_node(const std::string& name) {
    add_node(name, "{'cpu':'4','memory':'8Gi','pods':'10'}",
             cat("{'kubernetes.io/hostname':'", name, "'}"));
  }
  void add_named_claim(const std::string& name, const std::string& more = "") {
    create(kClassic, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{'resourceClassName':'k'", more, "}}"));
  }
  /// With parameters of its own: requests for the driver, `more` for other drivers.
  void add_selecting_claim(const std::string& name, const std::string& selectors,
                           const std::string& more = "", const std::string& extra = "") {
    std::string requests;
    for (const std::string_view selector : split(selectors, ';')) {
      append(requests, requests.empty() ? "" : ",", "{'namedResources':{'selector':'", selector,
             "'}}");
    }
    create(kClaimParameters, "default",
           cat("{'metadata':{'name':'", name, "'}", extra,
               ",'driverRequests':[{'driverName':'d.example.com','requests':[", requests, "]}",
               more, "]}"));
    add_named_claim(name, reference(name));
  }
  static std::string reference(const std::string& name) {
    return cat(
        ",'parametersRef':{'apiGroup':'resource.k8s.io','kind':'ResourceClaimParameters','name':'",
        name, "'}");
  }
  Value claim(const std::string& name) { return get(kClassic, "default", name); }
  /// "driver/node/instance" of a claim.
  std::vector<std::string> instances(const std::string& name) { return instances_of(claim(name)); }
  static std::vector<std::string> instances_of(const Value& claim) {
    std::vector<std::string> made;
    for (const Value& handle : claim["status"]["allocation"]["resourceHandles"].items()) {
      const Value& data = handle["structuredData"];
      for (const Value& result : data["results"].items()) {
        made.push_back(cat(handle["driverName"].as_string(), "/", data["nodeName"].as_string(), "/",
                           result["namedResources"]["name"].as_string()));
      }
    }
    return made;
  }
  std::vector<std::string> all_instances() {
    std::vector<std::string> made;
    const auto found = api->list(kClassic, "default");
    for (const Value& claim : found->items) {
      for (std::string& id : instances_of(claim)) made.push_back(std::move(id));
    }
    std::sort(made.begin(), made.end());
    return made;
  }
  std::vector<std::string> users(const std::string& name) {
    std::vector<std::string> made;
    const Value object = claim(name);
    for (const Value& user : object["status"]["reservedFor"].items()) {
      made.push_back(user["name"].str());
    }
    return made;
  }
  Value add_pod_of(const std::string& name, const std::vector<std::string>& claims) {
    std::string list;
    for (const std::string& claim : claims) {
      append(list, list.empty() ? "" : ",", "{'name':'", claim, "','resourceClaimName':'", claim,
             "'}");
    }
    return add_pod(name, cat("{'resourceClaims':[", list, "]}"));
  }
};

TEST(Structured, allocates_for_a_claim_without_parameters) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 2);
  cluster.add_named_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
  const Value claim = cluster.claim("c");
  EXPECT_EQ(claim["metadata"]["finalizers"], from_text("['dra.k8s.io/delete-protection']"));
  EXPECT_EQ(claim["status"]["driverName"].as_string(), "d.example.com");
  EXPECT_EQ(
      claim["status"]["allocation"],
      from_text("{'availableOnNodes':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                "'kubernetes.io/hostname','operator':'In','values':['a']}]}]},'resourceHandles':["
                "{'driverName':'d.example.com','structuredData':{'nodeName':'a','results':["
                "{'namedResources':{'name':'i0'},'vendorRequestParameters':null}],"
                "'vendorClaimParameters':null,'vendorClassParameters':null}}],'shareable':true}"));
  EXPECT_THAT(cluster.users("c"), ElementsAre("p"));
  // It can be shared, on its node.
  cluster.add_named_node("b");
  cluster.add_instances("b", 2);
  cluster.add_claim_pod("second", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("second"), "a");
  EXPECT_THAT(cluster.users("c"), ElementsAre("p", "second"));
}

TEST(Structured, writes_twice_where_the_server_is_far) {
  NamedCluster cluster({}, {}, true);
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 1);
  cluster.add_named_claim("c");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
  EXPECT_EQ(cluster.claim("c")["metadata"]["finalizers"],
            from_text("['dra.k8s.io/delete-protection']"));
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/a/i0"));
}

TEST(Structured, keeps_a_claim_that_is_not_shareable_to_one_pod) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 2);
  cluster.add_selecting_claim("c", "true");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_FALSE(cluster.claim("c")["status"]["allocation"].contains("shareable"));
  cluster.add_claim_pod("second", "c");
  cluster.settle();
  EXPECT_THAT(cluster.condition("second"),
              StartsWith("Unschedulable: 0/1 nodes are available: resourceclaim in use."));
}

TEST(Structured, serves_several_requests_and_drivers_with_their_parameters) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_instances("a", 2);
  cluster.add_instances("b", 2);
  cluster.add_instances("b", 1, "e.example.com");
  cluster.create(kClassParameters, "default",
                 "{'metadata':{'name':'k'},'vendorParameters':[{'driverName':'d.example.com',"
                 "'parameters':{'sharing':'none'}}]}");
  cluster.add_resource_class(
      ",'parametersRef':{'apiGroup':'resource.k8s.io','kind':'ResourceClassParameters','name':'k',"
      "'namespace':'default'}");
  cluster.create(
      kClaimParameters, "default",
      "{'metadata':{'name':'c'},'driverRequests':[{'driverName':'e.example.com',"
      "'vendorParameters':{'mode':'fast'},'requests':[{'namedResources':{'selector':'true'},"
      "'vendorParameters':{'first':1}}]},{'driverName':'d.example.com','requests':["
      "{'namedResources':{'selector':'attributes.int.n == 1'}},{'namedResources':{'selector':"
      "'true'}}]}]}");
  cluster.add_named_claim("c", NamedCluster::reference("c"));
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "b") << cluster.condition("p");
  EXPECT_THAT(cluster.instances("c"),
              ElementsAre("e.example.com/b/i0", "d.example.com/b/i1", "d.example.com/b/i0"));
  const Value claim = cluster.claim("c");
  const Value& handles = claim["status"]["allocation"]["resourceHandles"];
  EXPECT_EQ(handles[0]["structuredData"]["vendorClaimParameters"], from_text("{'mode':'fast'}"));
  EXPECT_EQ(handles[0]["structuredData"]["results"][0]["vendorRequestParameters"],
            from_text("{'first':1}"));
  EXPECT_EQ(handles[1]["structuredData"]["vendorClassParameters"], from_text("{'sharing':'none'}"));
}

TEST(Structured, waits_for_parameters_and_names_them) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_instances("a", 2);
  cluster.add_named_claim("c", NamedCluster::reference("c"));
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  const auto says = [&] { return cluster.condition("p"); };
  EXPECT_THAT(says(), StartsWith("Unschedulable: 0/1 nodes are available: resource class k does "
                                 "not exist."));
  cluster.add_resource_class(
      ",'parametersRef':{'apiGroup':'example.com','kind':'Card','name':'all'}");
  cluster.settle();
  EXPECT_THAT(says(), StartsWith("Unschedulable: 0/1 nodes are available: generated class "
                                 "parameters for Card.example.com all not found."));
  cluster.create(kClassParameters, "default",
                 "{'metadata':{'name':'x'},'generatedFrom':{'apiGroup':'example.com','kind':'Card',"
                 "'name':'all'},'filters':[{'driverName':'d.example.com','namedResources':{"
                 "'selector':'attributes.int.n > 5'}}]}");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_THAT(says(), StartsWith("Unschedulable: 0/1 nodes are available: claim parameters "
                                 "default/c not found."));
  cluster.create(kClaimParameters, "default",
                 "{'metadata':{'name':'c'},'driverRequests':[{'driverName':'d.example.com',"
                 "'requests':[{'namedResources':{'selector':'true'}}]}]}");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_THAT(says(), StartsWith("Unschedulable: 0/1 nodes are available: 1 resourceclaim cannot "
                                 "be allocated for the node (unsuitable)."));
  // The filter goes.
  cluster.patch(kClassParameters, "default", "x", "{'filters':null}");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.node_of("p"), "a") << says();
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/a/i0"));
}

TEST(Structured, finds_generated_parameters_that_come_later) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_instances("a", 3);
  cluster.add_resource_class();
  cluster.add_named_claim("c",
                          ",'parametersRef':{'apiGroup':'example.com','kind':'Card','name':'big'}");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"),
              StartsWith("Unschedulable: 0/1 nodes are available: generated claim parameters for "
                         "Card.example.com default/big not found."));
  cluster.create(kClaimParameters, "default",
                 "{'metadata':{'name':'made'},'generatedFrom':{'apiGroup':'example.com','kind':"
                 "'Card','name':'big'},'driverRequests':[{'driverName':'d.example.com','requests':["
                 "{'namedResources':{'selector':'attributes.int.n == 2'}}]}]}");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/a/i2"));
}

TEST(Structured, wakes_for_slices_and_passes_nodes_whose_instances_fail) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_resource_class();
  cluster.create(kNamedSlices, "",
                 "{'metadata':{'name':'bare'},'nodeName':'a','driverName':'d.example.com',"
                 "'namedResources':{'instances':[{'name':'bare'}]}}");
  cluster.add_selecting_claim("c", "attributes.int.n == 1");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_THAT(
      cluster.condition("p"),
      StartsWith("Unschedulable: 0/2 nodes are available: 1 checking structured parameters failed: "
                 "checking node \"a\" and resources of driver \"d.example.com\": evaluate request "
                 "CEL expression: no such key: n, 1 resourceclaim cannot be allocated for the node "
                 "(unsuitable)."));
  cluster.add_instances("b", 2);
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.node_of("p"), "b") << cluster.condition("p");
}

TEST(Structured, stays_where_the_class_allows) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_instances("a", 1);
  cluster.add_instances("b", 1);
  cluster.add_resource_class(
      ",'suitableNodes':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
      "'kubernetes.io/hostname','operator':'In','values':['b']}]}]}");
  cluster.add_named_claim("one");
  cluster.add_claim_pod("one", "one");
  cluster.add_named_claim("two");
  cluster.settle();
  cluster.add_claim_pod("two", "two");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("one"), "b");
  EXPECT_THAT(cluster.condition("two"),
              StartsWith("Unschedulable: 0/2 nodes are available: 1 excluded by resource class "
                         "node filter, 1 resourceclaim cannot be allocated for the node "
                         "(unsuitable)."));
}

TEST(Structured, allocates_an_immediate_claim_when_a_pod_comes) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_instances("a", 1);
  cluster.add_resource_class();
  cluster.add_named_claim("c", ",'allocationMode':'Immediate'");
  cluster.settle();
  EXPECT_FALSE(cluster.claim("c")["status"].contains("allocation"));
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/a/i0"));
}

TEST(Structured, never_gives_two_claims_of_a_pod_one_instance) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 1);
  cluster.add_named_claim("one");
  cluster.add_named_claim("two");
  cluster.add_pod_of("p", {"one", "two"});
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_THAT(cluster.all_instances(), IsEmpty());
  cluster.add_instances("a", 1, "d.example.com", 1);
  cluster.settle(std::chrono::seconds(5));
  EXPECT_EQ(cluster.node_of("p"), "a") << cluster.condition("p");
  EXPECT_THAT(cluster.all_instances(), ElementsAre("d.example.com/a/i0", "d.example.com/a/i1"));
}

TEST(Structured, chooses_otherwise_where_the_first_choice_leads_nowhere) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 2);
  cluster.add_selecting_claim("c", "true;attributes.int.n == 0");
  cluster.add_claim_pod("p", "c");
  cluster.settle();
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/a/i1", "d.example.com/a/i0"));
}

TEST(Structured, lets_the_next_pod_have_what_is_given_back) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 1);
  for (const char* name : {"one", "two", "three"}) {
    cluster.add_named_claim(name);
    cluster.add_claim_pod(name, name);
  }
  cluster.settle();
  const auto placed = [&] {
    std::vector<std::string> made;
    for (const char* name : {"one", "two", "three"}) {
      if (!cluster.node_of(name).empty()) made.push_back(name);
    }
    return made;
  };
  // Three pods, one instance.
  ASSERT_EQ(placed().size(), 1U);
  EXPECT_THAT(cluster.all_instances(), ElementsAre("d.example.com/a/i0"));
  const std::string first = placed().front();
  cluster.remove(kPodsOf, "default", first);
  cluster.patch(kClassic, "default", first, "{'status':{'allocation':null,'reservedFor':null}}",
                "status");
  cluster.settle(std::chrono::seconds(5));
  EXPECT_THAT(cluster.all_instances(), ElementsAre("d.example.com/a/i0"));
  EXPECT_EQ(cluster.instances(first).size(), 0U);
}

TEST(Structured, works_beside_claims_of_v1_in_one_pod) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_resource_class();
  cluster.add_instances("a", 1);
  cluster.add_instances("b", 1);
  cluster.add_class();
  cluster.add_devices("b", 1);
  cluster.add_claim("device");
  cluster.add_named_claim("named");
  cluster.add_pod_of("p", {"named", "device"});
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "b") << cluster.condition("p");
  EXPECT_THAT(cluster.instances("named"), ElementsAre("d.example.com/b/i0"));
  EXPECT_THAT(cluster.held_devices(), ElementsAre("b/gpu-0"));
  // An instance is no device, and a device no instance.
  cluster.add_claim("more");
  cluster.add_claim_pod("q", "more");
  cluster.add_named_claim("others");
  cluster.add_selecting_claim("r", "true;true");
  cluster.add_claim_pod("r", "r");
  cluster.settle();
  EXPECT_THAT(cluster.condition("q"), HasSubstr("2 cannot allocate all claims."));
  EXPECT_THAT(cluster.condition("r"),
              HasSubstr("2 resourceclaim cannot be allocated for the node (unsuitable)."));
}

TEST(Structured, moves_an_unused_claim_to_a_node_where_the_pod_can_run) {
  NamedCluster cluster;
  cluster.add_named_node("a");
  cluster.add_resource_class();
  cluster.add_instances("a", 1);
  cluster.add_named_claim("c");
  cluster.add_claim_pod("first", "c");
  cluster.settle();
  ASSERT_EQ(cluster.node_of("first"), "a");
  cluster.remove(kPodsOf, "default", "first");
  cluster.patch(kClassic, "default", "c", "{'status':{'reservedFor':null}}", "status");
  cluster.patch(kNodes, "", "a", "{'spec':{'unschedulable':true}}");
  cluster.add_named_node("b");
  cluster.add_instances("b", 1);
  cluster.add_claim_pod("second", "c");
  cluster.settle(std::chrono::seconds(30));
  EXPECT_EQ(cluster.node_of("second"), "b") << cluster.condition("second");
  EXPECT_THAT(cluster.instances("c"), ElementsAre("d.example.com/b/i0"));
  EXPECT_FALSE(cluster.claim("c")["status"]["deallocationRequested"].as_bool());
}

class StructuredRestart : public testing::TestWithParam<std::tuple<int, bool, bool>> {};

TEST_P(StructuredRestart, finishes_what_was_begun) {
  const auto [write, arrives, remote] = GetParam();
  NamedCluster cluster({}, {}, remote);
  cluster.add_resource_class();
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_instances("a", 2);
  cluster.add_instances("b", 2);
  cluster.add_named_claim("shared");
  cluster.add_selecting_claim("own", "true;true");
  cluster.add_named_claim("last");
  cluster.cut->cut_at(write, arrives);
  cluster.add_claim_pod("one", "shared");
  cluster.add_claim_pod("two", "shared");
  cluster.add_claim_pod("three", "own");
  cluster.add_claim_pod("four", "last");
  cluster.settle();
  cluster.stop();
  cluster.start();
  cluster.settle(std::chrono::seconds(30));
  const std::vector<std::string> held = cluster.all_instances();
  EXPECT_EQ(std::set<std::string>(held.begin(), held.end()).size(), held.size());
  EXPECT_EQ(cluster.users("shared").size(), 2U);
  for (const char* pod : {"one", "two"}) {
    EXPECT_NE(cluster.node_of(pod), "") << pod << ": " << cluster.condition(pod);
  }
  // Whoever is left out lacks two instances of one node, or a last one.
  const bool all = !cluster.node_of("three").empty() && !cluster.node_of("four").empty();
  EXPECT_TRUE(all || held.size() <= 3U);
}

class StructuredTwoSchedulers : public testing::TestWithParam<int> {};

TEST_P(StructuredTwoSchedulers, give_every_instance_once) {
  runtime::SimOptions world;
  world.seed = static_cast<std::uint64_t>(GetParam());
  world.shuffle = true;
  NamedCluster cluster({}, world);
  const auto transport = client::make_resource_transport(cluster.api->transport());
  client::Client client(*transport);
  Scheduler other(client, cluster.sim.runtime(), {});
  other.start();
  cluster.settle();
  cluster.add_resource_class();
  for (const char* node : {"a", "b"}) {
    cluster.add_named_node(node);
    cluster.add_instances(node, 2);
  }
  for (int i = 0; i < 6; ++i) {
    cluster.add_named_claim(cat("c", i));
    cluster.add_claim_pod(cat("p", i), cat("c", i));
  }
  cluster.settle(std::chrono::seconds(60));
  EXPECT_THAT(cluster.all_instances(), ElementsAre("d.example.com/a/i0", "d.example.com/a/i1",
                                                   "d.example.com/b/i0", "d.example.com/b/i1"));
  for (int i = 0; i < 6; ++i) {
    const std::vector<std::string> held = cluster.instances(cat("c", i));
    const std::string node = cluster.node_of(cat("p", i));
    EXPECT_EQ(held.empty(), node.empty()) << i;
    if (held.empty()) continue;
    EXPECT_THAT(held[0], StartsWith(cat("d.example.com/", node, "/"))) << i;
  }
  other.stop();
  cluster.sim.run_until_idle();
}

INSTANTIATE_TEST_SUITE_P(Seeds, StructuredTwoSchedulers, testing::Range(1, 9));

INSTANTIATE_TEST_SUITE_P(AtEachWrite, StructuredRestart,
                         testing::Combine(testing::Range(1, 12), testing::Bool(), testing::Bool()));

}  // namespace
}  // namespace dibs::scheduler::test
