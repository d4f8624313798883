// Evictions, and what the budgets of pods say to them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "server/subresources.h"
#include "server/test_support.h"

namespace dibs::server {
namespace {

using test::condition_of;
using test::from_text;
using test::kPods;
using test::Reply;
using test::TestServer;
using testing::HasSubstr;

constexpr const char* kBudgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

class EvictionTest : public testing::Test {
 protected:
  EvictionTest() { api.add_account("default"); }

  Reply evict(std::string_view name, std::string_view options = "{}", std::string_view query = "") {
    Value body = from_text("{'apiVersion':'policy/v1','kind':'Eviction'}");
    body.mut("metadata").set("name", name);
    if (Value given = from_text(options); !given.empty())
      body.set("deleteOptions", std::move(given));
    return api.post(cat(kPods, "/", name, "/eviction", query), body);
  }
  /// A budget for the pods with a=b, as a controller has last counted it.
  void set_budget(std::string_view status, std::string_view name = "b",
                  std::string_view more = "{}") {
    Value budget = from_text(
        "{'apiVersion':'policy/v1','kind':'PodDisruptionBudget','spec':{'minAvailable':1,"
        "'selector':{'matchLabels':{'a':'b'}}}}");
    budget.mut("metadata").set("name", name);
    const Value members = from_text(more);
    for (const auto& [key, value] : members.members()) budget.mut("spec").set(key, value);
    Reply made = api.post(kBudgets, budget);
    EXPECT_EQ(made.status, 201) << made.text;
    made.body.set("status", from_text(status));
    Reply counted = api.put(cat(kBudgets, "/", name, "/status"), made.body);
    EXPECT_EQ(counted.status, 200) << counted.text;
  }
  Value budget() { return api.get(cat(kBudgets, "/b")).body; }
  Value pod(std::string_view name) { return api.get(cat(kPods, "/", name)).body; }
  bool leaves(std::string_view name) {
    Reply reply = api.get(cat(kPods, "/", name));
    return reply.status == 404 || reply.body["metadata"].contains("deletionTimestamp");
  }

  TestServer api;
};

constexpr const char* kOneAllowed =
    "{'observedGeneration':1,'disruptionsAllowed':1,'currentHealthy':2,'desiredHealthy':1,'"
    "expectedPods':2}";
constexpr const char* kNoneAllowed =
    "{'observedGeneration':1,'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':1,'"
    "expectedPods':1}";

TEST_F(EvictionTest, deletes_a_pod_without_a_budget) {
  api.run_pod("p");

  Reply evicted = evict("p");

  EXPECT_EQ(evicted.status, 201) << evicted.text;
  EXPECT_EQ(evicted.body["status"].as_string(), "Success");
  EXPECT_TRUE(leaves("p"));
  EXPECT_EQ(condition_of(pod("p"), "DisruptionTarget")["reason"].as_string(),
            "EvictionByEvictionAPI");
}

TEST_F(EvictionTest, of_no_pod_is_not_found) { EXPECT_EQ(evict("none").status, 404); }

TEST_F(EvictionTest, must_name_its_pod) {
  api.run_pod("p");

  Reply evicted =
      api.post(cat(kPods, "/p/eviction"),
               from_text("{'apiVersion':'policy/v1','kind':'Eviction','metadata':{'name':'q'}}"));

  Reply unnamed = api.post(cat(kPods, "/p/eviction"),
                           from_text("{'apiVersion':'policy/v1','kind':'Eviction'}"));

  EXPECT_EQ(evicted.status, 400);
  EXPECT_EQ(unnamed.status, 400);
  EXPECT_EQ(unnamed.message(), "name in URL does not match name in Eviction object");
  EXPECT_FALSE(leaves("p"));
}

TEST_F(EvictionTest, spends_what_the_budget_allows) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(kOneAllowed);

  Reply evicted = evict("p");

  EXPECT_EQ(evicted.status, 201) << evicted.text;
  EXPECT_TRUE(leaves("p"));
  EXPECT_EQ(budget()["status"]["disruptionsAllowed"].as_int(), 0);
  EXPECT_EQ(budget()["status"]["disruptedPods"]["p"].as_string(), format_rfc3339(api.sim.now()));
}

TEST_F(EvictionTest, is_refused_when_nothing_is_left) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(kNoneAllowed);

  Reply refused = evict("p");

  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.reason(), "TooManyRequests");
  EXPECT_EQ(refused.message(), "Cannot evict pod as it would violate the pod's disruption budget.");
  EXPECT_EQ(refused.body["details"]["causes"][0]["reason"].as_string(), "DisruptionBudget");
  EXPECT_EQ(refused.body["details"]["causes"][0]["message"].as_string(),
            "The disruption budget b needs 1 healthy pods and has 1 currently");
  EXPECT_FALSE(leaves("p"));
}

TEST_F(EvictionTest, waits_for_a_budget_that_has_not_been_counted) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(
      "{'observedGeneration':0,'disruptionsAllowed':1,'currentHealthy':2,'desiredHealthy':1,'"
      "expectedPods':2}");

  Reply refused = evict("p");

  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.headers.get("Retry-After"), "10");
  EXPECT_THAT(refused.body["details"]["causes"][0]["message"].str(),
              HasSubstr("is still being processed by the server."));
}

TEST_F(EvictionTest, of_a_pod_with_two_budgets_is_an_error) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(kOneAllowed);
  set_budget(kOneAllowed, "c");

  Reply refused = evict("p");

  EXPECT_EQ(refused.status, 500);
  EXPECT_THAT(refused.message(), HasSubstr("This pod has more than one PodDisruptionBudget"));
  EXPECT_FALSE(leaves("p"));
}

TEST_F(EvictionTest, of_a_pod_that_does_not_run_asks_no_budget) {
  set_budget(kNoneAllowed);
  for (const char* phase : {"Pending", "Succeeded", "Failed"}) {
    const std::string name = to_lower(phase);
    api.run_pod(name, "{'a':'b'}");
    EXPECT_EQ(api.patch(cat(kPods, "/", name, "/status"), "merge",
                        cat("{'status':{'phase':'", phase, "'}}"))
                  .status,
              200);

    EXPECT_EQ(evict(name).status, 201) << phase;

    EXPECT_TRUE(leaves(name)) << phase;
  }
}

TEST_F(EvictionTest, of_an_unready_pod_goes_by_the_policy) {
  auto unready = [&](std::string_view name) {
    api.run_pod(name, "{'a':'b'}");
    EXPECT_EQ(api.patch(cat(kPods, "/", name, "/status"), "merge",
                        "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}")
                  .status,
              200);
  };
  unready("p");
  set_budget(
      "{'observedGeneration':1,'disruptionsAllowed':0,'currentHealthy':0,'desiredHealthy':1,'"
      "expectedPods':1}");

  EXPECT_EQ(evict("p").status, 429);
  EXPECT_EQ(api.remove(cat(kBudgets, "/b")).status, 200);
  set_budget(
      "{'observedGeneration':1,'disruptionsAllowed':0,'currentHealthy':0,'desiredHealthy':1,'"
      "expectedPods':1}",
      "b", "{'unhealthyPodEvictionPolicy':'AlwaysAllow'}");
  EXPECT_EQ(evict("p").status, 201);
}

TEST_F(EvictionTest, of_an_unready_pod_spends_nothing_while_enough_are_healthy) {
  api.run_pod("p", "{'a':'b'}");
  api.patch(cat(kPods, "/p/status"), "merge",
            "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
  set_budget(kNoneAllowed);

  EXPECT_EQ(evict("p").status, 201);

  EXPECT_EQ(budget()["status"]["disruptionsAllowed"].as_int(), 0);
  EXPECT_FALSE(budget()["status"].contains("disruptedPods"));
}

TEST_F(EvictionTest, of_an_unready_pod_needs_no_new_count) {
  api.run_pod("p", "{'a':'b'}");
  api.patch(cat(kPods, "/p/status"), "merge",
            "{'status':{'conditions':[{'type':'Ready','status':'False'}]}}");
  set_budget(
      "{'observedGeneration':0,'disruptionsAllowed':0,'currentHealthy':1,'desiredHealthy':1,'"
      "expectedPods':1}");

  EXPECT_EQ(evict("p").status, 201);
}

TEST_F(EvictionTest, says_why_a_budget_allows_nothing) {
  api.run_pod("p", "{'a':'b'}");
  auto told = [&](std::string_view healthy, std::string_view reason, std::string_view message) {
    api.remove(cat(kBudgets, "/b"));
    set_budget(cat("{'observedGeneration':1,'disruptionsAllowed':0,'currentHealthy':", healthy,
                   ",'desiredHealthy':1,'expectedPods':2,'conditions':[{'type':"
                   "'DisruptionAllowed','status':'False','reason':'",
                   reason, "','message':'", message,
                   "','lastTransitionTime':'2026-01-01T00:00:00Z'}]}"));
    Reply refused = evict("p");
    EXPECT_EQ(refused.status, 429) << refused.text;
    return refused.body["details"]["causes"][0]["message"].str();
  };

  EXPECT_EQ(told("1", "SyncFailed", "found no controllers"),
            "The disruption budget b does not allow evicting pods currently because it failed "
            "sync: found no controllers");
  EXPECT_EQ(told("1", "InsufficientPods", ""),
            "The disruption budget b needs 1 healthy pods and has 1 currently");
  EXPECT_EQ(told("2", "Other", "not today"),
            "The disruption budget b does not allow evicting pods currently (Other): not today");
  EXPECT_EQ(told("2", "InsufficientPods", ""),
            "The disruption budget b does not allow evicting pods currently");
}

TEST_F(EvictionTest, keeps_to_the_version_it_is_given) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(kOneAllowed);
  const std::string version = pod("p")["metadata"]["resourceVersion"].str();

  Reply old = evict("p", "{'preconditions':{'resourceVersion':'1'}}");

  EXPECT_EQ(old.status, 409);
  EXPECT_TRUE(condition_of(pod("p"), "DisruptionTarget").is_null());
  EXPECT_FALSE(leaves("p"));

  api.remove(cat(kBudgets, "/b"));
  EXPECT_EQ(evict("p", cat("{'preconditions':{'resourceVersion':'", version, "'}}")).status, 201);
  EXPECT_TRUE(leaves("p"));
}

TEST_F(EvictionTest, tells_a_pod_that_waits_for_its_node_too) {
  api.run_pod("p");
  api.patch(cat(kPods, "/p/status"), "merge", "{'status':{'phase':'Pending'}}");

  EXPECT_EQ(evict("p").status, 201);

  EXPECT_EQ(condition_of(pod("p"), "DisruptionTarget")["status"].as_string(), "True");
}

TEST_F(EvictionTest, is_refused_while_too_many_are_not_confirmed) {
  api.run_pod("p", "{'a':'b'}");
  std::string many;
  for (int i = 0; i < 2001; ++i)
    append(many, many.empty() ? "" : ",", "'p", i, "':'2026-01-01T00:00:00Z'");
  set_budget(
      cat("{'observedGeneration':1,'disruptionsAllowed':1,'currentHealthy':2,"
          "'desiredHealthy':1,'expectedPods':2,'disruptedPods':{",
          many, "}}"));

  Reply refused = evict("p");

  EXPECT_EQ(refused.status, 403) << refused.text;
  EXPECT_THAT(refused.message(), HasSubstr("DisruptedPods map too big"));
  EXPECT_FALSE(leaves("p"));
}

TEST_F(EvictionTest, hands_its_options_to_the_deletion) {
  api.run_pod("p");

  Reply conflict = evict("p", "{'preconditions':{'uid':'other'}}");
  EXPECT_TRUE(condition_of(pod("p"), "DisruptionTarget").is_null());
  Reply evicted = evict("p", "{'gracePeriodSeconds':7}");

  EXPECT_EQ(conflict.status, 409);
  EXPECT_EQ(evicted.status, 201);
  EXPECT_EQ(pod("p")["metadata"]["deletionGracePeriodSeconds"].as_int(), 7);
}

TEST_F(EvictionTest, as_a_dry_run_changes_nothing) {
  api.run_pod("p", "{'a':'b'}");
  set_budget(kOneAllowed);
  const auto before = api.store->revision();

  EXPECT_EQ(evict("p", "{}", "?dryRun=All").status, 201);

  EXPECT_EQ(api.store->revision(), before);
}

}  // namespace
}  // namespace dibs::server
