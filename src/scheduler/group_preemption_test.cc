#include "scheduler/group_preemption.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "json/parse.h"

namespace dibs::scheduler {
namespace {

PodPtr make_pod(const std::string& name, int priority, const std::string& metadata = "") {
  std::string text =
      cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'", name, "'", metadata,
          "},'spec':{'schedulerName':'default-scheduler','priority':", priority,
          ",'containers':[{'name':'c','resources':{'requests':{'cpu':'1'}}}]}}");
  std::replace(text.begin(), text.end(), '\'', '"');
  return Pod::read(json::parse(text).value());
}

// Room was made by an attempt whose nomination the API does not know yet.
TEST(GroupPreemption, waits_for_victims_that_are_going) {
  ClusterState state;
  Devices devices(alloc::Features::all(), [] { return std::string("share"); });
  GangPlacer placer(state, devices);
  state.put_node(
      json::parse(R"({"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"2","pods":"9"}}})")
          .value());
  state.add_pod(make_pod("going", 0, ",'deletionTimestamp':'2024-01-01T00:00:00Z'"), "n");
  state.add_pod(make_pod("low", 0), "n");
  GangOrder order;
  order.groups.emplace_back().pods = {make_pod("p", 10)};
  state.nominate(order.groups[0].pods[0], "n");

  const GroupPreemption found = find_group_victims(state, devices, placer, PodGroups(), 10, order,
                                                   Profile::standard(), Time{}, {});

  EXPECT_EQ(found.message, "pod group preemption: ongoing preemption on nominated nodes");
  EXPECT_TRUE(found.victims.empty());
  EXPECT_TRUE(found.underway);
}

}  // namespace
}  // namespace dibs::scheduler
