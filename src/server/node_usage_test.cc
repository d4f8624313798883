#include "server/node_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "runtime/sim_runtime.h"

namespace dibs::server {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

std::string page(Time at, double node, double container, std::string_view started = "0") {
  const std::string millis = cat(' ', at.nanoseconds / 1'000'000, '\n');
  const std::string_view labels = "{container=\"c\",namespace=\"ns\",pod=\"p\"} ";
  return cat("# HELP container_cpu_usage_seconds_total x\ncontainer_cpu_usage_seconds_total",
             labels, std::to_string(container), millis, "container_memory_working_set_bytes",
             labels, "2.097152e+06", millis, "container_start_time_seconds", labels, started,
             "\nnode_cpu_usage_seconds_total ", std::to_string(node), millis,
             "node_memory_working_set_bytes 1024\nbroken{\nother 3\n");
}

TEST(ResourceMetrics, are_read_whatever_stands_between_them) {
  const Time now{5'000'000'000};
  const NodeSamples read = read_resource_metrics(
      "node_cpu_usage_seconds_total 1.5e+01\nnode_memory_working_set_bytes 7 9000\n"
      "container_cpu_usage_seconds_total{pod=\"a\\\"b\",container=\"c\",namespace=\"n\"} 0.25 "
      "8000\n"
      "container_cpu_usage_seconds_total{pod=\"a\" 1\nnode_cpu_usage_seconds_total NaN\n"
      "container_memory_working_set_bytes{pod=\"x\",container=\"c\",namespace=\"n\"} -1\n\n# x",
      now);
  ASSERT_TRUE(read.node);
  EXPECT_EQ(read.node->cpu_nanos, 15'000'000'000U);
  EXPECT_EQ(read.node->memory, 7U);
  EXPECT_EQ(read.node->at, now);
  ASSERT_EQ(read.pods.size(), 1U);
  const UsageSample& one = read.pods.begin()->second.at("c");
  EXPECT_EQ(read.pods.begin()->first, "n/a\"b");
  EXPECT_EQ(one.cpu_nanos, 250'000'000U);
  EXPECT_EQ(one.at, Time{8'000'000'000});
}

TEST(ResourceMetrics, of_a_node_that_says_too_much_are_some_of_it) {
  std::string text;
  for (int i = 0; i < 30'000; ++i) {
    append(text, "container_memory_working_set_bytes{container=\"c", i,
           "\",namespace=\"n\",pod=\"p", i % 7, "\"} ", i, "\n");
  }
  text +=
      "container_memory_working_set_bytes{container=\"c5\",namespace=\"n\",pod=\"p5\"} 77\n"
      "node_cpu_usage_seconds_total 1";
  const NodeSamples read = read_resource_metrics(text, Time{5'000'000'000});
  std::size_t count = 0;
  for (const auto& [pod, containers] : read.pods) count += containers.size();
  EXPECT_EQ(count, 20'000U);
  EXPECT_EQ(read.pods.at("n/p5").at("c5").memory, 77U);
  EXPECT_TRUE(read.node);
}

class NodeUsageTest : public testing::Test {
 protected:
  std::unique_ptr<NodeUsage> make(std::vector<std::string> nodes) {
    NodeUsage::Sources sources;
    sources.nodes = [nodes] { return nodes; };
    sources.fetch = [this](const std::string& node, const NodeUsage::Fetched& done) {
      ++looks;
      if (node == dead) return done(Error::unavailable("no"));
      if (held) {
        waiting.push_back(done);
      } else {
        done(page(now(), cpu, cpu, started));
      }
    };
    return std::make_unique<NodeUsage>(sim.runtime(), seconds(15), std::move(sources));
  }
  Time now() { return sim.runtime().clock.now(); }

  runtime::SimRuntime sim;
  double cpu = 10;
  std::string started = "0";
  std::string dead;
  bool held = false;
  std::vector<NodeUsage::Fetched> waiting;
  int looks = 0;
};

TEST_F(NodeUsageTest, tells_rates_after_the_second_look) {
  auto usage = make({"a"});
  sim.advance(minutes(1));
  EXPECT_EQ(looks, 0);
  EXPECT_FALSE(usage->node("a"));
  sim.advance(seconds(1));
  EXPECT_EQ(looks, 1);
  EXPECT_FALSE(usage->node("a"));
  cpu = 12;
  sim.advance(seconds(5));

  const auto node = usage->node("a");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->window, seconds(5));
  EXPECT_EQ(node->nano_cores, 400'000'000U);
  EXPECT_EQ(node->memory, 1024U);
  const auto containers = usage->containers("a", "ns", "p");
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_EQ(containers.at("c").nano_cores, 400'000'000U);
  EXPECT_EQ(containers.at("c").memory, 2097152U);
  EXPECT_TRUE(usage->containers("a", "ns", "other").empty());
  EXPECT_TRUE(usage->containers("b", "ns", "p").empty());
}

TEST_F(NodeUsageTest, ends_when_nobody_asks_any_more) {
  auto usage = make({"a"});
  usage->node("a");
  sim.advance(minutes(5));
  const int before = looks;
  EXPECT_LE(before, 12);
  sim.advance(minutes(10));
  EXPECT_EQ(looks, before);
  EXPECT_FALSE(usage->node("a"));
  sim.advance(seconds(1));
  EXPECT_EQ(looks, before + 1);
}

TEST_F(NodeUsageTest, forgets_a_node_that_does_not_answer) {
  auto usage = make({"a", "b"});
  usage->node("a");
  cpu = 11;
  sim.advance(seconds(1));
  sim.advance(seconds(6));
  EXPECT_TRUE(usage->node("a"));
  dead = "a";
  sim.advance(seconds(15));
  EXPECT_FALSE(usage->node("a"));
  EXPECT_TRUE(usage->node("b"));
}

TEST_F(NodeUsageTest, measures_a_new_container_from_its_start) {
  auto usage = make({"a"});
  usage->node("a");
  sim.advance(seconds(30));
  usage->node("a");
  started = cat(now().nanoseconds / 1'000'000'000);
  cpu = 1;  // it began anew
  sim.advance(seconds(20));
  const auto containers = usage->containers("a", "ns", "p");
  ASSERT_EQ(containers.size(), 1U);
  EXPECT_LE(containers.at("c").window, seconds(15));
}

TEST_F(NodeUsageTest, asks_a_few_nodes_at_a_time_and_nothing_after_its_end) {
  std::vector<std::string> nodes;
  for (int i = 0; i < 40; ++i) nodes.push_back(cat("n", i));
  auto usage = make(nodes);
  held = true;
  usage->node("n0");
  sim.advance(minutes(1));
  EXPECT_EQ(looks, 16);
  auto first = std::move(waiting);
  waiting.clear();
  for (const auto& done : first) done(page(now(), 1, 1));
  sim.advance(seconds(1));
  EXPECT_EQ(looks, 32);
  usage->stop();
  for (const auto& done : std::exchange(waiting, {})) done(page(now(), 1, 1));
  usage.reset();
  sim.advance(minutes(1));
  EXPECT_EQ(looks, 32);
}

}  // namespace
}  // namespace dibs::server
