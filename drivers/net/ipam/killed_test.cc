// Processes that are killed, stalled or met by others at every single write: no address is ever
// given twice, and none is lost once the collector has run.
#include <gmock/gmock.h>

#include "drivers/net/ipam/test_ipam.h"

namespace dibs::drivers::net {
namespace {

using test::ask;
using test::from_text;
using test::IpamWorld;
using test::kPods;
using test::kSets;
using test::Value;

const std::vector<NicAsk> kNics = {ask("eth0", {"p"}, {"p6"}), ask("net1", {"p"}, {"p6"})};

class AddressesTest : public testing::Test {
 public:
  AddressesTest() {
    world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.200");
    world.make_pool("p6", "fd00::/64", "fd00::1-fd00::ff");
    collector = &world.start_collector();
  }
  void expect_collected() {
    world.settle(std::chrono::minutes(3));
    world.expect_nothing_lost();
  }

  IpamWorld world;
  IpamWorld::Process* collector = nullptr;
};

class KilledTest : public AddressesTest, public testing::WithParamInterface<bool> {
 public:
  static bool arrives() { return GetParam(); }

  /// An Ipam that dies at this write of its own.
  IpamWorld::Process& mortal(int write) {
    auto& process = world.start_ipam();
    process.way.die_at(write, arrives());
    return process;
  }
};

INSTANTIATE_TEST_SUITE_P(Writes, KilledTest, testing::Bool(), [](const auto& info) {
  return info.param ? "that_arrive" : "that_are_lost";
});

TEST_P(KilledTest, an_assignment_is_taken_up_by_the_next_process) {
  bool died = true;
  for (int write = 0; died; ++write) {
    SCOPED_TRACE(cat("write ", write));
    ASSERT_LT(write, 20);
    const Value pod = world.make_pod(cat("pod-", write));
    auto& first = mortal(write);
    const auto lost = first.ipam->assign(pod, "node-0", kNics);
    died = first.way.dead();
    EXPECT_EQ(lost.ok(), !died);
    world.expect_exact();
    world.end(first);

    auto& second = world.start_ipam();
    const auto assigned = second.ipam->assign(pod, "node-0", kNics);

    ASSERT_TRUE(assigned.ok()) << assigned.error().message();
    EXPECT_EQ(assigned->size(), 2u);
    world.expect_exact();
    // Nothing was left behind: what the first one had taken was taken up.
    EXPECT_EQ(world.status("p").used().count(), 2 * (write + 1));
    EXPECT_EQ(world.status("p6").used().count(), 2 * (write + 1));
    world.end(second);
  }
  expect_collected();
}

TEST_P(KilledTest, an_assignment_of_a_pod_that_goes_is_collected) {
  bool died = true;
  for (int write = 0; died; ++write) {
    SCOPED_TRACE(cat("write ", write));
    ASSERT_LT(write, 20);
    const std::string name = cat("pod-", write);
    const Value pod = world.make_pod(name);
    auto& first = mortal(write);
    (void)first.ipam->assign(pod, "node-0", kNics);
    died = first.way.dead();
    world.end(first);

    world.kill_pod(name);
    expect_collected();

    EXPECT_EQ(world.status("p").used().count(), 0);
    EXPECT_TRUE(world.endpoint(name).is_null());
  }
}

TEST_P(KilledTest, a_release_is_ended_by_the_collector) {
  bool died = true;
  for (int write = 0; died; ++write) {
    SCOPED_TRACE(cat("write ", write));
    ASSERT_LT(write, 20);
    const std::string name = cat("pod-", write);
    const Value pod = world.make_pod(name);
    auto& whole = world.start_ipam();
    ASSERT_TRUE(whole.ipam->assign(pod, "node-0", kNics).ok());
    world.end(*collector);
    world.kill_pod(name);

    auto& first = mortal(write);
    (void)first.ipam->release("default", name, client::uid_of(pod));
    died = first.way.dead();
    world.expect_exact();
    world.end(first);
    world.end(whole);

    collector = &world.start_collector();
    expect_collected();
    EXPECT_EQ(world.status("p").used().count(), 0);
  }
}

TEST_P(KilledTest, a_pod_of_a_stateful_set_keeps_its_addresses) {
  const Value set = world.create(kSets, "default", R"({'metadata': {'name': 'web'},
      'spec': {'replicas': 50, 'selector': {'matchLabels': {'a': 'b'}}, 'serviceName': 's',
      'template': {'metadata': {'labels': {'a': 'b'}},
                   'spec': {'containers': [{'name': 'c', 'image': 'i'}]}}}})");
  const std::string owner = cat(", 'ownerReferences': [{'apiVersion': 'apps/v1', ",
                                "'kind': 'StatefulSet', 'name': 'web', 'controller': true, ",
                                "'uid': '", client::uid_of(set), "'}]");
  bool died = true;
  for (int write = 0; died; ++write) {
    SCOPED_TRACE(cat("write ", write));
    ASSERT_LT(write, 20);
    const std::string name = cat("web-", write);
    auto& whole = world.start_ipam();
    const auto before = whole.ipam->assign(world.make_pod(name, owner), "node-0", kNics);
    ASSERT_TRUE(before.ok());
    world.kill_pod(name);
    const Value pod = world.make_pod(name, owner);

    auto& first = mortal(write);
    (void)first.ipam->assign(pod, "node-1", kNics);
    died = first.way.dead();
    world.end(first);
    world.settle(std::chrono::minutes(3));
    const auto after = whole.ipam->assign(pod, "node-1", kNics);

    ASSERT_TRUE(after.ok()) << after.error().message();
    EXPECT_EQ(*after, *before);
    world.expect_exact();
    world.end(whole);
  }
  expect_collected();
}

TEST_P(KilledTest, a_collector_is_followed_by_the_next_one) {
  bool died = true;
  for (int write = 0; died; ++write) {
    SCOPED_TRACE(cat("write ", write));
    ASSERT_LT(write, 40);
    world.end(*collector);
    auto& whole = world.start_ipam();
    for (int i = 0; i < 3; ++i) {
      const std::string name = cat("pod-", write, "-", i);
      const Value pod = world.make_pod(name);
      // One is whole, one has records without an endpoint, one has an empty endpoint.
      auto& process = i == 0 ? whole : mortal(i == 1 ? 4 : 1);
      (void)process.ipam->assign(pod, "node-0", kNics);
      if (i != 0) world.end(process);
      world.kill_pod(name);
    }
    auto& first = world.process();
    first.way.die_at(write, arrives());
    first.collector = Collector::start({first.api, world.sim.runtime(), *world.files}, {}).value();
    world.settle(std::chrono::minutes(3));
    died = first.way.dead();
    world.expect_exact();
    world.end(first);

    collector = &world.start_collector();
    expect_collected();
    EXPECT_EQ(world.status("p").used().count(), 0);
    world.end(whole);
  }
}

TEST_F(AddressesTest, stay_exact_when_others_act_at_any_write) {
  // What another process may do while this one is about to write.
  struct Act {
    const char* name;
    std::function<void(const Value& pod)> act;
  };
  auto& other = world.start_ipam();
  int others = 0;
  const std::vector<Act> acts = {
      {"another pod gets addresses",
       [&](const Value&) {
         const Value pod = world.make_pod(cat("other-", ++others));
         EXPECT_TRUE(other.ipam->assign(pod, "node-9", kNics).ok());
       }},
      {"the same pod is asked for",
       [&](const Value& pod) { (void)other.ipam->assign(pod, "node-0", kNics); }},
      {"the pod goes and is collected",
       [&](const Value& pod) {
         world.kill_pod(std::string(client::name_of(pod)));
         world.settle(std::chrono::seconds(5));
       }},
      {"the pod goes and is released",
       [&](const Value& pod) {
         world.kill_pod(std::string(client::name_of(pod)));
         EXPECT_TRUE(
             other.ipam->release("default", client::name_of(pod), client::uid_of(pod)).ok());
       }},
      {"it stalls for ten minutes, others get addresses meanwhile",
       [&](const Value&) {
         world.settle(std::chrono::minutes(10));
         const Value pod = world.make_pod(cat("other-", ++others));
         EXPECT_TRUE(other.ipam->assign(pod, "node-9", kNics).ok());
       }},
  };
  for (const auto& act : acts) {
    SCOPED_TRACE(act.name);
    int writes = 1;
    for (int write = 0; write < writes; ++write) {
      SCOPED_TRACE(cat("write ", write));
      const Value pod = world.make_pod(cat("pod-", ++others));
      auto& process = world.start_ipam();
      process.way.between = [&](int now) {
        if (now != write) return;
        act.act(pod);
        world.expect_exact();
      };
      const auto assigned = process.ipam->assign(pod, "node-0", kNics);
      writes = std::max(writes, std::min(process.way.writes(), 8));
      world.expect_exact();
      if (assigned) {
        const auto endpoint = parse_endpoint(world.endpoint(std::string(client::name_of(pod))));
        EXPECT_TRUE(endpoint.nics == *assigned || endpoint.nics.empty());
      }
      world.kill_pod(std::string(client::name_of(pod)));
      world.end(process);
    }
    expect_collected();
  }
}

/// Many nodes, many pods, a kill now and then, all of it drawn by a seed.
class StormTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, StormTest, testing::Range(1, 7));

TEST_P(StormTest, loses_nothing_and_gives_nothing_twice) {
  runtime::SimOptions options;
  options.seed = static_cast<std::uint64_t>(GetParam());
  options.shuffle = true;
  IpamWorld world(options);
  world.make_pool("p", "172.18.0.0/16", "172.18.30.1-172.18.30.60");
  world.make_pool("q", "172.18.0.0/16", "172.18.40.1-172.18.40.60");
  world.make_pool("p6", "fd00::/64", "fd00::1-fd00::60");
  world.start_collector();
  world.start_collector();  // two are not worse than one
  auto& random = world.sim.runtime().random;
  IpamOptions few;
  few.records = 10;
  std::vector<IpamWorld::Process*> nodes;
  for (int i = 0; i < 6; ++i) nodes.push_back(&world.start_ipam(few));
  const std::vector<std::vector<NicAsk>> asks = {
      {ask("eth0", {"p", "q"})},
      {ask("eth0", {"q", "p"}, {"p6"})},
      {ask("eth0", {"p"}), ask("net1", {"q"}, {"p6"})},
  };
  std::map<std::string, Value> pods;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(cat("round ", round));
    for (int i = 0; i < 8; ++i) {
      const std::size_t at = random.below(nodes.size());
      auto* node = nodes[at];
      const std::string name = cat("pod-", random.below(40));
      const auto known = pods.find(name);
      if (known != pods.end() && random.below(2) == 0) {
        const Value pod = known->second;
        pods.erase(known);
        world.kill_pod(name);
        world.sim.runtime().executor.post([node, pod] {
          (void)node->ipam->release("default", client::name_of(pod), client::uid_of(pod));
        });
        continue;
      }
      if (known == pods.end()) pods[name] = world.make_pod(name);
      world.sim.runtime().executor.post(
          [node, at, pod = pods[name], nics = asks[random.below(asks.size())]] {
            (void)node->ipam->assign(pod, cat("node-", at), nics);
          });
    }
    const std::size_t victim = random.below(nodes.size());
    nodes[victim]->way.die_at(nodes[victim]->way.writes() + static_cast<int>(random.below(9)),
                              random.below(2) == 0);
    world.settle(std::chrono::seconds(static_cast<int>(random.below(90))));
    world.expect_exact();
    for (auto& node : nodes) {
      if (!node->way.dead()) continue;
      world.end(*node);
      node = &world.start_ipam(few);
    }
  }
  world.settle(std::chrono::minutes(15));
  world.expect_nothing_lost();
  for (const auto& [name, pod] : pods) world.kill_pod(name);
  world.settle(std::chrono::minutes(15));
  for (const char* pool : {"p", "q", "p6"}) {
    EXPECT_EQ(world.pool(pool)["status"]["allocatedIPCount"], Value(0)) << pool;
  }
}

}  // namespace
}  // namespace dibs::drivers::net
