#include "cli/up_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "cli/part_flags.h"
#include "drivers/gpu/gpu_driver.h"
#include "json/parse.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct UpConfig : testing::Test {
  UpConfig() : table(up_flags(flags)) {
    std::string pattern = testing::TempDir() + "config.XXXXXX";
    folder = ::mkdtemp(pattern.data());
    flags.config = folder + "/lab.yaml";
  }
  ~UpConfig() override { std::filesystem::remove_all(folder); }

  Result<> read(const std::string& text, const std::set<std::string>& given = {}) {
    EXPECT_TRUE(runtime::system_files().write(flags.config, text).ok());
    return read_up_config(flags, table, given);
  }
  /// Without the name of the file.
  std::string error(const std::string& text) {
    const auto done = read(text);
    if (done.ok()) return "";
    EXPECT_EQ(done.error().code(), Code::bad_request);
    EXPECT_THAT(done.error().message(), StartsWith(flags.config + ": "));
    return done.error().message().substr(flags.config.size() + 2);
  }

  std::string folder;
  ServeFlags flags;
  Flags table;
};

TEST_F(UpConfig, says_what_flags_say) {
  const auto done = read(
      "name: lab\nbind: 127.0.0.1:0\nnodes: 3\ndetach: true\ntls-san: [a, b]\n"
      "image-alias: busybox,ubuntu\nmetric-resolution: 30s\nemulate-release: '1.30'\n"
      "horizontal-pod-autoscaler-tolerance: 0.2\ngoaway-chance: 0\ndriver: ./mine --level 4\n");
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(flags.name, "lab");
  EXPECT_EQ(flags.bind, "127.0.0.1:0");
  EXPECT_EQ(flags.nodes, 3U);
  EXPECT_TRUE(flags.detach);
  EXPECT_THAT(flags.tls_sans, ElementsAre("a", "b"));
  EXPECT_THAT(flags.image_aliases, ElementsAre("busybox", "ubuntu"));
  EXPECT_EQ(flags.metric_resolution, std::chrono::seconds(30));
  EXPECT_EQ(flags.release, "1.30");
  EXPECT_EQ(flags.autoscaler.tolerance, 0.2);
  EXPECT_THAT(flags.driver_programs, ElementsAre("./mine --level 4"));
  EXPECT_TRUE(flags.groups.empty());
}

TEST_F(UpConfig, tells_of_the_first_key_that_is_there_twice) {
  EXPECT_EQ(error("nodes: 1\nnodes: 2\nbind: a\nbind: b\n"),
            "line 2: key \"nodes\" already set in map");
}

/// Each flag of the one table is a key, so that nothing is written twice.
TEST_F(UpConfig, has_a_key_for_every_flag) {
  for (const Flag& flag : table) {
    if (name_of(flag) == "--config") continue;
    std::string key = name_of(flag);
    key = key.starts_with("--") ? key.substr(2) : to_lower(key);
    const std::string problem = error(key + ": {no: such}\n");
    EXPECT_THAT(problem, StartsWith(cat("line 1: ", key))) << key;
    EXPECT_THAT(problem, testing::Not(HasSubstr("unknown key \"" + key))) << key;
  }
}

TEST_F(UpConfig, gives_way_to_flags_beside_it) {
  flags.bind = "127.0.0.1:7";
  flags.nodes = 1;
  ASSERT_TRUE(
      read("bind: 127.0.0.1:8\nnode-prefix: n-\nnodes: [{count: 4}]\n", {"--bind", "--nodes"})
          .ok());
  EXPECT_EQ(flags.bind, "127.0.0.1:7");
  EXPECT_EQ(flags.nodes, 1U);
  EXPECT_TRUE(flags.groups.empty());
  EXPECT_EQ(flags.node_prefix, "n-");
}

TEST_F(UpConfig, has_nodes_of_several_shapes) {
  const auto done = read(
      "drivers: cpu\nnodes:\n- prefix: big-\n  count: 2\n  labels: {size: big, a.b/c: ''}\n"
      "  taints: [{key: dedicated, value: gpu, effect: NoSchedule}, {key: x, effect: NoExecute}]\n"
      "  capacity: {cpu: 64, memory: 256Gi, pods: 250}\n"
      "  drivers: {gpu: {num-devices: 4, partitions: 2, binding-conditions: true, pcie-roots: "
      "['pci0000:80', 'pci0000:81']}}\n"
      "- {}\n- {prefix: bare-, count: 0, drivers: []}\n");
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_EQ(flags.nodes, 3U);
  ASSERT_EQ(flags.groups.size(), 3U);
  const cluster::NodeGroup& big = flags.groups[0];
  EXPECT_EQ(big.prefix, "big-");
  EXPECT_EQ(big.count, 2U);
  EXPECT_EQ(big.labels.at("size"), "big");
  EXPECT_EQ(big.labels.at("a.b/c"), "");
  EXPECT_EQ(json::write(big.taints), R"([{"key":"dedicated","effect":"NoSchedule","value":"gpu"},)"
                                     R"({"key":"x","effect":"NoExecute"}])");
  EXPECT_EQ(big.capacity.at("cpu"), "64");
  EXPECT_EQ(big.capacity.at("memory"), "256Gi");
  EXPECT_EQ(big.capacity.at("pods"), "250");
  EXPECT_THAT(big.drivers, ElementsAre("gpu"));
  drivers::GpuDriverOptions gpu;
  big.tuning.at("gpu").gpu(gpu);
  EXPECT_EQ(gpu.devices, 4U);
  EXPECT_EQ(gpu.gpu_partitions, 2U);
  EXPECT_TRUE(gpu.binding_conditions);
  EXPECT_THAT(gpu.gpu_pcie_roots, ElementsAre("pci0000:80", "pci0000:81"));
  EXPECT_EQ(flags.groups[1].prefix, "node-");
  EXPECT_THAT(flags.groups[1].drivers, ElementsAre("cpu"));
  EXPECT_THAT(flags.groups[2].drivers, ElementsAre());
}

TEST_F(UpConfig, drivers_have_options_as_text_too) {
  ASSERT_TRUE(read("nodes: 2\ndrivers: ['gpu:num-devices=3', cpu]\n").ok());
  ASSERT_EQ(flags.groups.size(), 1U);
  EXPECT_EQ(flags.groups[0].count, 2U);
  EXPECT_THAT(flags.groups[0].drivers, ElementsAre("gpu", "cpu"));
  drivers::GpuDriverOptions gpu;
  flags.groups[0].tuning.at("gpu").gpu(gpu);
  EXPECT_EQ(gpu.devices, 3U);
}

TEST_F(UpConfig, tells_line_and_key_of_what_is_wrong) {
  EXPECT_EQ(error("bind: x\nnodse: 2\n"), "line 2: unknown key \"nodse\"; did you mean \"nodes\"?");
  EXPECT_THAT(error("zzzzzz: 2\n"), HasSubstr("keys are named as the flags"));
  EXPECT_THAT(error("config: x\n"), StartsWith("line 1: unknown key \"config\""));
  EXPECT_EQ(error("nodes: 2000000\n"),
            "line 1: nodes: \"2000000\": must be a whole number from 0 to 100000");
  EXPECT_EQ(error("nodes: many\n"),
            "line 1: nodes: must be a whole number, or a list of groups of nodes");
  EXPECT_THAT(error("nodes: 1.5\n"), HasSubstr("must be a whole number from 0 to 100000"));
  EXPECT_EQ(error("emulate-release: 1.30\n"),
            "line 1: emulate-release: must be text: put it in quotes");
  EXPECT_EQ(error("wait: 'yes'\n"), "line 1: wait: must be true or false");
  EXPECT_EQ(error("metric-resolution: 15\n"),
            "line 1: metric-resolution: must be a duration, such as 90s, 1m30s or 500ms");
  EXPECT_EQ(error("bind:\n"), "line 1: bind: must be set to something, or left out");
  EXPECT_EQ(error("tls-san: [1]\n"),
            "line 1: tls-san: must be a list of texts: put numbers in quotes");
  EXPECT_EQ(
      error("store: sqlit\n"),
      "line 1: store: \"sqlit\" is not one of sqlite, memory, etcd; did you mean \"sqlite\"?");
  EXPECT_THAT(error("x: 1\na: b: c\n"), HasSubstr("yaml: line 2: "));
  EXPECT_THAT(error("- a\n"), StartsWith("must be keys with values"));
  EXPECT_THAT(error("nodes: 1\n---\nnodes: 2\n"), HasSubstr("holds 2 documents"));
  EXPECT_THAT(error("nodes: 1\nnodes: 2\n"), HasSubstr("line 2: key \"nodes\" already set"));
  flags.config = folder + "/none.yaml";
  const auto missing = read_up_config(flags, table, {"--config"});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(missing.error().message(), StartsWith("--config: "));
}

TEST_F(UpConfig, tells_line_and_key_of_what_is_wrong_with_a_group) {
  const auto in_group = [this](const std::string& text) {
    const std::string told = error("nodes:\n- count: 1\n  " + text + "\n");
    return told.starts_with("line 3: nodes[0].") ? told.substr(17) : told;
  };
  EXPECT_EQ(in_group("prefx: a"),
            "line 3: nodes[0]: unknown key \"prefx\"; did you mean \"prefix\"?");
  EXPECT_THAT(in_group("prefix: A_"), StartsWith("prefix: \"A_1\" is no name for a node: "));
  EXPECT_EQ(in_group("prefix: 7"), "prefix: must be text, such as \"big-\"");
  EXPECT_EQ(in_group("labels: [a]"), "labels: must be keys with values");
  EXPECT_EQ(in_group("labels: {a: 1}"), "labels.a: must be text: put it in quotes");
  EXPECT_THAT(in_group("labels: {a b: c}"), StartsWith("labels.a b: is no key of a label: "));
  EXPECT_THAT(in_group("labels: {a: b c}"), StartsWith("labels.a: is no value of a label: "));
  EXPECT_THAT(in_group("labels: {kubernetes.io/hostname: x}"), EndsWith("says this of itself"));
  EXPECT_EQ(in_group("taints: x"), "taints: must be a list of taints");
  EXPECT_THAT(in_group("taints: ['a=b:NoSchedule']"), StartsWith("taints[0]: must be as {key: "));
  EXPECT_THAT(in_group("taints: [{key: a, effect: Nope}]"),
              StartsWith("taints[0].effect: must be NoSchedule, "));
  EXPECT_THAT(in_group("taints: [{key: a, effect: NoExecute}, {key: a, effect: NoExecute}]"),
              StartsWith("taints[1]: there is one"));
  EXPECT_THAT(in_group("capacity: {disk: 1}"),
              HasSubstr("unknown key \"disk\"; known are cpu, memory, pods"));
  EXPECT_THAT(in_group("capacity: {cpu: -1}"),
              StartsWith("capacity.cpu: must be an amount above 0"));
  EXPECT_THAT(in_group("capacity: {memory: lots}"),
              StartsWith("capacity.memory: must be an amount"));
  EXPECT_THAT(in_group("capacity: {pods: 1000000}"), EndsWith("from 0 to 100000"));
  EXPECT_EQ(in_group("drivers: {gpu: {partitons: 2}}").substr(0, 8), "line 3: ");
  EXPECT_THAT(in_group("drivers: {gpu: {partitons: 2}}"),
              HasSubstr("option \"partitons\" is unknown; did you mean \"partitions\"?"));
  EXPECT_THAT(in_group("drivers: nope"), HasSubstr("\"nope\": must be gpu, "));
  EXPECT_THAT(in_group("drivers: {gpu: 4}"), StartsWith("drivers.gpu: must be options"));
  EXPECT_THAT(error("nodes: [{count: 60000}, {count: 60000, prefix: b-}]\n"),
              HasSubstr("must be 100000 nodes at most, and are 120000"));
  EXPECT_THAT(error("nodes: [{count: 2}, {count: 1}]\n"),
              HasSubstr("nodes[1]: its node \"node-0\" has the name of one of nodes[0]"));
  EXPECT_THAT(error("nodes: [{count: 12, prefix: a-}, {count: 1, prefix: a-1}]\n"),
              HasSubstr("its node \"a-10\" has the name of one of nodes[0]"));
  EXPECT_THAT(error("nodes: [{prefix: a-, drivers: net}, {prefix: b-, drivers: "
                    "['net:enable-ipv6=false']}]\n"),
              HasSubstr("half for the whole cluster"));
  EXPECT_EQ(error("nodes: [7]\n"),
            "line 1: nodes[0]: must be a group of nodes, such as {prefix: big-, count: 2}");
}

TEST_F(UpConfig, tells_flags_of_nodes_where_there_are_none) {
  ASSERT_TRUE(read("nodes: 0\nruntime: sim\nbind: 127.0.0.1:0\n").ok());
  EXPECT_THAT(idle_flags(flags, {"--nodes", "--node-prefix", "--drivers"}),
              ElementsAre("--node-prefix", "--runtime"));
  flags.nodes = 1;
  EXPECT_THAT(idle_flags(flags, {"--node-prefix"}), ElementsAre());
}

TEST_F(UpConfig, is_named_where_a_flag_turns_out_to_be_wrong_later) {
  ASSERT_TRUE(read("nodes: 1\nbind: nowhere\n").ok());
  EXPECT_EQ(with_place(flags, Error::bad_request("--bind \"nowhere\": must be")).message(),
            flags.config + ": line 2: --bind \"nowhere\": must be");
  EXPECT_EQ(with_place(flags, Error::bad_request("--store: no")).message(), "--store: no");
}

}  // namespace
}  // namespace dibs::cli
