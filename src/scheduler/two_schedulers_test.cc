// Two schedulers at once on one server, as when a leader has lost its lease and does not know it
// yet: whatever they decide, no device is allocated twice and no pod stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "scheduler/test_cluster.h"

namespace dibs::scheduler::test {
namespace {

class TwoSchedulers : public testing::TestWithParam<int> {
 protected:
  TwoSchedulers() : cluster({}, world()), other(*cluster.api, cluster.sim.runtime(), {}) {
    other.start();
    cluster.settle();
  }
  ~TwoSchedulers() override {
    other.stop();
    cluster.sim.run_until_idle();
  }

  static runtime::SimOptions world() {
    runtime::SimOptions made;
    made.seed = static_cast<std::uint64_t>(GetParam());
    made.shuffle = true;
    return made;
  }
  void expect_each_device_once() {
    const std::vector<std::string> held = cluster.held_devices();
    EXPECT_EQ(std::set<std::string>(held.begin(), held.end()).size(), held.size())
        << testing::PrintToString(held);
  }

  TestCluster cluster;
  Scheduler other;
};

TEST_P(TwoSchedulers, give_every_device_once) {
  cluster.add_class();
  for (const char* node : {"a", "b", "c"}) {
    cluster.add_node(node);
    cluster.add_devices(node, 2);
  }
  for (int i = 0; i < 9; ++i) {
    cluster.add_claim(cat("c", i));
    cluster.add_claim_pod(cat("p", i), cat("c", i));
    if (i % 3 == 2) expect_each_device_once();
  }
  cluster.settle(std::chrono::seconds(60));

  expect_each_device_once();
  EXPECT_EQ(cluster.held_devices().size(), 6U);
  int placed = 0;
  for (int i = 0; i < 9; ++i) {
    const std::string node = cluster.node_of(cat("p", i));
    const Value claim = cluster.get(kClaimsOf, "default", cat("c", i));
    const Value& results = claim["status"]["allocation"]["devices"]["results"];
    // A pod is where the devices of its claim are, and has them to itself.
    EXPECT_EQ(node.empty(), results.empty()) << i;
    if (node.empty()) continue;
    ++placed;
    EXPECT_EQ(results[0]["pool"].as_string(), node);
    EXPECT_EQ(claim["status"]["reservedFor"].size(), 1U);
  }
  EXPECT_EQ(placed, 6);
}

TEST_P(TwoSchedulers, agree_on_a_shared_claim) {
  cluster.add_class();
  for (const char* node : {"a", "b"}) {
    cluster.add_node(node);
    cluster.add_devices(node, 1);
  }
  cluster.add_claim("shared");
  for (int i = 0; i < 4; ++i) cluster.add_claim_pod(cat("p", i), "shared");
  cluster.settle(std::chrono::seconds(60));

  const Value claim = cluster.get(kClaimsOf, "default", "shared");
  EXPECT_EQ(claim["status"]["reservedFor"].size(), 4U);
  const std::string node = claim["status"]["allocation"]["devices"]["results"][0]["pool"].str();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cluster.node_of(cat("p", i)), node) << i;
  expect_each_device_once();
}

TEST_P(TwoSchedulers, yield_to_whoever_else_writes_allocations) {
  cluster.add_class();
  cluster.add_node("a");
  cluster.add_devices("a", 2);
  cluster.add_claim("theirs");
  cluster.add_claim("ours");
  cluster.add_claim_pod("p", "ours");
  // Before the schedulers hear of it, somebody takes the first device for another claim.
  client::WriteOptions write;
  write.subresource = "status";
  (void)cluster.api->patch(
      kClaimsOf, "default", "theirs", client::PatchType::merge,
      from_text("{'status':{'allocation':{'devices':{'results':[{'request':'d','driver':"
                "'gpu.example.com','pool':'a','device':'gpu-0'}]}}}}"),
      write);
  cluster.settle(std::chrono::seconds(60));

  expect_each_device_once();
  EXPECT_EQ(cluster.node_of("p"), "a");
}

INSTANTIATE_TEST_SUITE_P(Seeds, TwoSchedulers, testing::Range(1, 13));

}  // namespace
}  // namespace dibs::scheduler::test
