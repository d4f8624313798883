#include "drivers/net/host/tree.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "drivers/net/host/testing/fake_host.h"

namespace dibs::drivers::net {
namespace {

class TreeTest : public testing::Test {
 protected:
  test::FakeHost host;
  Tree tree{host.path() + "/sys"};
};

TEST_F(TreeTest, follows_links_inside_the_root) {
  host.file("sys/devices/a/value", " 17 ");
  host.symlink("sys/class/a", "../devices/a");
  host.symlink("sys/class/b", "a/value");

  EXPECT_EQ(tree.resolve("class/b"), "devices/a/value");
  EXPECT_EQ(tree.read("class/a/value"), "17");
  EXPECT_EQ(tree.read_number("class/b"), 17);
  EXPECT_TRUE(tree.is_link("class/a"));
  EXPECT_FALSE(tree.is_link("devices/a"));
}

TEST_F(TreeTest, never_leaves_the_root) {
  host.file("secret", "outside");
  host.symlink("sys/absolute", host.path() + "/secret");
  host.symlink("sys/upwards",
               "../../../../../../../../../../../../../.." + host.path() + "/secret");
  host.symlink("sys/etc", "/etc");

  EXPECT_EQ(tree.read("absolute"), std::nullopt);
  EXPECT_EQ(tree.read("upwards"), std::nullopt);
  EXPECT_EQ(tree.read("../secret"), std::nullopt);
  EXPECT_TRUE(tree.list("etc").empty());
  // As for a process whose root folder it is.
  host.file("sys/etc-of-root/passwd", "inside");
  host.symlink("sys/rooted", "/../etc-of-root/passwd");
  EXPECT_EQ(tree.read("rooted"), "inside");
}

TEST_F(TreeTest, takes_what_cannot_be_read_as_absent) {
  host.symlink("sys/dangling", "nowhere");
  host.symlink("sys/loop", "loop");
  host.file("sys/word", "fast");
  host.file("sys/mixed", "12 apples");
  host.file("sys/huge", std::string(100'000, 'x'));
  ASSERT_EQ(::mkfifo((host.path() + "/sys/pipe").c_str(), 0600), 0);

  for (const char* path : {"dangling", "loop", "none", "pipe", "class", "huge"}) {
    EXPECT_EQ(tree.read(path), std::nullopt) << path;
  }
  EXPECT_EQ(tree.read_number("word"), std::nullopt);
  EXPECT_EQ(tree.read_number("mixed"), std::nullopt);
  EXPECT_FALSE(tree.exists("dangling"));
  EXPECT_TRUE(tree.is_link("dangling"));
  EXPECT_TRUE(tree.list("word").empty());
  EXPECT_EQ(tree.resolve(std::string_view("wo\0rd", 5)), std::nullopt);
}

TEST(SystemTree, takes_a_file_of_sys_that_fails_as_absent) {
  const Tree sys("/sys");
  if (!sys.exists("class/net/lo/speed")) GTEST_SKIP() << "/sys is not mounted here";
  EXPECT_EQ(sys.read("class/net/lo/speed"), std::nullopt);
  EXPECT_EQ(sys.resolve("class/net/lo"), "devices/virtual/net/lo");
}

}  // namespace
}  // namespace dibs::drivers::net
