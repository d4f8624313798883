#include "node/runtime/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kGroup = "/dibs/x/kubepods/pod1";

/// A folder that looks like /sys/fs/cgroup.
class Tree {
 public:
  explicit Tree(bool unified) {
    char name[] = "/tmp/dibs-cgroups-XXXXXX";
    root = ::mkdtemp(name);
    if (unified) {
      put("/cgroup.controllers", "cpu memory pids\n");
    } else {
      for (const char* controller : {"cpu", "cpuacct", "memory", "pids"}) {
        fs::create_directories(root + "/" + controller);
      }
    }
  }
  ~Tree() { fs::remove_all(root); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::string get(const std::string& path) const {
    std::ifstream file(root + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string root;
};

ContainerLimits some_limits() {
  ContainerLimits limits;
  limits.cpu_shares = 1024;
  limits.cpu_period = 100'000;
  limits.cpu_quota = 150'000;
  limits.memory_bytes = 64 << 20;
  return limits;
}

TEST(Cgroups, limit_each_controller_of_the_first_kind) {
  Tree tree(false);
  const Cgroups groups(tree.root);

  ASSERT_TRUE(groups.make(kGroup).ok());
  ASSERT_TRUE(groups.make(kGroup).ok());
  ASSERT_TRUE(groups.limit(kGroup, some_limits()).ok());

  EXPECT_FALSE(groups.unified());
  EXPECT_EQ(tree.get("/cpu/dibs/x/kubepods/pod1/cpu.shares"), "1024");
  EXPECT_EQ(tree.get("/cpu/dibs/x/kubepods/pod1/cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(tree.get("/cpu/dibs/x/kubepods/pod1/cpu.cfs_period_us"), "100000");
  EXPECT_EQ(tree.get("/memory/dibs/x/kubepods/pod1/memory.limit_in_bytes"), "67108864");

  ASSERT_TRUE(groups.limit(kGroup, {}).ok());
  EXPECT_EQ(tree.get("/cpu/dibs/x/kubepods/pod1/cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(tree.get("/memory/dibs/x/kubepods/pod1/memory.limit_in_bytes"), "-1");
  EXPECT_EQ(tree.get("/cpu/dibs/x/kubepods/pod1/cpu.shares"), "1024");
}

TEST(Cgroups, limit_the_one_hierarchy_of_the_second_kind) {
  Tree tree(true);
  tree.put(std::string(kGroup) + "/cgroup.controllers", "cpu memory pids\n");
  const Cgroups groups(tree.root);

  ASSERT_TRUE(groups.make(kGroup).ok());
  ASSERT_TRUE(groups.limit(kGroup, some_limits()).ok());

  EXPECT_TRUE(groups.unified());
  EXPECT_EQ(tree.get("/dibs/x/kubepods/pod1/cpu.weight"), "39");
  EXPECT_EQ(tree.get("/dibs/x/kubepods/pod1/cpu.max"), "150000 100000");
  EXPECT_EQ(tree.get("/dibs/x/kubepods/pod1/memory.max"), "67108864");
  // Controllers are passed on at every level.
  for (const char* level : {"", "/dibs", "/dibs/x", "/dibs/x/kubepods", "/dibs/x/kubepods/pod1"}) {
    EXPECT_THAT(tree.get(std::string(level) + "/cgroup.subtree_control"), HasSubstr("+")) << level;
  }

  ASSERT_TRUE(groups.limit(kGroup, {}).ok());
  EXPECT_EQ(tree.get("/dibs/x/kubepods/pod1/cpu.max"), "max 100000");
  EXPECT_EQ(tree.get("/dibs/x/kubepods/pod1/memory.max"), "max");
}

TEST(Cgroups, give_no_huge_pages_that_were_not_asked_for) {
  for (const bool unified : {false, true}) {
    Tree tree(unified);
    const std::string at = unified ? kGroup : std::string("/hugetlb") + kGroup;
    const std::string file = unified ? ".max" : ".limit_in_bytes";
    if (unified) tree.put(at + "/cgroup.controllers", "hugetlb\n");
    for (const char* size : {"2MB", "1GB", "2MB.rsvd"}) {
      tree.put(at + "/hugetlb." + size + file, "any");
    }
    const Cgroups groups(tree.root);
    ContainerLimits limits;
    limits.huge_pages = {{"2MB", 8 << 20}};

    ASSERT_TRUE(groups.limit(kGroup, limits).ok());
    EXPECT_EQ(tree.get(at + "/hugetlb.1GB" + file), "any");

    limits.no_other_pages = true;
    ASSERT_TRUE(groups.limit(kGroup, limits).ok());
    EXPECT_EQ(tree.get(at + "/hugetlb.2MB" + file), "8388608");
    EXPECT_EQ(tree.get(at + "/hugetlb.1GB" + file), "0");
    EXPECT_EQ(tree.get(at + "/hugetlb.2MB.rsvd" + file), "any");
  }
}

TEST(Cgroups, refuse_what_this_machine_cannot_hold) {
  Tree tree(true);
  tree.put(std::string(kGroup) + "/cgroup.controllers", "pids\n");
  const Cgroups groups(tree.root);
  ContainerLimits limits;
  limits.cpu_shares = 2;

  EXPECT_TRUE(groups.limit(kGroup, limits).ok());
  limits.memory_bytes = 5;
  EXPECT_EQ(groups.limit(kGroup, limits).error().message(),
            "memory is limited, but this machine has no memory controller");
  limits.memory_bytes = 0;
  limits.cpu_quota = 1000;
  EXPECT_EQ(groups.limit(kGroup, limits).error().message(),
            "cpu is limited, but this machine has no cpu controller");
}

TEST(Cgroups, leave_all_as_it_is_where_more_memory_is_in_use) {
  for (const bool unified : {false, true}) {
    Tree tree(unified);
    const std::string at = unified ? "/g/" : "/memory/g/";
    if (unified) tree.put("/g/cgroup.controllers", "cpu memory\n");
    tree.put(at + (unified ? "memory.current" : "memory.usage_in_bytes"), "1000\n");
    const Cgroups groups(tree.root);
    ContainerLimits limits = some_limits();
    limits.memory_bytes = 999;

    EXPECT_EQ(groups.limit("/g", limits).error().message(),
              "attempting to set memory limit (999) below current usage (1000)");
    EXPECT_EQ(tree.get(at + (unified ? "memory.max" : "memory.limit_in_bytes")), "");
    EXPECT_EQ(tree.get(unified ? "/g/cpu.max" : "/cpu/g/cpu.shares"), "");
  }
}

TEST(Cgroups, are_removed_from_every_hierarchy_with_those_below) {
  Tree tree(false);
  const Cgroups groups(tree.root);
  ASSERT_TRUE(groups.make("/a/pod1/c1").ok());
  fs::create_directories(tree.root + "/freezer/a/pod1/c2");
  fs::create_directory_symlink(tree.root + "/cpu", tree.root + "/alias");

  EXPECT_THAT(groups.children("/a/pod1"), ElementsAre("c1", "c2"));
  EXPECT_TRUE(groups.remove("/a/pod1").ok());
  EXPECT_TRUE(groups.remove("/a/pod1").ok());

  EXPECT_TRUE(groups.children("/a").empty());
  EXPECT_TRUE(fs::exists(tree.root + "/cpu/a"));
}

TEST(Cgroups, tell_what_is_used) {
  Tree first(false);
  first.put("/cpuacct/g/cpuacct.usage", "1500\n");
  first.put("/cpuacct/g/cpuacct.stat", "user 3\nsystem 4\n");
  first.put("/cpu/g/cpu.stat", "nr_periods 5\nnr_throttled 2\nthrottled_time 77\n");
  first.put("/memory/g/memory.usage_in_bytes", "900\n");
  first.put("/memory/g/memory.limit_in_bytes", "9223372036854771712\n");
  first.put("/memory/g/memory.stat", "total_inactive_file 100\ntotal_rss 300\ntotal_pgfault 8\n");
  first.put("/pids/g/pids.current", "6\n");
  const auto one = Cgroups(first.root).usage("/g");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->cpu_nanos, 1500u);
  EXPECT_EQ(one->cpu_user_nanos, 30'000'000u);
  EXPECT_EQ(one->cpu_throttled_nanos, 77u);
  EXPECT_EQ(one->memory_working_set, 800u);
  EXPECT_EQ(one->memory_rss, 300u);
  EXPECT_EQ(one->memory_limit, 0u);
  EXPECT_EQ(one->processes, 6u);

  Tree second(true);
  second.put("/g/cpu.stat", "usage_usec 7\nuser_usec 4\nsystem_usec 3\nthrottled_usec 2\n");
  second.put("/g/memory.current", "900\n");
  second.put("/g/memory.max", "max\n");
  second.put("/g/memory.stat", "anon 300\nfile 500\ninactive_file 1000\npgmajfault 9\n");
  const auto two = Cgroups(second.root).usage("/g");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->cpu_nanos, 7000u);
  EXPECT_EQ(two->memory_working_set, 0u);
  EXPECT_EQ(two->memory_limit, 0u);
  EXPECT_EQ(two->major_page_faults, 9u);
  EXPECT_FALSE(Cgroups(second.root).usage("/gone"));
}

TEST(Cgroups, weights_are_the_kubelets) {
  EXPECT_EQ(cpu_weight(2), 1);
  EXPECT_EQ(cpu_weight(1024), 39);
  EXPECT_EQ(cpu_weight(262144), 10000);
  EXPECT_EQ(cpu_weight(0), 1);
}

}  // namespace
}  // namespace dibs::node
