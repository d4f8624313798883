// The disruption controller: its counts as functions, and against a whole server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "controllers/disruption_plan.h"
#include "controllers/test_cluster.h"
#include "controllers/workload_objects.h"

namespace dibs::controllers {
namespace {

using test::from_text;
using test::TestCluster;
using testing::Contains;
using testing::HasSubstr;
using testing::SizeIs;

const Gvr kBudgets = {"policy", "v1", "poddisruptionbudgets"};
const Gvr kDefinitions = {"apiextensions.k8s.io", "v1", "customresourcedefinitions"};

// --- functions ---

TEST(DisruptionPlan, demand_follows_the_bound) {
  struct Case {
    const char* spec;
    std::int64_t expected;
    std::int64_t healthy;
  };
  for (const Case& one :
       {Case{"{'minAvailable':2}", 5, 2}, Case{"{'minAvailable':'50%'}", 5, 3},
        Case{"{'maxUnavailable':1}", 5, 4}, Case{"{'maxUnavailable':'30%'}", 5, 3},
        Case{"{'maxUnavailable':9}", 5, 0}, Case{"{'minAvailable':'100%'}", 5, 5},
        Case{"{'minAvailable':0}", 5, 0}}) {
    const auto demand = demand_of(Value::object({{"spec", from_text(one.spec)}}), 5);
    ASSERT_TRUE(demand.ok()) << one.spec;
    EXPECT_EQ(demand->expected, one.expected) << one.spec;
    EXPECT_EQ(demand->healthy, one.healthy) << one.spec;
  }
  EXPECT_EQ(demand_of(from_text("{'spec':{}}"), 5)->expected, 0);
  EXPECT_FALSE(demand_of(from_text("{'spec':{'minAvailable':'half'}}"), 5).ok());
  EXPECT_FALSE(needs_scale(from_text("{'spec':{'minAvailable':1}}")));
  EXPECT_TRUE(needs_scale(from_text("{'spec':{'minAvailable':'1%'}}")));
  EXPECT_TRUE(needs_scale(from_text("{'spec':{'maxUnavailable':1}}")));
}

TEST(DisruptionPlan, pods_that_were_to_go_come_back_after_a_while) {
  const Time now = *parse_rfc3339("2026-01-01T00:10:00Z");
  const std::vector<Value> pods = {
      from_text("{'metadata':{'name':'soon'}}"), from_text("{'metadata':{'name':'stayed'}}"),
      from_text("{'metadata':{'name':'going','deletionTimestamp':'2026-01-01T00:09:59Z'}}"),
      from_text("{'metadata':{'name':'other'}}")};
  const Value budget = from_text(
      "{'status':{'disruptedPods':{'soon':'2026-01-01T00:09:00Z','stayed':'2026-01-01T00:07:00Z',"
      "'going':'2026-01-01T00:09:58Z','gone':'2026-01-01T00:09:58Z'}}}");

  const Disrupted disrupted = still_disrupted(budget, pods, now);

  EXPECT_EQ(disrupted.pods, from_text("{'soon':'2026-01-01T00:09:00Z'}"));
  ASSERT_TRUE(disrupted.recheck);
  EXPECT_EQ(std::chrono::duration_cast<std::chrono::seconds>(*disrupted.recheck).count(), 60);
  ASSERT_THAT(disrupted.stayed, SizeIs(1));
  EXPECT_EQ(name_of(disrupted.stayed[0]), "stayed");
}

TEST(DisruptionPlan, status_allows_nothing_without_pods) {
  const Time now = *parse_rfc3339("2026-01-01T00:10:00Z");
  const Value budget = from_text("{'metadata':{'generation':2},'spec':{'minAvailable':0}}");

  const Value none = budget_status(budget, {0, 0}, 0, Value::object(), now);
  const Value some = budget_status(budget, {3, 1}, 3, Value::object(), now);

  EXPECT_EQ(none["disruptionsAllowed"].as_int(), 0);
  EXPECT_EQ(none["conditions"][0]["reason"].as_string(), "InsufficientPods");
  EXPECT_EQ(some["disruptionsAllowed"].as_int(), 2);
  EXPECT_EQ(some["observedGeneration"].as_int(), 2);
  EXPECT_EQ(some["conditions"][0]["status"].as_string(), "True");
  EXPECT_EQ(some["conditions"][0]["reason"].as_string(), "SufficientPods");

  // Its time stays while its status does.
  Value counted = budget;
  counted.set("status", some);
  const Value later =
      budget_status(counted, {3, 2}, 3, Value::object(), now + std::chrono::hours(1));
  EXPECT_EQ(later["conditions"][0]["lastTransitionTime"].as_string(), "2026-01-01T00:10:00Z");
}

TEST(DisruptionPlan, selector_is_told_as_go_would) {
  EXPECT_EQ(selector_words(from_text(
                "{'matchLabels':{'b':'2','a':'1'},'matchExpressions':[{'key':'x','operator':'In',"
                "'values':['y','z']}]}")),
            "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:"
            "[]LabelSelectorRequirement{LabelSelectorRequirement{Key:x,Operator:In,Values:[y z],},"
            "},}");
}

// --- against a server ---

struct DisruptionTest : testing::Test {
  TestCluster cluster;

  DisruptionTest() { cluster.add_namespace("a"); }

  void add_budget(const std::string& bound, const std::string& name = "b") {
    cluster.create(kBudgets, "a",
                   cat("{'metadata':{'name':'", name, "'},'spec':{", bound,
                       ",'selector':{'matchLabels':{'app':'web'}}}}"));
    cluster.settle();
  }
  Value status(const std::string& name = "b") { return cluster.get(kBudgets, "a", name)["status"]; }
  /// "allowed healthy/desired of expected"
  std::string counts() {
    const Value now = status();
    return cat(now["disruptionsAllowed"].as_int(), " ", now["currentHealthy"].as_int(), "/",
               now["desiredHealthy"].as_int(), " of ", now["expectedPods"].as_int());
  }
  std::string allowed() {
    const Value condition = condition_in(status()["conditions"], "DisruptionAllowed");
    return cat(condition["status"].as_string(), " ", condition["reason"].as_string());
  }
  void add_deployment(int replicas) {
    cluster.create(kDeploymentResource, "a",
                   cat("{'metadata':{'name':'web'},'spec':{'replicas':", replicas,
                       ",'selector':{'matchLabels':{'app':'web'}},'template':{'metadata':{"
                       "'labels':{'app':'web'}},'spec':{'containers':[{'name':'main','image':"
                       "'x'}]}}}}"));
    cluster.settle();
  }
  void add_pod(const std::string& name, const std::string& more = "") {
    cluster.create(kPods, "a",
                   cat("{'metadata':{'name':'", name, "','labels':{'app':'web'}", more,
                       "},'spec':{'containers':[{'name':'main','image':'x'}]}}"));
  }
  void make_ready(const std::string& name) {
    cluster.patch(kPods, "a", name,
                  "{'status':{'phase':'Running','conditions':[{'type':'Ready','status':'True'}]}}",
                  "status");
  }
  void all_ready() {
    for (const std::string& name : cluster.names(kPods, "a")) make_ready(name);
    cluster.settle();
  }
  Result<Value> evict(const std::string& name) {
    return cluster.api->call(client::make_request(
        "POST", cat("/api/v1/namespaces/a/pods/", name, "/eviction"),
        from_text(cat("{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'", name,
                      "','namespace':'a'}}"))));
  }
};

TEST_F(DisruptionTest, counts_pods_that_are_there) {
  add_budget("'minAvailable':1");
  EXPECT_EQ(counts(), "0 0/1 of 0");
  EXPECT_EQ(status()["observedGeneration"].as_int(), 1);
  EXPECT_EQ(allowed(), "False InsufficientPods");
  EXPECT_THAT(cluster.events("a", "b"), Contains("Normal NoPods No matching pods found"));

  add_pod("p");
  add_pod("q");
  cluster.settle();
  EXPECT_EQ(counts(), "0 0/1 of 2");
  all_ready();
  EXPECT_EQ(counts(), "1 2/1 of 2");
  EXPECT_EQ(allowed(), "True SufficientPods");

  cluster.patch(kPods, "a", "q", "{'metadata':{'labels':{'app':'other'}}}");
  cluster.settle();
  EXPECT_EQ(counts(), "0 1/1 of 1") << "a pod that lost its labels counts no more";

  cluster.patch(kBudgets, "a", "b", "{'spec':{'minAvailable':0}}");
  cluster.settle();
  EXPECT_EQ(counts(), "1 1/0 of 1");
  EXPECT_EQ(status()["observedGeneration"].as_int(), 2);
}

TEST_F(DisruptionTest, evictions_go_as_far_as_the_budget) {
  add_deployment(3);
  add_budget("'maxUnavailable':1");
  EXPECT_EQ(counts(), "0 0/2 of 3");
  all_ready();
  EXPECT_EQ(counts(), "1 3/2 of 3");

  const auto names = cluster.names(kPods, "a");
  EXPECT_TRUE(evict(names[0]).ok());
  auto refused = evict(names[1]);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::too_many_requests);

  // The one in its place is not ready yet, then it is.
  cluster.settle();
  EXPECT_EQ(counts(), "0 2/2 of 3");
  EXPECT_TRUE(status()["disruptedPods"].empty());
  EXPECT_FALSE(evict(names[1]).ok());
  all_ready();
  EXPECT_EQ(counts(), "1 3/2 of 3");
  EXPECT_TRUE(evict(names[1]).ok());
}

TEST_F(DisruptionTest, percentages_are_of_the_scale_of_owners) {
  add_deployment(5);
  add_budget("'minAvailable':'50%'");
  all_ready();
  EXPECT_EQ(counts(), "2 5/3 of 5");

  cluster.patch(kDeploymentResource, "a", "web", "{'spec':{'replicas':8}}");
  cluster.settle();
  EXPECT_EQ(counts(), "1 5/4 of 8");
}

TEST_F(DisruptionTest, asks_the_scale_of_every_built_in_owner) {
  add_budget("'maxUnavailable':'20%'");
  struct Owner {
    Gvr gvr;
    const char* selector;
  };
  const Owner owners[] = {{kReplicaSetResource, "{'matchLabels':{'app':'web'}}"},
                          {kStatefulSetResource, "{'matchLabels':{'app':'web'}}"},
                          {kReplicationControllerResource, "{'app':'web'}"}};
  for (const Owner& owner : owners) {
    const std::string plural = owner.gvr.resource;
    const bool stateful = plural == "statefulsets";
    const std::string more =
        stateful ? ",'serviceName':'web','podManagementPolicy':'Parallel'" : "";
    cluster.create(
        owner.gvr, "a",
        cat("{'metadata':{'name':'web'},'spec':{'replicas':4,'selector':", owner.selector, more,
            ",'template':{'metadata':{'labels':{'app':'web'}},'spec':{"
            "'terminationGracePeriodSeconds':0,'containers':[{'name':'main','image':"
            "'x'}]}}}}"));
    cluster.settle();
    all_ready();
    EXPECT_EQ(counts(), "1 4/3 of 4") << plural;
    cluster.remove(owner.gvr, "a", "web", "Foreground");
    cluster.settle(std::chrono::seconds(5));
    ASSERT_THAT(cluster.names(kPods, "a"), SizeIs(0)) << plural;
  }
}

TEST_F(DisruptionTest, asks_the_scale_of_custom_kinds) {
  cluster.create(
      kDefinitions, "",
      "{'metadata':{'name':'packs.example.com'},'spec':{'group':'example.com','scope':"
      "'Namespaced','names':{'plural':'packs','kind':'Pack'},'versions':[{'name':'v1','served':"
      "true,'storage':true,'schema':{'openAPIV3Schema':{'type':'object','properties':{'spec':{"
      "'type':'object','properties':{'size':{'type':'integer'}}},'status':{'type':'object',"
      "'properties':{'size':{'type':'integer'}}}}}},'subresources':{'scale':{'specReplicasPath':"
      "'.spec.size','statusReplicasPath':'.status.size'}}}]}}");
  cluster.settle();
  const Value pack =
      cluster.create({"example.com", "v1", "packs"}, "a",
                     "{'apiVersion':'example.com/"
                     "v1','kind':'Pack','metadata':{'name':'wolves'},'spec':{'size':10}}");
  add_pod("p", cat(",'ownerReferences':[{'apiVersion':'example.com/v1','kind':'Pack','name':"
                   "'wolves','controller':true,'uid':'",
                   uid_of(pack), "'}]"));
  make_ready("p");
  add_budget("'maxUnavailable':'90%'");

  EXPECT_EQ(counts(), "0 1/1 of 10");
}

TEST_F(DisruptionTest, nothing_is_allowed_while_the_count_fails) {
  const Value map = cluster.create(test::kConfigMaps, "a", "{'metadata':{'name':'m'}}");
  add_pod("p", cat(",'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'m',"
                   "'controller':true,'uid':'",
                   uid_of(map), "'}]"));
  make_ready("p");
  add_budget("'maxUnavailable':1");

  EXPECT_EQ(allowed(), "False SyncFailed");
  EXPECT_EQ(condition_in(status()["conditions"], "DisruptionAllowed")["message"].as_string(),
            "configmaps does not implement the scale subresource");
  EXPECT_THAT(cluster.events("a", "b"),
              Contains("Warning CalculateExpectedPodCountFailed Failed to calculate the number of "
                       "expected pods: configmaps does not implement the scale subresource"));
}

TEST_F(DisruptionTest, pods_of_nobody_are_told) {
  add_pod("p");
  make_ready("p");
  add_budget("'maxUnavailable':1");

  EXPECT_EQ(counts(), "0 1/0 of 0");
  EXPECT_THAT(cluster.events("a", "b"), Contains(HasSubstr("Warning UnmanagedPods")));
}

TEST_F(DisruptionTest, a_pod_that_stays_counts_again) {
  add_pod("p");
  make_ready("p");
  add_budget("'minAvailable':0");
  ASSERT_EQ(counts(), "1 1/0 of 1");
  const std::string since = format_rfc3339(cluster.sim.now());
  // As an eviction does that died before the deletion.
  cluster.patch(kBudgets, "a", "b",
                cat("{'status':{'disruptionsAllowed':0,'disruptedPods':{'p':'", since, "'}}}"),
                "status");
  cluster.patch(kPods, "a", "p",
                cat("{'status':{'conditions':[{'type':'Ready','status':'True'},{'type':"
                    "'DisruptionTarget','status':'True','reason':'EvictionByEvictionAPI',"
                    "'lastTransitionTime':'",
                    since, "'}]}}"),
                "status");
  cluster.settle();
  EXPECT_EQ(counts(), "0 0/0 of 1");

  cluster.settle(std::chrono::minutes(1));
  EXPECT_EQ(counts(), "0 0/0 of 1");
  cluster.settle(std::chrono::seconds(65));

  EXPECT_EQ(counts(), "1 1/0 of 1");
  EXPECT_TRUE(status()["disruptedPods"].empty());
  EXPECT_THAT(
      cluster.events("a", "p"),
      Contains("Warning NotDeleted Pod was expected by PDB a/b to be deleted but it wasn't"));
  const Value condition =
      condition_in(cluster.get(kPods, "a", "p")["status"]["conditions"], "DisruptionTarget");
  EXPECT_EQ(condition["status"].as_string(), "False");
  EXPECT_FALSE(condition.contains("reason"));
}

TEST_F(DisruptionTest, a_pod_of_two_budgets_is_told) {
  add_budget("'minAvailable':1");
  add_budget("'minAvailable':0", "c");
  add_pod("p");
  cluster.settle();

  EXPECT_THAT(cluster.events("a", "p"),
              Contains(HasSubstr("Warning MultiplePodDisruptionBudgets")));
  EXPECT_EQ(status("c")["expectedPods"].as_int(), 1);
}

}  // namespace
}  // namespace dibs::controllers
