#include "node/runtime/oci_rootfs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

class ReadInside : public testing::Test {
 protected:
  ReadInside() {
    std::string pattern = testing::TempDir() + "rootfs.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ + "/etc");
  }
  ~ReadInside() override { fs::remove_all(root_); }
  std::string root_;
};

TEST_F(ReadInside, follows_links_below_the_root) {
  std::ofstream(root_ + "/etc/real") << "text";
  fs::create_symlink("/etc/real", root_ + "/etc/passwd");
  EXPECT_EQ(read_inside(root_, "/etc/passwd"), "text");
  fs::create_symlink("../../../../../../proc/version", root_ + "/etc/group");
  EXPECT_EQ(read_inside(root_, "/etc/group"), "");
}

TEST_F(ReadInside, opens_files_only) {
  ASSERT_EQ(::mkfifo((root_ + "/etc/passwd").c_str(), 0644), 0);
  EXPECT_EQ(read_inside(root_, "/etc/passwd"), "");
  EXPECT_EQ(read_inside(root_, "/etc"), "");
}

TEST_F(ReadInside, leaves_devices_of_an_image_alone) {
  if (::mknod((root_ + "/etc/passwd").c_str(), S_IFCHR | 0644, makedev(1, 5)) != 0) {
    GTEST_SKIP() << "no right to make devices";
  }
  // /dev/zero would give as much as is asked for.
  EXPECT_EQ(read_inside(root_, "/etc/passwd"), "");
}

}  // namespace
}  // namespace dibs::node
