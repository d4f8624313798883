#include "cli/user_kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "base/strings.h"
#include "json/yaml.h"
#include "runtime/files.h"

namespace dibs::cli {
namespace {

using testing::HasSubstr;

class UserKubeconfig : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kubeconfig.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    ::setenv("KUBECONFIG", (folder_ + "/user:" + folder_ + "/second").c_str(), 1);
    write("own", "dibs-lab", "https://127.0.0.1:1");
  }
  void TearDown() override {
    ::unsetenv("KUBECONFIG");
    std::filesystem::remove_all(folder_);
  }

  void write(const std::string& file, const std::string& name, const std::string& server) {
    const std::string text =
        "clusters: [{name: " + name + ", cluster: {server: '" + server +
        "'}}]\nusers: [{name: " + name + ", user: {token: t}}]\ncontexts: [{name: " + name +
        ", context: {cluster: c}}]\ncurrent-context: " + name + "\nextra: kept\n";
    ASSERT_TRUE(runtime::system_files().write(folder_ + "/" + file, text).ok());
  }
  json::Value user() { return *json::parse_yaml(*runtime::system_files().read(folder_ + "/user")); }
  Result<std::string> join() { return join_user_kubeconfig("dibs-lab", folder_ + "/own", "/data"); }

  std::string folder_;
};

TEST_F(UserKubeconfig, a_cluster_comes_and_goes_and_the_others_stay) {
  write("user", "work", "https://work:6443");
  ASSERT_TRUE(join().ok());
  EXPECT_EQ(user()["clusters"].size(), 2U);
  EXPECT_EQ(user()["current-context"].as_string(), "dibs-lab");
  // At another port after a restart.
  write("own", "dibs-lab", "https://127.0.0.1:2");
  ASSERT_TRUE(join().ok());
  EXPECT_EQ(user()["clusters"].size(), 2U);
  EXPECT_EQ(user()["clusters"][1]["cluster"]["server"].as_string(), "https://127.0.0.1:2");
  ASSERT_TRUE(leave_user_kubeconfig("dibs-lab", "/data").ok());
  EXPECT_EQ(user()["clusters"].size(), 1U);
  EXPECT_EQ(user()["users"][0]["name"].as_string(), "work");
  EXPECT_EQ(user()["extra"].as_string(), "kept");
}

TEST_F(UserKubeconfig, is_made_where_there_is_none) {
  const auto file = join();
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_EQ(*file, folder_ + "/user");
  EXPECT_EQ(user()["users"].size(), 1U);
}

TEST_F(UserKubeconfig, what_another_wrote_under_the_name_is_not_touched) {
  write("user", "dibs-lab", "https://elsewhere:6443");
  const auto refused = join();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("\"dibs-lab\" that are not of this cluster"));
  ASSERT_TRUE(leave_user_kubeconfig("dibs-lab", "/data").ok());
  EXPECT_EQ(user()["clusters"][0]["cluster"]["server"].as_string(), "https://elsewhere:6443");
}

TEST_F(UserKubeconfig, of_another_cluster_with_the_name_stays) {
  ASSERT_TRUE(join().ok());
  ASSERT_TRUE(leave_user_kubeconfig("dibs-lab", "/other").ok());
  EXPECT_EQ(user()["clusters"].size(), 1U);
}

TEST_F(UserKubeconfig, has_its_context_back_afterwards) {
  write("user", "work", "https://work:6443");
  ASSERT_TRUE(join().ok());
  ASSERT_TRUE(join().ok());  // a second start, when its own is the current one
  ASSERT_TRUE(leave_user_kubeconfig("dibs-lab", "/data").ok());
  EXPECT_EQ(user()["current-context"].as_string(), "work");
}

TEST_F(UserKubeconfig, is_left_wherever_it_was_joined) {
  ASSERT_TRUE(join().ok());
  ::setenv("KUBECONFIG", (folder_ + "/another").c_str(), 1);
  ASSERT_TRUE(leave_user_kubeconfig("dibs-lab", "/data", {folder_ + "/user"}).ok());
  EXPECT_EQ(user()["clusters"].size(), 0U);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/another"));
}

TEST_F(UserKubeconfig, is_changed_by_one_at_a_time) {
  constexpr int kMany = 8;
  std::vector<std::thread> threads;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "c" + std::to_string(i);
    write("own-" + name, name, "https://127.0.0.1:1");
    threads.emplace_back([this, name] {
      EXPECT_TRUE(join_user_kubeconfig(name, folder_ + "/own-" + name, "/data-" + name).ok());
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(user()["clusters"].size(), static_cast<std::size_t>(kMany));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/user.lock"));
}

TEST_F(UserKubeconfig, is_judged_before_there_is_a_cluster) {
  EXPECT_TRUE(check_user_kubeconfig("dibs-lab", "/data").ok());
  ASSERT_TRUE(join().ok());
  EXPECT_TRUE(check_user_kubeconfig("dibs-lab", "/data").ok());
  EXPECT_FALSE(check_user_kubeconfig("dibs-lab", "/other").ok());
  ASSERT_TRUE(runtime::system_files().write(folder_ + "/user", "{broken").ok());
  EXPECT_THAT(check_user_kubeconfig("dibs-lab", "/data").error().message(), HasSubstr("--merge: "));
}

TEST_F(UserKubeconfig, that_cannot_be_read_is_left_as_it_is) {
  ASSERT_TRUE(runtime::system_files().write(folder_ + "/user", "{broken").ok());
  EXPECT_FALSE(join().ok());
  EXPECT_EQ(*runtime::system_files().read(folder_ + "/user"), "{broken");
}

TEST_F(UserKubeconfig, made_elsewhere_goes_with_the_cluster_that_it_still_is_of) {
  const std::string file = folder_ + "/elsewhere";
  const auto write_entries = [&](const std::string& names, const std::string& ca) {
    std::string text = "current-context: dibs-lab\n";
    for (const char* kind : {"cluster", "user", "context"}) {
      append(text, kind, "s:\n");
      for (const auto name : split(names, ',')) {
        append(text, "- {name: ", name, ", ", kind, ": {certificate-authority-data: '",
               base64_encode(ca), "'}}\n");
      }
    }
    ASSERT_TRUE(runtime::system_files().write(file, text).ok());
  };

  write_entries("dibs-lab", "another");
  ASSERT_TRUE(remove_kubeconfig(file, "dibs-lab", "ours").ok());
  EXPECT_TRUE(std::filesystem::exists(file));

  write_entries("dibs-lab,work", "ours");
  ASSERT_TRUE(remove_kubeconfig(file, "dibs-lab", "ours").ok());
  const auto left = *json::parse_yaml(*runtime::system_files().read(file));
  EXPECT_EQ(left["users"].size(), 1U);
  EXPECT_EQ(left["users"][0]["name"].as_string(), "work");
  EXPECT_EQ(left["current-context"].as_string(), "");

  write_entries("dibs-lab", "ours");
  ASSERT_TRUE(remove_kubeconfig(file, "dibs-lab", "ours").ok());
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE(std::filesystem::exists(file + ".lock"));
  EXPECT_TRUE(remove_kubeconfig(file, "dibs-lab", "ours").ok());
}

}  // namespace
}  // namespace dibs::cli
