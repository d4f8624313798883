// Decisions without an API server: what is remembered between attempts must not change them.

#include "scheduler/attempt.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/strings.h"
#include "json/parse.h"
#include "scheduler/node_row.h"

namespace dibs::scheduler {
namespace {

using json::Value;

Value from_text(std::string text) {
  std::replace(text.begin(), text.end(), '\'', '"');
  return json::parse(text).value();
}

/// Nodes of two devices each, some of them tainted, cordoned or too small.
class World {
 public:
  explicit World(int nodes)
      : devices(alloc::Features::all(), [] { return std::string("share"); }),
        placer(state, devices) {
    devices.put_class(from_text("{'metadata':{'name':'gpu'},'spec':{}}"));
    for (int n = 0; n < nodes; ++n) {
      std::string spec;
      if (n % 3 == 0) spec = "'taints':[{'key':'a','effect':'NoSchedule'}]";
      if (n % 7 == 1) spec = "'taints':[{'key':'b','effect':'PreferNoSchedule'}]";
      if (n % 5 == 0) spec = "'unschedulable':true";
      state.put_node(
          from_text(cat("{'metadata':{'name':'n", n, "','labels':{'zone':'z", n % 4, "'}},'spec':{",
                        spec, "},'status':{'allocatable':{'pods':'", n % 4 == 1 ? 2 : 5,
                        "','cpu':'", 1 + n % 3, "','memory':'4Gi'}}}")));
      devices.put_slice(
          from_text(cat("{'metadata':{'name':'s", n, "'},'spec':{'driver':'d','nodeName':'n", n,
                        "','pool':{'name':'p", n, "','generation':1,'resourceSliceCount':1},",
                        "'devices':[{'name':'x'},{'name':'y'}]}}")));
    }
  }

  PodPtr pod(int number, const std::string& more) {
    const std::string name = cat("p", number);
    const Value claim = from_text(
        cat("{'metadata':{'name':'", name, "','namespace':'ns','uid':'c", number,
            "','resourceVersion':'", number + 1, "','ownerReferences':[{'kind':'Pod','uid':'u",
            number, "'}]},'spec':{'devices':{'requests':[{'name':'r','exactly':{",
            "'deviceClassName':'gpu','allocationMode':'ExactCount','count':", 1 + number % 2,
            "}}]}}}"));
    devices.put_claim(claim);
    claims[name] = claim;
    return Pod::read(from_text(cat(
        "{'metadata':{'name':'", name, "','namespace':'ns','uid':'u", number,
        "'},'spec':{'schedulerName':'default-scheduler','containers':[{'name':'c',",
        "'resources':{'requests':{'cpu':'400m'},'claims':[{'name':'r'}]}}],",
        "'resourceClaims':[{'name':'r','resourceClaimTemplateName':'t'}]", more,
        "},'status':{'resourceClaimStatuses':[{'name':'r','resourceClaimName':'", name, "'}]}}")));
  }

  /// The decision as text; a placed pod stays.
  std::string place(const PodPtr& pod) {
    const Decision made = placer.place(*pod, profile, Time{});
    if (made.kind != Decision::Kind::placed) {
      std::string text = made.failure.message;
      for (const NodeInfo* node : made.resolvable) append(text, " ", node->name);
      return text;
    }
    state.add_pod(pod, made.node->name);
    devices.reserve(made.run.claims[0].key, made.devices.allocations[0]);
    return cat(made.node->name, json::write(made.devices.allocations[0]));
  }

  void remove(const PodPtr& pod) {
    state.remove_pod(pod->key);
    devices.remove_claim(claims[std::string(pod->name)]);
  }

  ClusterState state;
  Devices devices;
  Placer placer;
  Profile profile = Profile::standard();
  std::map<std::string, Value> claims;
};

TEST(Placer, decides_the_same_whether_it_remembers_refusals_or_not) {
  // So few that all are compared; of more, those that refuse make room for others.
  World one(95);
  World other(95);
  std::deque<std::pair<PodPtr, PodPtr>> alive;
  int failed = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string more = i % 5 == 0   ? ",'nodeSelector':{'zone':'z1'}"
                             : i % 5 == 1 ? ",'tolerations':[{'operator':'Exists'}]"
                                          : "";
    const PodPtr pod = one.pod(i, more);
    const PodPtr twin = other.pod(i, more);
    // As after a change that concerns all nodes.
    other.devices.forget_node("none");

    const std::string decision = one.place(pod);

    ASSERT_EQ(decision, other.place(twin)) << "pod " << i;
    if (decision.starts_with("0/")) {
      ++failed;
    } else {
      alive.emplace_back(pod, twin);
    }
    if (i % 3 == 2 && !alive.empty()) {
      one.remove(alive.front().first);
      other.remove(alive.front().second);
      alive.pop_front();
    }
  }
  EXPECT_GT(failed, 50);
  EXPECT_LT(failed, 550);
}

TEST(Placer, counts_nodes_that_it_passed_by_among_the_reasons) {
  World world(4);  // n0 is cordoned, n3 tainted; n1 and n2 take pods
  for (int i = 1; i < 5; i += 2) ASSERT_TRUE(world.place(world.pod(i, "")).starts_with("n"));

  const std::string first = world.place(world.pod(5, ""));
  const std::string again = world.place(world.pod(7, ""));

  EXPECT_EQ(first,
            "0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were "
            "unschedulable, 2 cannot allocate all claims.");
  EXPECT_EQ(again, first);
}

TEST(Placer, holds_a_pod_back_whose_selector_fails_on_one_node) {
  World world(0);
  world.devices.put_class(
      from_text("{'metadata':{'name':'gpu'},'spec':{'selectors':[{'cel':{'expression':"
                "'device.driver == \\'d\\' && device.attributes[\\'d\\'].good'}}]}}"));
  const auto add = [&](const std::string& name, const std::string& driver,
                       const std::string& attributes) {
    world.state.put_node(from_text(
        cat("{'metadata':{'name':'", name, "'},'status':{'allocatable':{'pods':'5','cpu':'4'}}}")));
    world.devices.put_slice(from_text(cat("{'metadata':{'name':'", name, "'},'spec':{'driver':'",
                                          driver, "','nodeName':'", name, "','pool':{'name':'",
                                          name, "','generation':1,'resourceSliceCount':1},",
                                          "'devices':[{'name':'x','attributes':{", attributes,
                                          "}},{'name':'y','attributes':{", attributes, "}}]}}")));
  };
  add("a", "d", "'good':{'bool':true}");
  add("other", "e", "");  // not of the class: its devices need no such attribute
  ASSERT_TRUE(world.place(world.pod(2, "")).starts_with("a"));
  add("b", "d", "'bad':{'bool':true}");
  EXPECT_EQ(world.place(world.pod(4, "")),
            "running \"DynamicResources\" filter plugin: class gpu: selector #0 on device d/b/x: "
            "CEL runtime error: no such key: good. consider using CEL optional chaining (.? "
            "followed by orValue()) or guarding the check with has() for optional fields");
  // A node that it cannot go to has no say.
  world.state.put_node(from_text(
      "{'metadata':{'name':'b'},'spec':{'unschedulable':true},'status':{'allocatable':{'pods':'5',"
      "'cpu':'4'}}}"));
  EXPECT_TRUE(world.place(world.pod(6, "")).starts_with("a"));
}

TEST(NodeRow, follows_pods_taints_and_nominations) {
  ClusterState state;
  const auto put = [&](const std::string& spec) {
    state.put_node(from_text(cat("{'metadata':{'name':'n'},'spec':{", spec,
                                 "},'status':{'allocatable':{'pods':'10','cpu':'2',",
                                 "'memory':'1Gi','ephemeral-storage':'100'}}}")));
  };
  put("");
  const PodPtr pod = Pod::read(from_text(
      "{'metadata':{'name':'p','namespace':'ns','uid':'u'},'spec':{'containers':[{'name':'c',"
      "'resources':{'requests':{'cpu':'500m','ephemeral-storage':'30'}}}]}}"));

  state.add_pod(pod, "n");
  EXPECT_EQ(state.rows()[0].cpu, 2000);
  EXPECT_EQ(state.rows()[0].used_cpu, 500);
  EXPECT_EQ(state.rows()[0].free_storage, 70);
  EXPECT_EQ(state.rows()[0].free_pods, 9);
  EXPECT_EQ(state.rows()[0].hints, 0U);

  state.remove_pod(pod->key);
  state.nominate(pod, "n");
  EXPECT_EQ(state.rows()[0].used_cpu, 0);
  EXPECT_EQ(state.rows()[0].hints, NodeRow::kNominated);

  state.drop_nomination(pod->key);
  put("'taints':[{'key':'a','effect':'NoExecute'},{'key':'b','effect':'PreferNoSchedule'}]");
  EXPECT_EQ(state.rows()[0].hints, NodeRow::kTainted | NodeRow::kAvoided);
  put("'unschedulable':true");
  EXPECT_EQ(state.rows()[0].hints, NodeRow::kCordoned);
}

TEST(NodeRow, stays_beside_its_node_when_another_goes) {
  ClusterState state;
  for (int n = 0; n < 3; ++n) {
    state.put_node(from_text(
        cat("{'metadata':{'name':'n", n, "'},'status':{'allocatable':{'cpu':'", n + 1, "'}}}")));
  }

  state.remove_node("n0");

  ASSERT_EQ(state.rows().size(), 2U);
  for (const NodeInfo* node : state.nodes()) {
    EXPECT_EQ(state.rows()[node->index].cpu, node->allocatable.cpu) << node->name;
  }
}

}  // namespace
}  // namespace dibs::scheduler
