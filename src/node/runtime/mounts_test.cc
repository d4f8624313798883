#include "node/runtime/mounts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

/// Runs in a mount namespace of its own, which ends with its thread. False where that is not
/// allowed.
bool in_own_namespace(const std::function<void()>& run) {
  bool made = false;
  std::thread([&] {
    made = ::unshare(CLONE_NEWNS | CLONE_FS) == 0 &&
           ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
    if (made) run();
  }).join();
  return made;
}

TEST(Mounts, one_that_another_hides_is_unmounted_before_anybody_deletes_through_it) {
  std::string pattern = testing::TempDir() + "mounts.XXXXXX";
  const std::string top = ::mkdtemp(pattern.data());
  const std::string others = top + "/others";
  const std::string node = top + "/node";
  fs::create_directories(others);
  fs::create_directories(node + "/pods/volume");
  std::ofstream(others + "/file") << "kept";
  const bool made = in_own_namespace([&] {
    const std::string volume = node + "/pods/volume";
    ASSERT_EQ(::mount(others.c_str(), volume.c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount("none", (node + "/pods").c_str(), "tmpfs", 0, nullptr), 0);

    const auto unmounted = unmount_below(node);

    EXPECT_TRUE(unmounted.ok()) << unmounted.error().message();
    EXPECT_TRUE(mounts_below(node).empty());
    std::error_code failed;
    fs::remove_all(node, failed);
    EXPECT_TRUE(fs::exists(others + "/file"));
  });
  fs::remove_all(top);
  if (!made) GTEST_SKIP() << "skipped: a mount namespace needs root";
}

}  // namespace
}  // namespace dibs::node
