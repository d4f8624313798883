#include "node/pods/volume_writer.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/pods/volume_test_support.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

struct VolumeWriterTest : testing::Test {
  TemporaryFolder folder;
  VolumeWrite how{{}, Time::from_seconds(1'700'000'000)};

  bool write(const VolumeFiles& files) {
    how.now = how.now + std::chrono::seconds(1);
    auto written = write_volume(folder.path(), files, how);
    EXPECT_TRUE(written.ok()) << written.error().message();
    return written.ok() && *written;
  }
  std::string read(const std::string& name) {
    return read_file(folder.path() + "/" + name, 1 << 20).value_or("(none)");
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      const std::string name = entry.path().filename().string();
      out.push_back(name.starts_with("..2") ? "..time" : name);
    }
    return out;
  }
  unsigned mode(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::stat((folder.path() + "/" + name).c_str(), &info), 0);
    return info.st_mode & 07777U;
  }
};

TEST_F(VolumeWriterTest, shows_files_through_links) {
  EXPECT_TRUE(write({{"a", {"1", 0400, {}}}, {"dir/b", {"2", 0644, {}}}}));

  EXPECT_EQ(read("a"), "1");
  EXPECT_EQ(read("dir/b"), "2");
  EXPECT_EQ(mode("a"), 0400U);
  EXPECT_EQ(fs::read_symlink(folder.path() + "/a"), "..data/a");
  EXPECT_EQ(fs::read_symlink(folder.path() + "/dir"), "..data/dir");
  EXPECT_EQ(fs::read_symlink(folder.path() + "/..data"), "..2023_11_14_22_13_21.000000000");
  EXPECT_THAT(names(), UnorderedElementsAre("..data", "..time", "a", "dir"));
}

TEST_F(VolumeWriterTest, leaves_alone_what_is_there_already) {
  write({{"a", {"1", 0644, {}}}});
  const auto before = fs::read_symlink(folder.path() + "/..data");

  EXPECT_FALSE(write({{"a", {"1", 0644, {}}}}));

  EXPECT_EQ(fs::read_symlink(folder.path() + "/..data"), before);
}

TEST_F(VolumeWriterTest, replaces_everything_at_once_and_forgets_the_old) {
  write({{"a", {"1", 0644, {}}}, {"gone", {"x", 0644, {}}}});
  const std::string inside =
      folder.path() + "/" + fs::read_symlink(folder.path() + "/..data").string();

  EXPECT_TRUE(write({{"a", {"2", 0644, {}}}, {"new", {"y", 0644, {}}}}));

  EXPECT_EQ(read("a"), "2");
  EXPECT_FALSE(fs::exists(inside));
  EXPECT_THAT(names(), UnorderedElementsAre("..data", "..time", "a", "new"));
}

TEST_F(VolumeWriterTest, changes_of_mode_count) {
  write({{"a", {"1", 0644, {}}}});
  EXPECT_TRUE(write({{"a", {"1", 0600, {}}}}));
  EXPECT_EQ(mode("a"), 0600U);
}

TEST_F(VolumeWriterTest, cleans_up_after_a_write_that_was_cut_short) {
  write({{"a", {"1", 0644, {}}}});
  fs::create_directory(folder.path() + "/..2020_01_01_00_00_00.000000000");
  fs::create_symlink("..nowhere", folder.path() + "/..data_tmp");

  EXPECT_TRUE(write({{"a", {"2", 0644, {}}}}));

  EXPECT_THAT(names(), UnorderedElementsAre("..data", "..time", "a"));
}

TEST_F(VolumeWriterTest, empty_volumes_have_no_names) {
  EXPECT_TRUE(write({}));
  EXPECT_THAT(names(), UnorderedElementsAre("..data", "..time"));
}

TEST_F(VolumeWriterTest, gives_files_to_the_group) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  how.group = 2000;
  EXPECT_TRUE(write({{"a", {"1", 0400, {}}}, {"b", {"1", 0644, {}}}}));

  EXPECT_EQ(mode("a"), 0440U);
  EXPECT_EQ(mode("b"), 0644U);
  struct stat info {};
  ASSERT_EQ(::stat((folder.path() + "/a").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 2000U);
  EXPECT_FALSE(write({{"a", {"1", 0400, {}}}, {"b", {"1", 0644, {}}}}));
}

TEST_F(VolumeWriterTest, refuses_paths_that_lead_out) {
  for (const char* path : {"/etc/passwd", "../x", "a/../../x", "..hidden", ""}) {
    EXPECT_FALSE(write_volume(folder.path(), {{path, {"x", 0644, {}}}}, how).ok()) << path;
  }
}

}  // namespace
}  // namespace dibs::node
