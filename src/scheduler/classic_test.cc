// Claims of v1alpha2 that drivers allocate: every step of the talk, in the words of each release.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/classic_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kWaits = "Unschedulable: waiting for resource driver";
constexpr const char* kAsks =
    "Unschedulable: 0/1 nodes are available: 1 waiting for resource driver to provide information.";
constexpr const char* kEarlyWaits =
    "SchedulerError: running Reserve plugin \"DynamicResources\": waiting for resource driver to "
    "allocate resource";
constexpr const char* kEarlyAsks =
    "SchedulerError: running Reserve plugin \"DynamicResources\": waiting for resource driver to "
    "provide information";

std::string not_helpful(int nodes) {
  return cat("preemption: 0/", nodes, " nodes are available: ", nodes,
             " Preemption is not helpful for scheduling.");
}

/// The same at each release whose words differ: 1.27, 1.30 and the newest.
class Classic : public testing::TestWithParam<int> {
 protected:
  Classic() : release(GetParam()), cluster(release) {
    for (const char* node : {"a", "b", "c"}) cluster.add_named_node(node);
    cluster.add_resource_class("cats");
  }
  bool early() const { return release == 27; }
  bool classic() const { return release <= 30; }
  std::string waits() const { return early() ? kEarlyWaits : kWaits; }
  /// After an attempt that found nothing new to propose.
  std::string still_waits() const { return early() ? kEarlyWaits : kAsks; }
  std::string asks() const { return early() ? kEarlyAsks : kAsks; }
  /// "0/3 nodes are available: REASONS. …" with all that the release adds.
  std::string refused(const std::string& reasons, const std::string& freed) const {
    return cat("Unschedulable: 0/3 nodes are available: ", reasons, ". ",
               classic() ? freed + ", " : "", not_helpful(3), early() ? "." : "");
  }
  std::string rejected(const std::string& reason) const {
    return refused(reason, "no new claims to deallocate");
  }

  const int release;
  ClassicCluster cluster;
};

constexpr const char* kPrefersB =
    ",'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':100,"
    "'preference':{'matchExpressions':[{'key':'kubernetes.io/hostname','operator':'In','values':["
    "'b']}]}}]}}";
constexpr const char* kOnlyB = ",'nodeSelector':{'kubernetes.io/hostname':'b'}";

TEST_P(Classic, goes_from_proposal_to_binding) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kPrefersB);
  cluster.settle();

  EXPECT_EQ(cluster.proposed("p"), "b|a,b,c");
  EXPECT_EQ(cluster.condition("p"), waits());
  const Value owner = cluster.context("p")["metadata"]["ownerReferences"][0];
  EXPECT_EQ(owner["kind"].as_string(), "Pod");
  EXPECT_EQ(owner["blockOwnerDeletion"].as_bool(), !early());

  cluster.answer("p", "{'name':'gpu'}");
  EXPECT_EQ(cluster.condition("p"), still_waits());
  EXPECT_EQ(cluster.node_of("p"), "");

  cluster.allocate("gpu", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
  EXPECT_THAT(cluster.users_of("gpu"), ElementsAre("p"));
  EXPECT_EQ(cluster.proposed("p"), "none");
  EXPECT_THAT(cluster.events("p"),
              Contains("Normal Scheduled Successfully assigned default/p to b"));
}

TEST_P(Classic, keeps_what_the_driver_reserved) {
  cluster.add_classic_claim("gpu");
  const Value pod = cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  EXPECT_EQ(cluster.proposed("p"), "b|b");

  const int before = cluster.cut->writes();
  cluster.allocate("gpu", "b", false,
                   cat(",'reservedFor':[{'resource':'pods','name':'p','uid':'",
                       pod["metadata"]["uid"].as_string(), "'}]"));

  EXPECT_EQ(cluster.node_of("p"), "b");
  EXPECT_THAT(cluster.users_of("gpu"), ElementsAre("p"));
  EXPECT_EQ(cluster.cut->writes() - before, 2);  // binding, end of the context
}

TEST_P(Classic, takes_another_node_when_the_driver_refuses) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kPrefersB);
  cluster.settle();

  cluster.answer("p", "{'name':'gpu','unsuitableNodes':['b']}");
  const std::string next = Proposal::read(cluster.context("p")).selected_node;
  EXPECT_THAT(next, testing::AnyOf("a", "c"));
  EXPECT_THAT(cluster.proposed("p"), HasSubstr("|a,b,c"));
  EXPECT_EQ(cluster.condition("p"), waits());

  cluster.answer("p", "{'name':'gpu','unsuitableNodes':['a','b','c']}");
  EXPECT_EQ(cluster.condition("p"),
            refused("3 resourceclaim cannot be allocated for the node (unsuitable)",
                    "still not schedulable"));
  EXPECT_EQ(Proposal::read(cluster.context("p")).selected_node, next);

  // One is free again.
  cluster.answer("p", "{'name':'gpu','unsuitableNodes':['a','c']}");
  EXPECT_EQ(cluster.proposed("p"), "b|a,b,c");
  cluster.allocate("gpu", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
}

TEST_P(Classic, selects_when_the_drivers_of_all_claims_have_answered) {
  cluster.add_classic_claim("one");
  cluster.add_classic_claim("two");
  cluster.add_classic_pod("p", {"one", "two"});
  cluster.settle();
  EXPECT_EQ(cluster.proposed("p"), "|a,b,c");
  EXPECT_EQ(cluster.condition("p"), asks());

  cluster.answer("p", "{'name':'one','unsuitableNodes':['a']}");
  EXPECT_EQ(cluster.proposed("p"), "|a,b,c");
  EXPECT_EQ(cluster.condition("p"), asks());

  cluster.answer("p",
                 "{'name':'one','unsuitableNodes':['a']},{'name':'two','unsuitableNodes':['c']}");
  EXPECT_EQ(cluster.proposed("p"), "b|a,b,c");
  EXPECT_EQ(cluster.condition("p"), waits());

  cluster.allocate("one", "b");
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_EQ(cluster.proposed("p"), "b|a,b,c");
  cluster.allocate("two", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
  EXPECT_EQ(cluster.proposed("p"), "none");
}

TEST_P(Classic, waits_for_an_immediate_claim_and_goes_where_it_is) {
  cluster.add_classic_claim("gpu", "cats", "Immediate");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), rejected("unallocated immediate resourceclaim"));
  EXPECT_EQ(cluster.proposed("p"), "none");

  cluster.allocate("gpu", "c");
  EXPECT_EQ(cluster.node_of("p"), "c");
  EXPECT_EQ(cluster.proposed("p"), "none");
}

TEST_P(Classic, an_immediate_claim_elsewhere_is_not_deallocated) {
  cluster.add_classic_claim("gpu", "cats", "Immediate");
  cluster.allocate("gpu", "a");
  cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            refused("1 resourceclaim not available on the node, 2 node(s) didn't match Pod's node "
                    "affinity/selector",
                    "still not schedulable"));
  EXPECT_FALSE(cluster.classic_claim("gpu")["status"]["deallocationRequested"].as_bool());
}

TEST_P(Classic, an_exclusive_claim_in_use_is_waited_for) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("first", {"gpu"});
  cluster.settle();
  cluster.allocate("gpu", "a");
  ASSERT_EQ(cluster.node_of("first"), "a");

  cluster.add_classic_pod("second", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.condition("second"), rejected("resourceclaim in use"));
  EXPECT_THAT(cluster.users_of("gpu"), ElementsAre("first"));

  cluster.patch(kClassicClaimsOf, "default", "gpu", "{'status':{'reservedFor':null}}", "status");
  cluster.settle();
  EXPECT_EQ(cluster.node_of("second"), "a");
  EXPECT_THAT(cluster.users_of("gpu"), ElementsAre("second"));
}

TEST_P(Classic, a_shareable_claim_is_reserved_for_all_in_the_order_of_the_release) {
  cluster.add_classic_claim("gpu");
  cluster.allocate("gpu", "a", true);
  for (const char* pod : {"first", "second"}) {
    cluster.add_classic_pod(pod, {"gpu"});
    cluster.settle();
    EXPECT_EQ(cluster.node_of(pod), "a");
  }
  EXPECT_THAT(cluster.users_of("gpu"),
              release == 30 ? ElementsAre("second", "first") : ElementsAre("first", "second"));

  cluster.add_classic_pod("third", {"gpu"}, kOnlyB);
  cluster.settle();
  EXPECT_EQ(cluster.condition("third"),
            refused("1 resourceclaim not available on the node, 2 node(s) didn't match Pod's node "
                    "affinity/selector",
                    "still not schedulable"));
}

TEST_P(Classic, a_claim_on_the_wrong_node_is_deallocated_and_asked_for_again) {
  cluster.add_classic_claim("gpu");
  cluster.allocate("gpu", "a");
  cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  EXPECT_TRUE(cluster.classic_claim("gpu")["status"]["deallocationRequested"].as_bool());
  EXPECT_EQ(cluster.proposed("p"), "none");
  EXPECT_EQ(cluster.condition("p"), rejected("resourceclaim must be reallocated"));
  const std::string reasons =
      "0/3 nodes are available: 1 resourceclaim not available on the node, 2 node(s) didn't match "
      "Pod's node affinity/selector.";
  EXPECT_THAT(
      cluster.events("p"),
      Contains(
          cat("Warning FailedScheduling ", reasons,
              early() ? "" : cat(" deallocation of ResourceClaim completed, ", not_helpful(3)))));

  cluster.deallocate("gpu");
  EXPECT_EQ(cluster.proposed("p"), "b|b");
  EXPECT_EQ(cluster.condition("p"), waits());
  cluster.allocate("gpu", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
}

TEST_P(Classic, a_selection_is_taken_back_before_a_claim_is_deallocated) {
  cluster.add_classic_claim("one");
  cluster.add_classic_claim("two");
  const Value pod = cluster.add_classic_pod("p", {"one", "two"});
  cluster.settle();
  cluster.answer("p", "{'name':'one'},{'name':'two','unsuitableNodes':['b','c']}");
  ASSERT_EQ(cluster.proposed("p"), "a|a,b,c");
  cluster.allocate("one", "a", false,
                   cat(",'reservedFor':[{'resource':'pods','name':'p','uid':'",
                       pod["metadata"]["uid"].as_string(), "'}]"));

  // The other driver has lost what it had there.
  cluster.answer("p", "{'name':'one'},{'name':'two','unsuitableNodes':['a','c']}");
  EXPECT_TRUE(cluster.classic_claim("one")["status"]["deallocationRequested"].as_bool());
  EXPECT_THAT(cluster.users_of("one"), IsEmpty());
  EXPECT_EQ(cluster.proposed("p"), "|a,b,c");

  cluster.deallocate("one");
  EXPECT_EQ(cluster.proposed("p"), "b|a,b,c");
  cluster.allocate("one", "b");
  cluster.allocate("two", "b");
  EXPECT_EQ(cluster.node_of("p"), "b");
}

TEST_P(Classic, the_class_says_which_nodes_come_into_question) {
  cluster.add_resource_class("few",
                             ",'suitableNodes':{'nodeSelectorTerms':[{'matchExpressions':[{'key':"
                             "'cards','operator':'Exists'}]}]}");
  cluster.add_classic_claim("gpu", "few");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            refused("3 excluded by resource class node filter", "still not schedulable"));
  EXPECT_EQ(cluster.proposed("p"), "none");

  cluster.patch(kNodes, "", "c", "{'metadata':{'labels':{'cards':'1'}}}");
  cluster.settle();
  EXPECT_EQ(cluster.proposed("p"), "c|c");

  // An allocated claim is no matter of the class any more.
  cluster.patch(kResourceClasses, "", "few",
                "{'suitableNodes':{'nodeSelectorTerms':[{"
                "'matchExpressions':[{'key':'none','operator':'Exists'}]}]}}");
  cluster.allocate("gpu", "c");
  EXPECT_EQ(cluster.node_of("p"), "c");
}

TEST_P(Classic, a_change_of_the_class_wakes) {
  cluster.add_classic_claim("gpu", "later");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            early()
                ? "SchedulerError: running \"DynamicResources\" filter plugin: look up resource "
                  "class: resourceclass.resource.k8s.io \"later\" not found"
                : rejected("resource class later does not exist"));

  cluster.add_resource_class("later");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), waits());
  EXPECT_THAT(cluster.proposed("p"), HasSubstr("|a,b,c"));
}

TEST_P(Classic, a_claim_that_is_missing_is_waited_for) {
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            early() ? rejected("resourceclaim.resource.k8s.io \"gpu\" not found") : "");
  cluster.add_classic_claim("gpu");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"), waits());
}

TEST_P(Classic, a_claim_that_is_being_deleted_is_of_no_use) {
  cluster.add_classic_claim("gpu");
  cluster.allocate("gpu", "a");
  ASSERT_TRUE(cluster.api->remove(kClassicClaimsOf, "default", "gpu").ok());
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  EXPECT_EQ(cluster.node_of("p"), "");
  EXPECT_EQ(cluster.condition("p"),
            early() ? rejected("resourceclaim \"gpu\" is being deleted") : "");
}

TEST_P(Classic, stays_with_the_selected_node_while_it_will_do) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  const std::string before = cluster.proposed("p");
  for (int i = 0; i < 5; ++i) {
    cluster.add_named_node(cat("new", i));
    cluster.settle(std::chrono::seconds(11));
  }
  EXPECT_EQ(cluster.proposed("p"), before);
}

TEST_P(Classic, leaves_a_selected_node_that_goes) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kPrefersB);
  cluster.settle();
  ASSERT_EQ(cluster.proposed("p"), "b|a,b,c");

  cluster.patch(kNodes, "", "b", "{'spec':{'unschedulable':true}}");
  cluster.settle();
  const std::string next = Proposal::read(cluster.context("p")).selected_node;
  EXPECT_THAT(next, testing::AnyOf("a", "c"));

  cluster.remove(kNodes, "", next);
  cluster.settle();
  EXPECT_EQ(cluster.proposed("p"), cat(next == "a" ? "c" : "a", "|a,b,c"));
}

TEST_P(Classic, proposes_again_when_somebody_removes_or_changes_the_context) {
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  cluster.remove(kContextsOf, "default", "p");
  cluster.settle(std::chrono::seconds(2));
  EXPECT_EQ(cluster.proposed("p"), "b|b");

  cluster.patch(kContextsOf, "default", "p", "{'spec':{'selectedNode':'a'}}");
  cluster.settle(std::chrono::seconds(2));
  EXPECT_EQ(cluster.proposed("p"), "b|b");
}

TEST_P(Classic, does_not_touch_the_context_of_another_pod) {
  cluster.create(
      kContextsOf, "default",
      "{'metadata':{'name':'p','ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':"
      "'p','uid':'old','controller':true}]},'spec':{'selectedNode':'a'}}");
  const std::string uid = cluster.context("p")["metadata"]["uid"].str();
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            cat("SchedulerError: running PreFilter plugin \"DynamicResources\": "
                "PodSchedulingContext object with UID ",
                uid, " is not owned by Pod default/p"));
  EXPECT_EQ(cluster.proposed("p"), "a|");

  cluster.remove(kContextsOf, "default", "p");
  cluster.settle(std::chrono::seconds(11));
  EXPECT_EQ(cluster.proposed("p"), "b|b");
}

TEST_P(Classic, a_bound_pods_context_goes_but_not_one_of_the_controllers) {
  Value pod = cluster.add_pod("old", "{'nodeName':'a'}");
  Value mine = make_context(pod, {"a", {"a"}}, release);
  ASSERT_TRUE(cluster.api->create(kContextsOf, "default", mine).ok());
  pod = cluster.add_pod("fixed", "{'nodeName':'a'}");
  ASSERT_TRUE(cluster.api->create(kContextsOf, "default", make_context(pod, {"a", {}}, 30)).ok());
  cluster.settle();
  EXPECT_EQ(cluster.proposed("old"), "none");
  EXPECT_EQ(cluster.proposed("fixed"), "a|");
}

TEST_P(Classic, without_the_plugin_binds_unaware_or_refuses) {
  cluster.stop();
  Options options = at_release(release);
  options.claims = false;
  client::Client& api = *cluster.api;
  const auto transport = client::make_resource_transport(api.transport());
  client::Client client(*transport);
  Scheduler other(client, cluster.sim.runtime(), options);
  other.start();
  cluster.settle();
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"}, kOnlyB);
  cluster.settle();
  cluster.add_pod("large", "{}", "{'requests':{'cpu':'9'}}");
  cluster.settle();
  // Nobody looks for claims to deallocate.
  EXPECT_EQ(cluster.condition("large"),
            cat("Unschedulable: 0/3 nodes are available: 3 Insufficient cpu. ", not_helpful(3),
                early() ? "." : ""));
  if (classic()) {
    EXPECT_EQ(cluster.node_of("p"), "b");
    EXPECT_THAT(cluster.users_of("gpu"), IsEmpty());
  } else {
    EXPECT_THAT(cluster.condition("p"), HasSubstr("DynamicResources"));
  }
  other.stop();
  cluster.sim.run_until_idle();
}

INSTANTIATE_TEST_SUITE_P(Releases, Classic, testing::Values(27, 30, kNewestRelease));

TEST(ClassicNames, of_1_27_follow_from_the_pod) {
  ClassicCluster cluster(27);
  cluster.add_named_node("a");
  cluster.add_resource_class("cats");
  const Value pod = cluster.add_pod(
      "p", "{'resourceClaims':[{'name':'r','source':{'resourceClaimTemplateName':'t'}}]}");
  cluster.settle();
  const std::string end = cat(". no new claims to deallocate, ", not_helpful(1), ".");
  EXPECT_EQ(
      cluster.condition("p"),
      cat("Unschedulable: 0/1 nodes are available: waiting for dynamic resource controller to "
          "create the resourceclaim \"p-r\"",
          end));

  cluster.add_classic_claim("p-r");
  cluster.settle();
  EXPECT_EQ(cluster.condition("p"),
            cat("Unschedulable: 0/1 nodes are available: ResourceClaim default/p-r was not created "
                "for pod default/p (pod is not owner)",
                end));

  cluster.patch(kClassicClaimsOf, "default", "p-r",
                cat("{'metadata':{'ownerReferences':[{'apiVersion':'v1','kind':'Pod','name':'p',"
                    "'uid':'",
                    pod["metadata"]["uid"].as_string(), "'}]}}"));
  cluster.settle(std::chrono::seconds(11));
  EXPECT_EQ(cluster.proposed("p"), "a|a");
}

TEST(ClassicWrites, a_conflict_is_answered_by_an_apply) {
  ClassicCluster cluster(30);
  cluster.add_named_node("a");
  cluster.add_named_node("b");
  cluster.add_resource_class("cats");
  cluster.add_classic_claim("gpu");
  cluster.add_classic_pod("p", {"gpu"});
  cluster.settle();
  const std::string selected = Proposal::read(cluster.context("p")).selected_node;
  // Two answers in a row: the scheduler hears of the first when the second is there already.
  for (const char* more : {"", ",{'name':'other'}"}) {
    cluster.patch(kContextsOf, "default", "p",
                  cat("{'status':{'resourceClaims':[{'name':'gpu','unsuitableNodes':['", selected,
                      "']}", more, "]}}"),
                  "status");
  }
  cluster.settle();
  EXPECT_EQ(cluster.proposed("p"), cat(selected == "a" ? "b" : "a", "|a,b"));
}

}  // namespace
}  // namespace dibs::scheduler::test
