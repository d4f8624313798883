#include "bench/workload.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::bench {
namespace {

constexpr const char* kFile = R"(
- name: Case
  featureGates: {A: true, B: false}
  schedulerConfigPath: config.yaml
  workloadTemplate:
  - opcode: createNodes
    countParam: $nodes
  - opcode: createAny
    templatePath: t.yaml
    count: 3
    templateParams:
      roots: $roots|2
      selectors: $selectors|
      fixed: 7
  - opcode: createPods
    countParam: $pods
    steadyStateParam: $steady
  workloads:
  - name: one
    labels: [performance]
    featureGates: {B: true}
    params: {nodes: 5, pods: 10, steady: false, selectors: [{cel: {expression: x}}]}
  - name: two
    params: {nodes: 1, steady: true}
)";

TEST(Workloads, ParametersAreResolved) {
  auto read = read_workloads(kFile);
  ASSERT_TRUE(read.ok()) << read.error().message();
  ASSERT_EQ(read->size(), 2U);
  const Workload& one = (*read)[0];
  EXPECT_EQ(one.name, "Case/one");
  EXPECT_EQ(one.labels, std::vector<std::string>{"performance"});
  EXPECT_EQ(one.gates, (std::map<std::string, bool>{{"A", true}, {"B", true}}));
  EXPECT_EQ(one.scheduler_config, "config.yaml");
  EXPECT_EQ(one.problem, "");
  ASSERT_EQ(one.ops.size(), 3U);
  EXPECT_EQ(one.ops[0].code, "createNodes");
  EXPECT_EQ(json::write(one.ops[0].fields), R"({"count":5})");
  EXPECT_EQ(one.ops[1].fields["count"].as_int(), 3);
  EXPECT_EQ(one.ops[1].template_params["roots"].as_int(), 2);
  EXPECT_EQ(one.ops[1].template_params["fixed"].as_int(), 7);
  EXPECT_EQ(one.ops[1].template_params["selectors"][0]["cel"]["expression"].as_string(), "x");
  EXPECT_TRUE(one.ops[2].fields["steadyState"].is_boolean());

  EXPECT_EQ((*read)[1].problem, "createPods.countParam: parameter \"pods\" is not given");
}

TEST(Workloads, WhatIsNoListIsRefused) {
  EXPECT_FALSE(read_workloads("a: b").ok());
  EXPECT_FALSE(read_workloads("- a: [").ok());
}

}  // namespace
}  // namespace dibs::bench
