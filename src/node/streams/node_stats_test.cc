#include "node/streams/node_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/test_text.h"
#include "node/streams/fake_runtime.h"

namespace dibs::node {
namespace {

using json::Value;
using testing::HasSubstr;
using testing::Not;

constexpr Time kStart = {1'700'000'000'000'000'000};

/// One pod with one container that runs.
class CountingRuntime : public FakeRuntime {
 public:
  Result<std::vector<SandboxStatus>> list_sandboxes() override {
    SandboxStatus ready;
    ready.id = "s";
    ready.state = SandboxState::ready;
    ready.name = "p";
    ready.name_space = "ns";
    ready.uid = "u";
    ready.created = kStart;
    SandboxStatus gone = ready;
    gone.id = "gone";
    gone.state = SandboxState::not_ready;
    return std::vector<SandboxStatus>{ready, gone};
  }
  Result<std::vector<ContainerStatus>> list_containers() override {
    ContainerStatus one;
    one.id = "i";
    one.sandbox_id = "s";
    one.name = "c";
    one.image = "busy\"box";
    one.state = ContainerState::running;
    one.started = kStart;
    ContainerStatus ended = one;
    ended.id = "e";
    ended.name = "ended";
    ended.state = ContainerState::exited;
    return std::vector<ContainerStatus>{one, ended};
  }
  std::optional<Usage> usage(const std::string& id) override {
    Usage out = counted;
    if (id == "s") out.memory_working_set += 1;
    return out;
  }
  std::vector<InterfaceUsage> interfaces(const std::string&) override {
    InterfaceUsage one;
    one.name = "eth0";
    one.received_bytes = 12;
    one.sent_bytes = 34;
    return {one};
  }

  Usage counted;
};

class NodeStatsTest : public testing::Test {
 protected:
  NodeStatsTest() {
    containers.counted.cpu_nanos = 2'500'000'000;
    containers.counted.memory_working_set = 1000;
    containers.counted.memory_limit = 4000;
    NodeStatsSources sources;
    sources.node_name = "n";
    sources.started = kStart;
    sources.pods = [] {
      return std::vector<Value>{json::test::from_text("{'metadata': {'uid': 'u', 'name': 'p'}}")};
    };
    sources.machine = [] {
      MachineUsage out;
      out.usage.cpu_nanos = 7'000'000'000;
      out.usage.memory_working_set = 70;
      out.memory_total = 700;
      return out;
    };
    sources.disk = [] { return FileSystemUsage{100, 60, 10, 4}; };
    sources.storage = [](const Value&) {
      PodStorage out;
      out.total = 9;
      out.containers = {{"c", 5, 3}};
      return out;
    };
    stats = std::make_unique<NodeStats>(containers, std::move(sources));
  }

  CountingRuntime containers;
  std::unique_ptr<NodeStats> stats;
};

TEST_F(NodeStatsTest, sums_up_node_pods_and_containers) {
  const Value first = stats->summary(kStart, false);
  EXPECT_FALSE(first["node"]["cpu"].contains("usageNanoCores"));
  containers.counted.cpu_nanos += 1'000'000'000;
  const Value all = stats->summary(kStart + std::chrono::seconds(2), false);

  EXPECT_EQ(all["node"]["fs"]["usedBytes"].as_int(), 40);
  EXPECT_EQ(all["node"]["fs"]["inodesUsed"].as_int(), 6);
  ASSERT_EQ(all["pods"].size(), 1u);
  const Value& pod = all["pods"][0];
  EXPECT_EQ(pod["podRef"]["uid"].as_string(), "u");
  EXPECT_EQ(pod["memory"]["workingSetBytes"].as_int(), 1001);
  EXPECT_EQ(pod["network"]["rxBytes"].as_int(), 12);
  EXPECT_EQ(pod["ephemeral-storage"]["usedBytes"].as_int(), 9);
  ASSERT_EQ(pod["containers"].size(), 1u);
  const Value& one = pod["containers"][0];
  EXPECT_EQ(one["cpu"]["usageCoreNanoSeconds"].as_int(), 3'500'000'000);
  EXPECT_EQ(one["cpu"]["usageNanoCores"].as_int(), 500'000'000);
  EXPECT_EQ(one["memory"]["availableBytes"].as_int(), 3000);
  EXPECT_EQ(one["rootfs"]["usedBytes"].as_int(), 5);
  EXPECT_EQ(one["logs"]["usedBytes"].as_int(), 3);

  const Value few = stats->summary(kStart + std::chrono::seconds(4), true);
  EXPECT_FALSE(few["node"].contains("fs"));
  EXPECT_FALSE(few["pods"][0].contains("network"));
}

TEST_F(NodeStatsTest, has_the_kubelets_metrics) {
  const std::string text = stats->resource_metrics(kStart);
  EXPECT_THAT(text,
              HasSubstr("container_cpu_usage_seconds_total{container=\"c\",pod=\"p\",namespace="
                        "\"ns\"} 2.500000000 1700000000000\n"));
  EXPECT_THAT(text, HasSubstr("pod_memory_working_set_bytes{pod=\"p\",namespace=\"ns\"} 1001 "
                              "1700000000000\n"));
  EXPECT_THAT(text, HasSubstr("node_memory_working_set_bytes 70 1700000000000\n"));
  EXPECT_THAT(text, HasSubstr("resource_scrape_error 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("ended")));
}

TEST_F(NodeStatsTest, has_the_metrics_of_cadvisor) {
  const std::string text = stats->cadvisor_metrics(kStart);
  EXPECT_THAT(text, HasSubstr("container_cpu_usage_seconds_total{cpu=\"total\",container=\"c\",id="
                              "\"/kubepods/podu/i\",image=\"busy\\\"box\",name=\"i\",namespace="
                              "\"ns\",pod=\"p\"} 2.500000000 1700000000000\n"));
  EXPECT_THAT(text,
              HasSubstr("container_network_receive_bytes_total{interface=\"eth0\",container="
                        "\"\",id=\"/kubepods/podu\",image=\"\",name=\"\",namespace=\"ns\",pod="
                        "\"p\"} 12 1700000000000\n"));
  EXPECT_THAT(text, HasSubstr("machine_memory_bytes 700\n"));
}

TEST(MachineUsage, is_read_from_this_machine) {
  const MachineUsage usage = read_machine_usage();
  EXPECT_GT(usage.usage.cpu_nanos, 0u);
  EXPECT_GT(usage.memory_total, usage.usage.memory_working_set);
  EXPECT_GT(usage.most_processes, 0u);
}

}  // namespace
}  // namespace dibs::node
