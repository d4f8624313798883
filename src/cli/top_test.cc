#include "cli/top.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "cli/top_devices.h"
#include "json/parse.h"
#include "json/test_text.h"

namespace dibs::cli {
namespace {

using json::Value;
using json::test::from_text;
using testing::ElementsAre;
using testing::HasSubstr;

struct World : WhyObjects {
  void take(const std::string& text) { add(from_text(text)); }
  void add_slice(const std::string& node, const std::string& devices, const std::string& more = "",
                 int count = 1, int generation = 1) {
    take(
        cat("{'kind':'ResourceSlice','metadata':{'name':'x'},'spec':{'driver':'gpu.io','nodeName':"
            "'",
            node, "','pool':{'name':'", node, "','generation':", generation,
            ",'resourceSliceCount':", count, "},'devices':[", devices, "]", more, "}}"));
  }
  void add_claim(const std::string& name, const std::string& results,
                 const std::string& status = "") {
    take(cat("{'kind':'ResourceClaim','metadata':{'name':'", name,
             "','namespace':'default','creationTimestamp':'2026-03-01T11:59:00Z'},'status':{",
             results.empty() ? "" : cat("'allocation':{'devices':{'results':[", results, "]}},"),
             "'reservedFor':[", results.empty() ? "" : "{'resource':'pods','name':'p','uid':'p'}",
             "]", status, "}}"));
  }
  /// Of the slice that was added last.
  void tell_usage(const std::string& text) {
    slices.back().mut("metadata").mut("annotations").set(kUsageAnnotation, text);
  }
  std::vector<std::string> states() const {
    std::vector<std::string> made;
    for (const TopDevice& device : devices_in(*this)) {
      made.push_back(cat(device.name, " ", device.state()));
    }
    return made;
  }
  std::string show(const std::string& what, const std::string& output = "table",
                   const std::string& name_space = "") const {
    TopFlags flags;
    flags.what = what;
    flags.output = output;
    return show_top(*this, flags, name_space, *parse_rfc3339("2026-03-01T12:00:00Z"));
  }
};

std::string result(const std::string& device, const std::string& more = "") {
  return cat("{'driver':'gpu.io','pool':'n1','device':'", device, "'", more, "}");
}

TEST(TopDevices, are_told_apart_by_what_has_them_and_what_ails_them) {
  World world;
  world.add_slice("n1",
                  "{'name':'d10'},{'name':'d2'},{'name':'d3','taints':[{'key':'ill','effect':"
                  "'NoSchedule'}]},{'name':'d4'},{'name':'d5'}");
  world.add_claim("c", cat(result("d2"), ",", result("d4"), ",", result("lost")));
  world.add_claim("root", result("d10", ",'adminAccess':true"));
  world.take(
      "{'kind':'DeviceTaintRule','spec':{'deviceSelector':{'device':'d5'},'taint':{'key':'k',"
      "'effect':'NoExecute'}}}");
  world.take(
      "{'kind':'Pod','metadata':{'name':'p','namespace':'default','uid':'p'},'status':{"
      "'containerStatuses':[{'allocatedResourcesStatus':[{'name':'claim:c','resources':[{"
      "'resourceID':'gpu.io/n1/d4','health':'Unhealthy'}]}]}]}}");

  EXPECT_THAT(world.states(), ElementsAre("lost gone", "d2 held", "d3 free,tainted",
                                          "d4 held,unhealthy", "d5 free,tainted", "d10 free"));
}

TEST(TopDevices, of_older_generations_do_not_count_and_a_pool_must_be_whole) {
  World world;
  world.add_slice("n1", "{'name':'old'}", "", 1, 1);
  world.add_slice("n1", "{'name':'new'}", "", 2, 2);

  EXPECT_THAT(world.states(), ElementsAre("new incomplete"));
}

TEST(TopDevices, that_are_shared_tell_how_much_is_used) {
  World world;
  world.add_slice("n1",
                  "{'name':'a','allowMultipleAllocations':true,'capacity':{'memory':{'value':"
                  "'80Gi'}}}");
  world.add_claim("x", result("a", ",'shareID':'1','consumedCapacity':{'memory':'10Gi'}"));
  world.add_claim("y", result("a", ",'shareID':'2','consumedCapacity':{'memory':'30Gi'}"));
  EXPECT_THAT(world.states(), ElementsAre("a shared"));
  EXPECT_TRUE(devices_in(world)[0].free());
  EXPECT_THAT(world.show("devices"),
              HasSubstr("default/x,default/y   default/p   memory 40Gi/80Gi"));

  world.add_claim("z", result("a", ",'shareID':'3','consumedCapacity':{'memory':'40Gi'}"));
  EXPECT_THAT(world.states(), ElementsAre("a full"));
  EXPECT_FALSE(devices_in(world)[0].free());
}

TEST(TopDevices, partitions_are_blocked_when_others_have_used_up_the_counters) {
  const auto part = [](const std::string& name, int memory) {
    return cat("{'name':'", name, "','consumesCounters':[{'counterSet':'s','counters':{'memory':{",
               "'value':'", memory, "Gi'}}}]}");
  };
  World world;
  world.add_slice("n1", cat(part("half-0", 40), ",", part("half-1", 40), ",", part("whole", 80)),
                  ",'sharedCounters':[{'name':'s','counters':{'memory':{'value':'80Gi'}}}]");
  EXPECT_THAT(world.states(), ElementsAre("half-0 free", "half-1 free", "whole free"));

  world.add_claim("c", result("half-0"));
  EXPECT_THAT(world.states(), ElementsAre("half-0 held", "half-1 free", "whole blocked"));
  EXPECT_THAT(world.show("devices", "wide"), HasSubstr("s.memory 40Gi/80Gi"));
}

TEST(TopUsage, is_shown_of_devices_that_are_there) {
  World world;
  world.add_slice("n1", "{'name':'a'},{'name':'b'}", "", 2);
  world.add_slice("n1", "{'name':'c'},{'name':'d'}", "", 2);
  world.tell_usage(R"({"a": {"memoryUsed": 12884901888, "memory": 150754820096, "percent": 37},)"
                   R"( "b": {"memoryUsed": 1, "memory": 1610612736}, "c": {"percent": 0},)"
                   R"( "lost": {"percent": 1}})");
  world.add_claim("x", cat(result("a"), ",", result("lost")));

  const std::string shown = world.show("devices");
  EXPECT_THAT(shown, HasSubstr("default/p   memory 12Gi/140Gi, 37%\n"));
  EXPECT_THAT(shown, HasSubstr("<none>      memory 1/1.5Gi\n"));
  EXPECT_THAT(shown, HasSubstr("<none>      0%\n"));
  const Value items = (*json::parse(world.show("devices", "json")))["items"];
  ASSERT_EQ(items.size(), 5U);
  EXPECT_EQ(json::write(items[1]["usage"]),
            R"({"memoryUsed":12884901888,"memory":150754820096,"percent":37})");
  EXPECT_EQ(json::write(items[2]["usage"]), R"({"memoryUsed":1,"memory":1610612736})");
  EXPECT_EQ(json::write(items[3]["usage"]), R"({"percent":0})");
  EXPECT_FALSE(items[0].contains("usage")) << "of a device that is gone";
  EXPECT_FALSE(items[4].contains("usage"));
}

TEST(TopUsage, comes_after_what_claims_have_of_a_device) {
  World world;
  world.add_slice("n1",
                  "{'name':'a','allowMultipleAllocations':true,'capacity':{'memory':{'value':"
                  "'80Gi'}}}");
  world.add_claim("x", result("a", ",'consumedCapacity':{'memory':'10Gi'}"));
  world.tell_usage(R"({"a": {"memoryUsed": 1073741824, "memory": 85899345920, "percent": 5}})");

  EXPECT_THAT(world.show("devices"), HasSubstr("memory 10Gi/80Gi; now memory 1Gi/80Gi, 5%\n"));
}

TEST(TopUsage, of_an_older_generation_or_another_pool_does_not_count) {
  World world;
  world.add_slice("n1", "{'name':'a'}");
  world.tell_usage(R"({"a": {"percent": 1}})");
  world.add_slice("n1", "{'name':'a'}", "", 1, 2);
  world.add_slice("n2", "{'name':'b'}");
  world.tell_usage(R"({"a": {"percent": 2}})");

  for (const TopDevice& device : devices_in(world)) EXPECT_FALSE(device.usage.told());
}

TEST(TopUsage, that_is_rubbish_is_ignored) {
  for (const char* text :
       {"", "nonsense", "[1]", "7", R"({"a": 7})", R"({"a": [1]})", R"({"a": {"percent": "37"}})",
        R"({"a": {"percent": 101}})", R"({"a": {"percent": -1}})", R"({"a": {"percent": 1e300}})",
        R"({"a": {"memory": 4}})", R"({"a": {"memoryUsed": 4}})",
        R"({"a": {"memoryUsed": 0, "memory": 0}})", R"({"a": {"memoryUsed": -4, "memory": 4}})",
        R"({"a": {"memoryUsed": 5, "memory": 4}})",
        R"({"a": {"memoryUsed": 5, "memory": 9007199254740992}})"}) {
    World world;
    world.add_slice("n1", "{'name':'a'}");
    world.tell_usage(text);

    EXPECT_FALSE(devices_in(world)[0].usage.told()) << text;
  }
}

TEST(TopClaims, are_told_with_what_they_have) {
  World world;
  world.add_slice("n1", "{'name':'a'},{'name':'b'}");
  world.add_claim("c2", cat(result("a"), ",", result("b")));
  world.add_claim("c10", "");

  EXPECT_EQ(world.show("claims", "table", "default"),
            "NAME   STATE     DEVICES    NODE     POD      AGE\n"
            "c2     held      2 gpu.io   n1       p        60s\n"
            "c10    pending   <none>     <none>   <none>   60s\n");
  EXPECT_EQ(world.show("claims", "table", "other"), "");
  EXPECT_THAT(world.show("claims", "wide"), HasSubstr("n1/a,n1/b"));
}

TEST(TopNodes, count_their_devices_by_driver) {
  World world;
  world.take(
      "{'kind':'Node','metadata':{'name':'n2'},'spec':{'unschedulable':true},'status':{"
      "'conditions':[{'type':'Ready','status':'True'}]}}");
  world.take(
      "{'kind':'Node','metadata':{'name':'n1'},'status':{'conditions':[{'type':'Ready',"
      "'status':'False'}]}}");
  world.add_slice("n1",
                  "{'name':'a'},{'name':'b'},{'name':'c','taints':[{'key':'k','effect':"
                  "'NoSchedule'}]}");
  world.add_claim("c", result("a"));
  world.take("{'kind':'Pod','metadata':{'name':'p'},'spec':{'nodeName':'n1'}}");

  EXPECT_EQ(world.show("nodes"),
            "NODE   STATUS                     PODS   DRIVER   DEVICES   HELD   FREE   UNFIT\n"
            "n1     NotReady                   1      gpu.io   3         1      1      1\n"
            "n2     Ready,SchedulingDisabled   0      <none>   0         0      0      0\n");
  const Value document = *json::parse(world.show("nodes", "json"));
  EXPECT_EQ(document["kind"].as_string(), "NodeList");
  EXPECT_EQ(document["items"][0]["drivers"][0]["free"].as_int(), 1);
}

TEST(TopOrder, counts_numbers_in_names_as_numbers) {
  EXPECT_TRUE(comes_before("gpu-2", "gpu-10"));
  EXPECT_FALSE(comes_before("gpu-10", "gpu-2"));
  EXPECT_TRUE(comes_before("a", "a1"));
  EXPECT_TRUE(comes_before("a01b", "a1c"));
  EXPECT_FALSE(comes_before("a", "a"));
}

}  // namespace
}  // namespace dibs::cli
