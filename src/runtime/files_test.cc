#include "runtime/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

namespace dibs::runtime {
namespace {

using testing::ElementsAre;

/// The same contract over the disk and over memory.
class FilesTest : public testing::TestWithParam<bool> {
 protected:
  FilesTest() {
    if (GetParam()) {
      std::string pattern = testing::TempDir() + "filesXXXXXX";
      root_ = mkdtemp(pattern.data());
      files_ = &system_files();
    } else {
      memory_ = make_memory_files();
      files_ = memory_.get();
      root_ = "/root";
      EXPECT_TRUE(files_->make_dirs(root_).ok());
    }
  }
  ~FilesTest() override {
    if (GetParam()) std::filesystem::remove_all(root_);
  }
  std::string at(const std::string& name) const { return root_ + "/" + name; }

  std::unique_ptr<Files> memory_;
  Files* files_ = nullptr;
  std::string root_;
};

TEST_P(FilesTest, reads_what_was_written_and_replaces_it) {
  ASSERT_TRUE(files_->write(at("a"), "one").ok());
  EXPECT_EQ(*files_->read(at("a")), "one");
  ASSERT_TRUE(files_->write(at("a"), "two").ok());
  EXPECT_EQ(*files_->read(at("a")), "two");
  EXPECT_THAT(*files_->list(root_), ElementsAre("a"));
}

TEST_P(FilesTest, names_what_is_missing) {
  EXPECT_EQ(files_->read(at("none")).error().code(), Code::not_found);
  EXPECT_EQ(files_->read(at("none")).error().message(),
            "open " + at("none") + ": No such file or directory");
  EXPECT_EQ(files_->write(at("no/folder"), "x").error().code(), Code::not_found);
  EXPECT_FALSE(files_->list(at("none")).ok());
  EXPECT_TRUE(files_->remove(at("none")).ok());
}

TEST(Files, what_has_no_end_is_not_read_to_it) {
  const auto read = system_files().read("/dev/zero");
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code(), Code::too_large);
  EXPECT_EQ(*system_files().read("/dev/null"), "");
}

TEST_P(FilesTest, makes_folders_and_lists_them) {
  ASSERT_TRUE(files_->make_dirs(at("x/y/z")).ok());
  ASSERT_TRUE(files_->make_dirs(at("x/y/z")).ok());
  ASSERT_TRUE(files_->write(at("x/file"), "").ok());
  EXPECT_THAT(*files_->list(at("x")), ElementsAre("file", "y"));
  EXPECT_FALSE(files_->make_dirs(at("x/file/below")).ok());
  EXPECT_TRUE(files_->exists(at("x/y")));
  ASSERT_TRUE(files_->remove(at("x/file")).ok());
  EXPECT_FALSE(files_->exists(at("x/file")));
}

TEST_P(FilesTest, a_lock_keeps_others_out_until_it_is_dropped) {
  auto first = files_->lock(at("lock"));
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(files_->lock(at("lock")).error().code(), Code::unavailable);
  first->reset();
  EXPECT_TRUE(files_->lock(at("lock")).ok());
}

INSTANTIATE_TEST_SUITE_P(, FilesTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "disk" : "memory"; });

TEST(SystemFiles, gives_the_mode_asked_for) {
  std::string path = testing::TempDir() + "mode_of_file";
  ASSERT_TRUE(system_files().write(path, "secret").ok());
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  EXPECT_TRUE(system_files().remove(path).ok());
}

}  // namespace
}  // namespace dibs::runtime
