#include "cluster/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "json/test_text.h"
#include "store/stores.h"

namespace dibs::cluster {
namespace {

using client::Gvr;
using json::Value;
using json::test::from_text;

const Gvr kPods{"", "v1", "pods"};
const Gvr kMaps{"", "v1", "configmaps"};
const Gvr kClaims{"resource.k8s.io", "v1", "resourceclaims"};
const Gvr kTemplates{"resource.k8s.io", "v1", "resourceclaimtemplates"};

class ClusterTest : public testing::Test {
 protected:
  ClusterTest() {
    std::string pattern = "/tmp/dibs-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~ClusterTest() override { std::filesystem::remove_all(folder_); }

  Options everything(unsigned nodes) const {
    Options options;
    options.server.ca_pem = "CA";
    options.controllers.emplace();
    options.scheduler.emplace();
    auto& fleet = options.nodes.emplace();
    fleet.count = nodes;
    fleet.drivers = {"gpu"};
    fleet.runtime = "sim";
    fleet.folder = folder_;
    fleet.fleet = true;
    return options;
  }

  static Value create(Cluster& cluster, const Gvr& gvr, const std::string& text) {
    auto made = cluster.client().create(gvr, "default", from_text(text));
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? *made : Value();
  }
  /// Phase, node and claims of a pod.
  static std::string state(Cluster& cluster, const std::string& pod) {
    auto found = cluster.client().get(kPods, "default", pod);
    if (!found.ok()) return "gone";
    return (*found)["status"]["phase"].str();
  }

  std::string folder_;
};

constexpr const char* kTemplate = R"({'metadata': {'name': 'gpu'}, 'spec': {'spec': {'devices':
    {'requests': [{'name': 'g', 'exactly': {'deviceClassName': 'gpu.example.com'}}]}}}})";
constexpr const char* kPod = R"({'metadata': {'name': 'p'}, 'spec': {
    'containers': [{'name': 'c', 'image': 'busybox:1.36', 'command': ['sleep', '9999'],
                    'resources': {'claims': [{'name': 'g'}]}}],
    'resourceClaims': [{'name': 'g', 'resourceClaimTemplateName': 'gpu'}]}})";

TEST_F(ClusterTest, runs_whole_in_one_thread_under_virtual_time) {
  runtime::SimRuntime sim;
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), everything(3));
  ASSERT_TRUE(started.ok()) << started.error().message();
  Cluster& cluster = **started;
  EXPECT_EQ(cluster.port(), nullptr);
  sim.advance(std::chrono::seconds(10));
  EXPECT_TRUE(cluster.ready());

  create(cluster, kTemplates, kTemplate);
  create(cluster, kPods, kPod);
  sim.advance(std::chrono::seconds(10));
  EXPECT_EQ(state(cluster, "p"), "Running");
  const auto claims = cluster.client().list(kClaims, "default");
  ASSERT_TRUE(claims.ok());
  ASSERT_EQ(claims->items.size(), 1U);
  EXPECT_EQ(claims->items[0]["status"]["allocation"]["devices"]["results"][0]["driver"],
            "gpu.example.com");

  client::DeleteOptions now;
  now.grace_period_seconds = 1;
  EXPECT_TRUE(cluster.client().remove(kPods, "default", "p", now).ok());
  sim.advance(std::chrono::seconds(60));
  EXPECT_EQ(state(cluster, "p"), "gone");
  EXPECT_TRUE(cluster.client().list(kClaims, "default")->items.empty());
}

TEST_F(ClusterTest, goes_on_with_what_its_store_kept) {
  for (int turn = 0; turn < 2; ++turn) {
    auto store = store::open_store("sqlite", {.folder = folder_});
    ASSERT_TRUE(store.ok()) << store.error().message();
    Options options = everything(2);
    options.port.emplace().host = "127.0.0.1";
    auto started = Cluster::start(real_world(), std::move(store).value(), std::move(options));
    ASSERT_TRUE(started.ok()) << started.error().message();
    Cluster& cluster = **started;
    EXPECT_THAT(cluster.port()->address(), testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
    if (turn == 0) create(cluster, kMaps, "{'metadata': {'name': 'kept'}}");
    EXPECT_TRUE(cluster.client().get(kMaps, "default", "kept").ok());
  }
}

TEST_F(ClusterTest, ends_what_had_begun_when_a_part_cannot) {
  runtime::SimRuntime sim;
  Options options = everything(1);
  options.nodes->drivers = {"gpu", "nosuch"};
  auto started = Cluster::start(sim_world(sim, runtime::system_files()),
                                *store::open_store("memory", {}), std::move(options));
  ASSERT_FALSE(started.ok());
  EXPECT_EQ(started.error().message(), "--drivers \"nosuch\": must be gpu, net or cpu");
}

TEST_F(ClusterTest, has_a_server_alone) {
  runtime::SimRuntime sim;
  auto started =
      Cluster::start(sim_world(sim, runtime::system_files()), *store::open_store("memory", {}), {});
  ASSERT_TRUE(started.ok()) << started.error().message();
  create(**started, kMaps, "{'metadata': {'name': 'a'}}");
  sim.advance(std::chrono::seconds(1));
  EXPECT_TRUE((*started)->ready());
}

}  // namespace
}  // namespace dibs::cluster
