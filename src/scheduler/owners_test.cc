#include "scheduler/owners.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/scores/test_scores.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PodPtr owned(const std::string& name, const std::string& kind, const std::string& labels) {
  return Pod::read(from_short(cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name,
                                  "','labels':{", labels, "},'ownerReferences':[{'kind':'", kind,
                                  "','name':'o','controller':true}]},'spec':{}}")));
}

std::vector<std::string> selectors(const Owners& owners, const PodPtr& pod) {
  std::vector<SpreadConstraint> room;
  std::vector<std::string> made;
  for (const SpreadConstraint& one : owners.spread_of(*pod, Profile::standard(), room)) {
    made.push_back(cat(one.topology_key, " ", one.selector.str()));
  }
  return made;
}

TEST(Owners, make_pods_of_a_controller_or_a_service_one_of_a_kind) {
  Owners owners;
  const PodPtr pod = owned("p", "ReplicaSet", "'app':'web','tier':'front'");
  EXPECT_THAT(selectors(owners, pod), ElementsAre());

  const json::Value set = from_short(
      "{'kind':'ReplicaSet','metadata':{'name':'o','namespace':'ns'},'spec':{'selector':"
      "{'matchLabels':{'app':'web'}}}}");
  owners.put(set);
  EXPECT_THAT(selectors(owners, pod),
              ElementsAre("kubernetes.io/hostname app=web", "topology.kubernetes.io/zone app=web"));

  const json::Value service = from_short(
      "{'kind':'Service','metadata':{'name':'s','namespace':'ns'},'spec':{'selector':"
      "{'tier':'front'}}}");
  owners.put(service);
  EXPECT_THAT(selectors(owners, pod),
              ElementsAre("kubernetes.io/hostname app=web,tier=front",
                          "topology.kubernetes.io/zone app=web,tier=front"));

  owners.remove(set);
  owners.remove(service);
  EXPECT_THAT(selectors(owners, pod), ElementsAre());
}

TEST(Owners, spread_their_pods_over_places) {
  ScoreWorld world;
  world.state.owners().put(
      from_short("{'kind':'ReplicaSet','metadata':{'name':'o','namespace':'ns'},'spec':{'selector':"
                 "{'matchLabels':{'app':'web'}}}}"));
  // One node has no zone: that counts for nothing, but does not put it out.
  world.add_node("a", "'kubernetes.io/hostname':'a','topology.kubernetes.io/zone':'z'");
  world.add_node("b", "'kubernetes.io/hostname':'b'");
  world.assign(owned("one", "ReplicaSet", "'app':'web'"), "a");
  const auto scores = world.score("PodTopologySpread", owned("two", "ReplicaSet", "'app':'web'"));
  EXPECT_GT(scores[1], scores[0]);
  world.profile.spread.clear();
  EXPECT_THAT(world.score("PodTopologySpread", owned("two", "ReplicaSet", "'app':'web'")),
              ElementsAre(0, 0));
}

Options configured(const std::string& plugin, const std::string& args) {
  Options made;
  auto read = Configuration::parse(
      cat("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
          "profiles: [{pluginConfig: [{name: ",
          plugin, ", args: ", args, "}]}]\n"),
      *api::Features::parse("1.37", ""));
  if (!read.ok()) ADD_FAILURE() << read.error().message();
  made.configuration = std::move(*read);
  return made;
}

TEST(Owners, keep_pods_from_nodes_where_the_profile_says_so) {
  TestCluster cluster(configured("PodTopologySpread",
                                 "{defaultingType: List, defaultConstraints: [{topologyKey: "
                                 "kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: "
                                 "DoNotSchedule}]}"));
  cluster.add_node("a", "{'cpu':'8','memory':'8Gi','pods':'10'}", "{'kubernetes.io/hostname':'a'}");
  cluster.add_node("b", "{'cpu':'1','memory':'8Gi','pods':'10'}", "{'kubernetes.io/hostname':'b'}");
  cluster.create(
      {"", "v1", "services"}, "default",
      "{'metadata':{'name':'s'},'spec':{'selector':{'app':'web'},'ports':[{'port':80}]}}");
  cluster.settle();
  for (const char* name : {"one", "two", "three"}) {
    cluster.add_pod(name, "{}", "{'requests':{'cpu':'1'}}", "{'app':'web'}");
    cluster.settle();
  }
  EXPECT_EQ(cluster.node_of("one"), "a");
  EXPECT_EQ(cluster.node_of("two"), "b");
  EXPECT_EQ(cluster.node_of("three"), "a");
  cluster.add_pod("four", "{}", "{'requests':{'cpu':'1'}}", "{'app':'web'}");
  cluster.settle();
  EXPECT_THAT(cluster.condition("four"),
              HasSubstr("1 node(s) didn't match pod topology spread constraints"));
}

TEST(AddedAffinity, holds_for_every_pod_of_the_profile) {
  TestCluster cluster(configured("NodeAffinity",
                                 "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                                 "{nodeSelectorTerms: [{matchExpressions: [{key: team, operator: "
                                 "In, values: [blue]}]}]}}}"));
  cluster.add_node("a");
  cluster.add_pod("p");
  cluster.settle();
  EXPECT_THAT(cluster.condition("p"),
              HasSubstr("1 node(s) didn't match scheduler-enforced node affinity"));
  cluster.patch(kNodes, "", "a", "{'metadata':{'labels':{'team':'blue'}}}");
  cluster.settle(std::chrono::seconds(3));
  EXPECT_EQ(cluster.node_of("p"), "a");
}

}  // namespace
}  // namespace dibs::scheduler::test
