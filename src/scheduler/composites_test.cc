// Trees of groups on a server: waiting, placing, conditions, who is driven out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/groups.h"
#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

using testing::HasSubstr;

const Gvr kGroups = {"scheduling.k8s.io", "v1beta1", "podgroups"};
const Gvr kComposites = {"scheduling.k8s.io", "v1alpha3", "compositepodgroups"};
const Gvr kClasses = {"scheduling.k8s.io", "v1", "priorityclasses"};
constexpr const char* kOneCpu = "{'requests':{'cpu':'1'}}";

class TreeCluster : public TestCluster {
 public:
  TreeCluster()
      : TestCluster({}, {}, false,
                    "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,"
                    "CompositePodGroup=true") {}

  void add_composite(const std::string& name, int min_count, const std::string& parent = "",
                     const std::string& more = "") {
    create(kComposites, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{", above(parent),
               "'workloadRef':{'workloadName':'w','templateName':'t'},'schedulingPolicy':{",
               min_count > 0 ? cat("'gang':{'minGroupCount':", min_count, "}") : "'basic':{}", "}",
               more, "}}"));
  }
  void add_group(const std::string& name, int min_count, const std::string& parent,
                 const std::string& more = "", const std::string& workload = "w") {
    create(kGroups, "default",
           cat("{'metadata':{'name':'", name, "'},'spec':{", above(parent),
               "'workloadRef':{'workloadName':'", workload,
               "','templateName':'t'},'schedulingPolicy':{",
               min_count > 0 ? cat("'gang':{'minCount':", min_count, "}") : "'basic':{}", "}", more,
               "}}"));
  }
  void add_members(const std::string& group, int count, const std::string& more = "") {
    for (int i = 0; i < count; ++i) {
      add_pod(cat(group, "-", i),
              cat("{'schedulingGroup':{'podGroupName':'", group, "'}", more, "}"), kOneCpu);
    }
  }
  int placed(const std::string& group, int count) {
    int made = 0;
    for (int i = 0; i < count; ++i) made += node_of(cat(group, "-", i)).empty() ? 0 : 1;
    return made;
  }
  std::string state_of(const Gvr& kind, const std::string& name) {
    const Value group = get(kind, "default", name);
    for (const Value& condition : group["status"]["conditions"].items()) {
      return cat(condition["type"].as_string(), " ", condition["status"].as_string(), " ",
                 condition["reason"].as_string(), ": ", condition["message"].as_string());
    }
    return "";
  }
  void add_cpus(const std::string& node, int count, const std::string& labels = "{}") {
    add_node(node, cat("{'cpu':'", count, "','memory':'8Gi','pods':'20'}"), labels);
  }

 private:
  static std::string above(const std::string& parent) {
    return parent.empty() ? "" : cat("'parentCompositePodGroupName':'", parent, "',");
  }
};

TEST(Composites, wait_for_their_groups_and_for_the_pods_of_those) {
  TreeCluster cluster;
  cluster.add_cpus("n", 9);
  cluster.add_group("left", 1, "top");
  cluster.add_members("left", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 0) << "there is no parent";

  cluster.add_composite("top", 2);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 0) << "one of two groups is there";

  cluster.add_group("right", 2, "top");
  cluster.add_members("right", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 0) << "one of two pods of the second is there";

  cluster.add_pod("right-1", "{'schedulingGroup':{'podGroupName':'right'}}", kOneCpu);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 1);
  EXPECT_EQ(cluster.placed("right", 2), 2);
  EXPECT_EQ(cluster.state_of(kComposites, "top"),
            "CompositePodGroupInitiallyScheduled True Scheduled: ");
  EXPECT_EQ(cluster.state_of(kGroups, "left"), "PodGroupInitiallyScheduled True Scheduled: ");
}

TEST(Composites, are_bound_as_a_whole_or_not_at_all) {
  TreeCluster cluster;
  cluster.add_cpus("n", 3);
  cluster.add_composite("top", 2);
  cluster.add_group("left", 2, "top");
  cluster.add_group("right", 2, "top");
  cluster.add_members("left", 2);
  cluster.add_members("right", 2);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 2) + cluster.placed("right", 2), 0);
  EXPECT_THAT(cluster.state_of(kComposites, "top"),
              HasSubstr("False Unschedulable: minCount (2) cannot be satisfied: 1 scheduled, 0 "
                        "remaining"));
  EXPECT_THAT(cluster.state_of(kGroups, "right"),
              HasSubstr("False Unschedulable: minCount (2) cannot be satisfied: 1 scheduled, 0 "
                        "remaining"));

  cluster.add_cpus("m", 1);
  cluster.settle(std::chrono::seconds(15));
  EXPECT_EQ(cluster.placed("left", 2) + cluster.placed("right", 2), 4);
  EXPECT_THAT(cluster.state_of(kComposites, "top"), HasSubstr("True"));
}

TEST(Composites, that_are_full_say_so_to_a_late_pod) {
  TreeCluster cluster;
  cluster.add_cpus("n", 2);
  cluster.add_composite("top", 2);
  cluster.add_group("left", 1, "top");
  cluster.add_group("right", 1, "top");
  cluster.add_members("left", 1);
  cluster.add_members("right", 1);
  cluster.settle();
  ASSERT_EQ(cluster.placed("left", 1) + cluster.placed("right", 1), 2);
  cluster.add_pod("left-1", "{'schedulingGroup':{'podGroupName':'left'}}", kOneCpu);
  cluster.settle();
  EXPECT_THAT(cluster.condition("left-1"),
              HasSubstr("Insufficient cpu. pod group is unschedulable"));
}

// As after a restart.
TEST(Composites, are_complete_when_the_missing_pod_comes_on_a_node) {
  TreeCluster cluster;
  cluster.add_cpus("n", 9);
  cluster.add_composite("top", 2);
  cluster.add_group("left", 1, "top");
  cluster.add_group("right", 1, "top");
  cluster.add_members("left", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 0);

  cluster.add_members("right", 1, ",'nodeName':'n'");
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 1);
}

TEST(Composites, go_without_groups_that_they_do_not_need) {
  TreeCluster cluster;
  cluster.add_cpus("n", 3);
  cluster.add_composite("top", 1);
  cluster.add_group("left", 2, "top");
  cluster.add_group("right", 2, "top");
  cluster.add_members("left", 2);
  cluster.add_members("right", 2);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 2), 2);
  EXPECT_EQ(cluster.placed("right", 2), 0);
  EXPECT_THAT(cluster.state_of(kGroups, "left"), HasSubstr("True"));
  EXPECT_THAT(cluster.state_of(kGroups, "right"), HasSubstr("False Unschedulable"));

  cluster.add_cpus("m", 1);
  cluster.settle(std::chrono::seconds(15));
  EXPECT_EQ(cluster.placed("right", 2), 2) << "it joins when there is room";
}

TEST(Composites, stand_in_each_other) {
  TreeCluster cluster;
  cluster.add_cpus("n", 9);
  cluster.add_composite("top", 0);
  cluster.add_composite("middle", 2, "top");
  cluster.add_group("a", 1, "middle");
  cluster.add_group("b", 0, "middle");
  cluster.add_members("a", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("a", 1), 0) << "the other group has no pod";

  cluster.add_members("b", 2);
  cluster.settle();
  EXPECT_EQ(cluster.placed("a", 1), 1);
  EXPECT_EQ(cluster.placed("b", 2), 2);
  EXPECT_THAT(cluster.state_of(kComposites, "middle"), HasSubstr("True"));
}

TEST(Composites, stay_in_one_domain_and_their_groups_in_domains_of_it) {
  TreeCluster cluster;
  cluster.add_cpus("a1", 2, "{'zone':'a','rack':'a1'}");
  cluster.add_cpus("b1", 2, "{'zone':'b','rack':'b1'}");
  cluster.add_cpus("b2", 2, "{'zone':'b','rack':'b2'}");
  const auto by = [](const char* key) {
    return cat(",'schedulingConstraints':{'topology':[{'key':'", key, "'}]}");
  };
  cluster.add_composite("top", 2, "", by("zone"));
  cluster.add_group("left", 2, "top", by("rack"));
  cluster.add_group("right", 2, "top", by("rack"));
  cluster.add_members("left", 2);
  cluster.add_members("right", 2);
  cluster.settle();
  EXPECT_EQ(cluster.node_of("left-0").substr(0, 1), "b") << cluster.condition("left-0");
  EXPECT_EQ(cluster.node_of("left-0"), cluster.node_of("left-1"));
  EXPECT_EQ(cluster.node_of("right-0"), cluster.node_of("right-1"));
  EXPECT_NE(cluster.node_of("right-0"), cluster.node_of("left-0"));
}

TEST(Composites, in_a_circle_or_of_several_workloads_are_invalid) {
  TreeCluster cluster;
  cluster.add_cpus("n", 9);
  cluster.add_composite("a", 1, "b");
  cluster.add_composite("b", 1, "a");
  cluster.add_group("left", 1, "a");
  cluster.add_members("left", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 0);
  EXPECT_THAT(cluster.state_of(kComposites, "a"), HasSubstr("False Invalid: cycle detected"));
  EXPECT_THAT(cluster.state_of(kComposites, "b"), HasSubstr("False Invalid: cycle detected"));

  cluster.add_composite("top", 1);
  cluster.add_group("one", 1, "top");
  cluster.add_group("two", 1, "top", "", "other");
  cluster.add_members("one", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("one", 1), 0);
  EXPECT_THAT(cluster.state_of(kComposites, "top"), HasSubstr("False Invalid: groups of one"));
}

TEST(Composites, that_are_too_deep_are_invalid) {
  TreeCluster cluster;
  cluster.add_cpus("n", 9);
  cluster.add_composite("c1", 1);
  cluster.add_composite("c2", 1, "c1");
  cluster.add_composite("c3", 1, "c2");
  cluster.add_group("fourth", 1, "c3");
  cluster.add_members("fourth", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("fourth", 1), 1);

  cluster.add_composite("c4", 1, "c3");
  cluster.add_group("fifth", 1, "c4");
  cluster.add_members("fifth", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("fifth", 1), 0);
  EXPECT_THAT(cluster.state_of(kComposites, "c4"), HasSubstr("exceeded maximum hierarchy depth"));
}

// Whoever looks from below would go through all of them, and be gone for minutes.
TEST(Composites, that_anybody_can_pile_up_cost_no_more_than_a_few) {
  PodGroups groups;
  groups.follow_parents(true);
  const auto put = [&](bool composite, int number, int above) {
    const Value object = Value::object(
        {{"metadata", Value::object({{"namespace", "default"}, {"name", cat("g", number)}})},
         {"spec", Value::object({{"parentCompositePodGroupName", cat("g", above)}})}});
    composite ? groups.put_composite(object) : groups.put(object);
  };
  constexpr int kMany = 20'000;
  for (int i = 0; i < kMany; ++i) put(true, i, (i + 1) % kMany);
  for (int i = 0; i < 1000; ++i) {
    put(false, kMany + i, i);
    const auto root = groups.root_of({cat("default/g", kMany + i), false});
    EXPECT_TRUE(root.invalid);
    EXPECT_FALSE(root.id);
    EXPECT_THAT(root.problem, HasSubstr("exceeded maximum hierarchy depth"));
    ASSERT_EQ(root.chain.size(), PodGroups::kFarthest);
  }
}

TEST(Composites, wait_again_when_one_above_them_goes) {
  TreeCluster cluster;
  cluster.add_composite("top", 1);
  cluster.add_group("left", 1, "top");
  cluster.add_members("left", 1);
  cluster.settle();
  ASSERT_TRUE(cluster.api->remove(kComposites, "default", "top").ok());
  cluster.add_cpus("n", 9);
  cluster.settle(std::chrono::seconds(15));
  EXPECT_EQ(cluster.placed("left", 1), 0);

  cluster.add_composite("top", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1), 1);
}

TEST(Composites, that_go_as_one_are_driven_out_whole) {
  TreeCluster cluster;
  cluster.create(kClasses, "", "{'metadata':{'name':'high'},'value':100}");
  cluster.add_cpus("n", 1);
  cluster.add_cpus("m", 1);
  cluster.add_composite("top", 2, "", ",'disruptionMode':{'all':{}}");
  cluster.add_group("left", 1, "top");
  cluster.add_group("right", 1, "top");
  cluster.add_members("left", 1);
  cluster.add_members("right", 1);
  cluster.settle();
  EXPECT_EQ(cluster.placed("left", 1) + cluster.placed("right", 1), 2);

  cluster.add_pod("one", "{'priorityClassName':'high'}", kOneCpu);
  cluster.settle(std::chrono::seconds(30));
  EXPECT_NE(cluster.node_of("one"), "") << cluster.condition("one");
  EXPECT_EQ(cluster.api->list(kPodsOf, "default")->items.size(), 1U);
}

TEST(Composites, drive_out_pods_of_lower_priority_when_that_makes_room_for_all) {
  TreeCluster cluster;
  cluster.create(kClasses, "", "{'metadata':{'name':'high'},'value':100}");
  cluster.add_cpus("n", 2);
  cluster.add_cpus("m", 2);
  for (const char* name : {"low-1", "low-2", "low-3"}) cluster.add_pod(name, "{}", kOneCpu);
  cluster.settle();
  const std::string high = ",'priorityClassName':'high'";
  cluster.add_composite("top", 2, "", high);
  cluster.add_group("left", 1, "top", high);
  cluster.add_group("right", 1, "top", high);
  cluster.add_members("left", 1, high);
  cluster.add_members("right", 1, high);
  cluster.settle(std::chrono::seconds(30));
  EXPECT_EQ(cluster.placed("left", 1), 1) << cluster.condition("left-0");
  EXPECT_EQ(cluster.placed("right", 1), 1) << cluster.condition("right-0");
  EXPECT_EQ(cluster.api->list(kPodsOf, "default")->items.size(), 4U) << "one of three had to go";
}

}  // namespace
}  // namespace dibs::scheduler::test
