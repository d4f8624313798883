#include "node/pods/storage_usage.h"

#include <stdlib.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "cluster/test_cluster.h"
#include "node/pods/pod_fakes.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using cluster::test::from_text;
using testing::AllOf;
using testing::Ge;
using testing::Lt;

constexpr std::uint64_t kMi = 1 << 20;

class StorageUsageTest : public testing::Test {
 protected:
  StorageUsageTest() {
    std::string pattern = testing::TempDir() + "usage.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~StorageUsageTest() override { fs::remove_all(root_); }

  std::string fill(const std::string& path, std::uint64_t bytes) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << std::string(bytes, 'x');
    return root_ + path;
  }

  std::string root_;
};

TEST_F(StorageUsageTest, counts_what_is_in_a_folder_however_deep) {
  fill("/a/x", kMi);
  fill("/b/y", 2 * kMi);
  // Deeper than the path of a file can be said.
  fs::path at = root_ + "/deep";
  fs::create_directories(at);
  const fs::path here = fs::current_path();
  fs::current_path(at);
  for (int i = 0; i < 40; ++i) {
    fs::create_directory(std::string(200, 'd'));
    fs::current_path(std::string(200, 'd'));
  }
  std::ofstream("hidden", std::ios::binary) << std::string(3 * kMi, 'x');
  fs::current_path(here);

  const auto sizes = folder_usage({root_ + "/a", root_ + "/nothing", "", root_ + "/deep", root_},
                                  UsageUnit::bytes);
  EXPECT_THAT(sizes[0], AllOf(Ge(kMi), Lt(2 * kMi)));
  EXPECT_EQ(sizes[1], 0u);
  EXPECT_EQ(sizes[2], 0u);
  EXPECT_THAT(sizes[3], Ge(3 * kMi));
  // The rest of it.
  EXPECT_THAT(sizes[4], AllOf(Ge(2 * kMi), Lt(3 * kMi)));
  EXPECT_EQ(folder_usage({root_ + "/a"}, UsageUnit::files)[0], 2u);
}

class WritingRuntime : public test::FakeRuntime {
 public:
  WritingRuntime(test::FakeMachine& machine, test::Budget& budget, std::string folder)
      : FakeRuntime(machine, budget), folder_(std::move(folder)) {}
  std::string written_folder(const std::string& id) override { return cat(folder_, "/", id); }

 private:
  std::string folder_;
};

TEST_F(StorageUsageTest, takes_a_pod_apart) {
  runtime::SimRuntime world;
  test::FakeMachine machine(world.runtime());
  test::Budget budget;
  WritingRuntime containers(machine, budget, root_ + "/written");
  NodeFacts facts;
  facts.root = root_;
  fill("/pods/u/volumes/kubernetes.io~empty-dir/v/x", kMi);
  fill("/pods/u/volumes/kubernetes.io~configmap/m/x", 2 * kMi);
  fill("/pods/u/containers/c/termination-0", kMi);
  fill("/pods/u/etc-hosts", kMi);
  fill("/pods/u/else", kMi);
  fill("/written/sandbox/resolv.conf", kMi);
  fill("/logs/ns_p_u/c/0.log", 3 * kMi);
  fill("/written/one/x", 4 * kMi);
  fill("/written/two/x", 5 * kMi);
  ContainerStatus one;
  one.id = "one";
  one.name = "c";
  one.sandbox_id = "sandbox";
  ContainerStatus two = one;
  two.id = "two";

  const PodUsage usage = measure_pod(
      facts, root_ + "/logs",
      from_text("{'metadata': {'uid': 'u', 'name': 'p', 'namespace': 'ns'}, 'spec': {'volumes': ["
                "{'name': 'v', 'emptyDir': {}}, {'name': 'm', 'configMap': {'name': 'x'}},"
                "{'name': 'r', 'emptyDir': {'medium': 'Memory'}}]}}"),
      {one, two}, containers, UsageUnit::bytes);

  ASSERT_EQ(usage.empty_dirs.size(), 1u);
  EXPECT_EQ(usage.empty_dirs.at("v") / kMi, 1u);
  EXPECT_EQ(usage.other / kMi, 5u);
  ASSERT_EQ(usage.containers.size(), 1u);
  EXPECT_EQ(usage.containers[0].logs / kMi, 3u);
  EXPECT_EQ(usage.containers[0].written / kMi, 9u);
  EXPECT_EQ(usage.total() / kMi, 18u);
}

}  // namespace
}  // namespace dibs::node
