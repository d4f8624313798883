// What a gang takes while it is searched for, and how far the search goes.
#include <gtest/gtest.h>

#include <algorithm>

#include "alloc/testing/hard_cases.h"
#include "scheduler/gang_problem.h"

namespace dibs::scheduler::test {
namespace {

TEST(Gang, says_when_the_limit_was_reached) {
  Problem problem;
  // Each kind of pods has room enough while it is alone.
  for (int n = 0; n < 4; ++n) problem.nodes.push_back({3, 2, {}, {}});
  for (int p = 0; p < 4; ++p) problem.pods.push_back({1, 1, -1, false});
  for (int p = 0; p < 3; ++p) problem.pods.push_back({2, 2, -1, false});
  problem.needed() = problem.pods.size();
  World world(problem);
  GangPlacer hasty(world.state, world.devices, {.tries = 20});

  const GangDecision made = hasty.place(world.order, Profile::standard(), Time{});

  EXPECT_FALSE(made.success());
  EXPECT_TRUE(made.limited);
}

/// Racks of two nodes, none of which takes the pods together.
Problem make_racks(int racks) {
  Problem problem;
  for (int n = 0; n < 2 * racks; ++n) problem.nodes.push_back({2, 0, cat("r", n / 2), {}});
  problem.pods.assign(5, {1, 0, -1, false});
  problem.needed() = 5;
  problem.groups[0].key = "rack";
  return problem;
}

TEST(Gang, ends_at_the_limit_between_domains_too) {
  World world(make_racks(40));
  GangPlacer hasty(world.state, world.devices, {.tries = 20});

  const GangDecision made = hasty.place(world.order, Profile::standard(), Time{});

  EXPECT_FALSE(made.success());
  EXPECT_TRUE(made.limited);
  EXPECT_EQ(world.state.pod_count(), 0U);
}

// What is looked at in a rack is its own nodes: many racks are no reason to give up.
TEST(Gang, looks_at_no_nodes_of_other_domains) {
  Problem problem = make_racks(400);
  problem.pods.assign(4, {2, 0, -1, false});
  problem.needed() = 4;
  for (int n = 0; n < 4; ++n) problem.nodes.push_back({2, 0, "z", {}});
  World world(problem);
  GangPlacer hasty(world.state, world.devices, {.tries = 4'000});

  const GangDecision made = hasty.place(world.order, Profile::standard(), Time{});

  ASSERT_TRUE(made.success());
  EXPECT_EQ(made.members[0].node->label("rack")->str(), "z");
}

TEST(Gang, knows_without_a_search_that_equals_are_too_many) {
  Problem problem;
  for (int n = 0; n < 9; ++n) problem.nodes.push_back({8, 2, {}, {}});
  for (int p = 0; p < 19; ++p) problem.pods.push_back({1, 1, -1, false});
  problem.needed() = problem.pods.size();
  World world(problem);

  const GangDecision made = world.place();

  EXPECT_FALSE(made.success());
  EXPECT_FALSE(made.limited);
  EXPECT_EQ(made.groups[0].most, 18U);
}

PodPtr make_pod(const std::string& name, const std::string& requests, const std::string& more) {
  return Pod::read(from_text(
      cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name,
          "'},'spec':{'schedulerName':'default-scheduler','containers':[{'name':'c','resources':{",
          "'requests':", requests, more, "}}")));
}

TEST(Gang, counts_what_searches_for_devices_cost) {
  const std::vector<alloc::HardCase> all = alloc::hard_cases();
  const auto hard = std::find_if(all.begin(), all.end(), [](const alloc::HardCase& one) {
    return one.name == "shared-groups-4x32-for-32-short";
  });
  ASSERT_NE(hard, all.end());
  Problem problem;
  problem.nodes.assign(16, {4, 0, {}, {}});
  problem.needed() = 1;
  World world(problem);
  world.devices.put_class(hard->source["classes"][0]);
  for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
    for (Value slice : hard->source["slices"].items()) {
      const std::string name = cat("n", n);
      slice.mut("metadata").set("name", cat(name, slice["metadata"]["name"].as_string()));
      slice.mut("spec").set("nodeName", name);
      slice.mut("spec").mut("pool").set("name", cat("hard-", name));
      world.devices.put_slice(slice);
    }
  }
  Value claim = hard->source["claims"][0];
  claim.set("metadata",
            from_text("{'name':'hard','namespace':'ns','uid':'hard','resourceVersion':'1'}"));
  world.devices.put_claim(claim);
  world.order.groups[0].pods.push_back(
      make_pod("a", "{'cpu':'1'}",
               ",'claims':[{'name':'d'}]}}],'resourceClaims':[{'name':'d','resourceClaimName':"
               "'hard'}]"));
  // The pod is put to each node twice: while it takes what is left, and alone.
  GangPlacer placer(world.state, world.devices, {.tries = 40});

  const GangDecision made = placer.place(world.order, Profile::standard(), Time{});

  EXPECT_FALSE(made.success());
  EXPECT_EQ(made.error, "");
  EXPECT_TRUE(made.limited);
}

TEST(Gang, gives_a_device_for_an_extended_resource_once) {
  Problem problem;
  problem.nodes = {{4, 1}, {4, 1}};
  problem.needed() = 2;
  World world(problem);
  world.devices.put_class(
      from_text("{'metadata':{'name':'gpu'},'spec':{'extendedResourceName':'example.com/gpu'}}"));
  const std::string one = "{'example.com/gpu':'1'}";
  for (const char* name : {"a", "b"})
    world.order.groups[0].pods.push_back(make_pod(name, one, "}}]"));

  const GangDecision made = world.place();

  ASSERT_TRUE(made.success()) << made.error;
  EXPECT_NE(made.members[0].node, made.members[1].node);
  world.order.groups[0].pods.push_back(make_pod("c", one, "}}]"));
  world.order.groups[0].needed = 3;
  EXPECT_FALSE(world.place().success()) << "two devices for three pods";
  world.order.groups[0].needed = 2;
  EXPECT_EQ(world.place().placed, 2U) << "what was tried is free again";
}

TEST(Gang, counts_what_claims_take_of_the_node) {
  Problem problem;
  problem.nodes = {{2, 0}};
  problem.needed() = 2;
  World world(problem);
  world.devices.put_slice(
      from_text("{'metadata':{'name':'cores'},'spec':{'driver':'d','nodeName':'n0','pool':{'name':"
                "'cores','generation':1,'resourceSliceCount':1},'devices':[{'name':'x',"
                "'nodeAllocatableResources':{'cpu':{'mapping':{'deviceMultiplier':'1'}}}},{'name':"
                "'y','nodeAllocatableResources':{'cpu':{'mapping':{'deviceMultiplier':'1'}}}}]}}"));
  for (const char* name : {"a", "b"}) {
    world.put_claim(name, 1, false);
    world.order.groups[0].pods.push_back(make_pod(
        name, "{'cpu':'500m'}",
        cat(",'claims':[{'name':'d'}]}}],'resourceClaims':[{'name':'d','resourceClaimName':'", name,
            "'}]")));
  }

  const GangDecision made = world.place();

  EXPECT_FALSE(made.success()) << "three processors of two";
  EXPECT_EQ(made.groups[0].most, 1U);
}

TEST(Gang, shares_claims_where_other_devices_are_resources_of_their_node) {
  Problem problem;
  problem.nodes = {{4, 1}};
  problem.shared = {1};
  for (int p = 0; p < 2; ++p) problem.pods.push_back({1, 0, 0, false});
  problem.needed() = 2;
  World world(problem);
  world.state.put_node(
      from_text("{'metadata':{'name':'far'},'status':{'allocatable':{'pods':'0'}}}"));
  world.devices.put_slice(
      from_text("{'metadata':{'name':'far'},'spec':{'driver':'d','nodeName':'far','pool':{'name':"
                "'far','generation':1,'resourceSliceCount':1},'devices':[{'name':'x',"
                "'nodeAllocatableResources':{'cpu':{'mapping':{'deviceMultiplier':'1'}}}}]}}"));

  const GangDecision made = world.place();

  EXPECT_TRUE(made.success()) << made.error;
}

TEST(Gang, says_that_a_shared_claim_took_resources_of_the_node) {
  Problem problem;
  problem.nodes = {{4, 0}};
  problem.shared = {1};
  for (int p = 0; p < 2; ++p) problem.pods.push_back({1, 0, 0, false});
  problem.needed() = 2;
  World world(problem);
  world.devices.put_slice(
      from_text("{'metadata':{'name':'s'},'spec':{'driver':'d','nodeName':'n0','pool':{'name':"
                "'s','generation':1,'resourceSliceCount':1},'devices':[{'name':'x',"
                "'nodeAllocatableResources':{'cpu':{'mapping':{'deviceMultiplier':'1'}}}}]}}"));

  const GangDecision made = world.place();

  EXPECT_EQ(made.error,
            "claim ns/shared0 is shared in the group, which does not go together with claims for "
            "extended resources or for resources of the node");
  EXPECT_EQ(world.state.pod_count(), 0U);
}

/// Two small pods must share a node for the third to have the other.
Problem make_puzzle() {
  Problem problem;
  problem.nodes = {{2, 0}, {2, 0}};
  problem.pods = {{1, 0, -1, false}, {1, 0, -1, false}, {2, 0, -1, false}};
  problem.needed() = 3;
  return problem;
}

TEST(Gang, keeps_the_best_domain_that_was_found_within_the_limit) {
  Problem problem = make_puzzle();
  problem.nodes.push_back({1, 0});
  problem.pods.push_back({9, 0, -1, false});  // for which there is no room anywhere
  World world(problem);
  for (const char* name : {"n0", "n1", "n2"}) {
    Value node = world.state.find(name)->object;
    node.mut("metadata")
        .set("labels", from_text(name == std::string("n2") ? "{'rack':'b'}" : "{'rack':'a'}"));
    world.state.put_node(node);
  }
  world.order.groups[0].topology_key = "rack";
  const auto least = [&](const std::string& rack) {
    world.order.groups[0].topology_value = rack;
    for (std::uint64_t tries = 1; tries < 1000; ++tries) {
      GangPlacer hasty(world.state, world.devices, {.tries = tries});
      if (hasty.place(world.order, Profile::standard(), Time{}).success()) return tries;
    }
    return std::uint64_t{0};
  };

  const std::uint64_t alone = least("a");

  ASSERT_GT(alone, 1U) << "it takes a search";
  EXPECT_EQ(least(""), alone);
}

TEST(Gang, stands_on_no_more_choices_than_the_limit_says) {
  Problem problem;
  // Only the two that come last fit on the first node together.
  problem.nodes = {{4, 0}, {3, 0}};
  problem.pods = {{3, 0, -1, false}, {2, 0, -1, false}, {2, 0, -1, false}};
  problem.needed() = 3;
  World world(problem);
  EXPECT_TRUE(world.place().success());
  GangPlacer shallow(world.state, world.devices, {.depth = 1});

  const GangDecision made = shallow.place(world.order, Profile::standard(), Time{});

  EXPECT_FALSE(made.success());
  EXPECT_TRUE(made.limited);
  EXPECT_EQ(world.state.pod_count(), 0U);
}

TEST(Gang, of_thousands_is_placed) {
  Problem many;
  many.nodes = {{4000, 0}, {2, 0}};
  many.pods.assign(4000, {1, 0, -1, false});
  many.pods.push_back({2, 0, -1, false});
  many.needed() = many.pods.size();
  World large(many);
  Value node = large.state.find("n0")->object;
  node.mut("status").mut("allocatable").set("pods", "9999");
  large.state.put_node(node);
  GangPlacer patient(large.state, large.devices, {.tries = 100'000});
  EXPECT_TRUE(patient.place(large.order, Profile::standard(), Time{}).success());
}

// Group 1 needs one pod and has three; the second rack takes two of them, with devices that are not
// for everybody.
TEST(Gang, of_groups_keeps_the_best_domain_of_a_group) {
  Problem problem;
  problem.nodes = {{4, 1, "a", {}}, {4, 3, "b", {}}, {4, 1, "c", {}}};
  problem.groups = {{GangOrder::kNone, true, 1, {}}, {0, false, 1, "rack"}};
  for (int p = 0; p < 3; ++p) problem.pods.push_back({1, 1, -1, true, 1});
  World world(problem);

  const GangDecision made = world.place();

  ASSERT_TRUE(made.success());
  EXPECT_EQ(made.placed, 2U) << "two large devices";
  EXPECT_EQ(made.allocations.size(), 2U);
  for (const GangMember& member : made.members) {
    if (member.node != nullptr) {
      EXPECT_EQ(member.node->name, "n1");
    } else {
      EXPECT_EQ(member.failure.message.substr(0, 24), "0/1 nodes are available:");
    }
  }
  EXPECT_EQ(world.state.pod_count(), 0U);
}

TEST(Gang, of_groups_beyond_the_depth_of_the_search_gives_back_what_is_too_little) {
  Problem problem = make_puzzle();
  problem.groups = {{GangOrder::kNone, true, 1, {}}, {0, false, 3, {}}, {0, false, 2, {}}};
  for (Problem::Pod& pod : problem.pods) pod.group = 1;
  for (int p = 0; p < 2; ++p) problem.pods.push_back({3, 0, -1, false, 2});
  World world(problem);
  for (std::size_t depth = 1; depth < 6; ++depth) {
    GangPlacer shallow(world.state, world.devices, {.depth = depth});

    const GangDecision made = shallow.place(world.order, Profile::standard(), Time{});

    if (made.success()) {
      EXPECT_EQ(made.placed, 3U) << depth;
      EXPECT_TRUE(made.groups[1].holds);
      EXPECT_FALSE(made.groups[2].holds);
    } else {
      EXPECT_TRUE(made.limited) << depth;
      EXPECT_LT(depth, 3U);
    }
    EXPECT_EQ(world.state.pod_count(), 0U);
  }
}

}  // namespace
}  // namespace dibs::scheduler::test
