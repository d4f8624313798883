#include "node/pods/log_rotation.h"

#include <stdlib.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "node/pods/pod_fakes.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class LoggingRuntime : public test::FakeRuntime {
 public:
  using FakeRuntime::FakeRuntime;
  Result<> reopen_log(const std::string& id) override {
    if (deaf) return Error::internal("the monitor is gone");
    std::ofstream(container_status(id)->log_path) << "";
    return success();
  }
  bool deaf = false;
};

class LogRotationTest : public testing::Test {
 protected:
  LogRotationTest() : machine_(world_.runtime()), containers_(machine_, budget_) {
    std::string pattern = testing::TempDir() + "logs.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    auto& container = machine_.containers["c"];
    container.status.id = "c";
    container.status.state = ContainerState::running;
    container.status.log_path = root_ + "/0.log";
  }
  ~LogRotationTest() override { fs::remove_all(root_); }

  void write(const std::string& text) { std::ofstream(root_ + "/0.log", std::ios::app) << text; }
  void rotate(int second) {
    rotate_logs(containers_, {.max_size = 10, .max_files = 3}, Time{second * 1'000'000'000LL});
  }
  std::vector<std::string> files() {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(root_)) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }

  runtime::SimRuntime world_;
  test::FakeMachine machine_;
  test::Budget budget_;
  LoggingRuntime containers_;
  std::string root_;
};

TEST_F(LogRotationTest, keeps_as_many_files_as_allowed) {
  write("short");
  rotate(1);
  EXPECT_THAT(files(), ElementsAre("0.log"));
  write("and longer");
  rotate(2);
  EXPECT_THAT(files(), ElementsAre("0.log", "0.log.19700101-000002"));
  write("0123456789");
  rotate(3);
  EXPECT_THAT(files(), ElementsAre("0.log", "0.log.19700101-000002.gz", "0.log.19700101-000003"));
  write("0123456789");
  rotate(4);
  EXPECT_THAT(files(), ElementsAre("0.log", "0.log.19700101-000003.gz", "0.log.19700101-000004"));
}

TEST_F(LogRotationTest, a_container_that_cannot_be_told_keeps_its_log) {
  write("0123456789");
  containers_.deaf = true;
  rotate(1);
  EXPECT_THAT(files(), ElementsAre("0.log"));
}

TEST_F(LogRotationTest, finishes_what_an_agent_left_half_done) {
  rotate(1);
  EXPECT_THAT(files(), ElementsAre("0.log"));
}

TEST_F(LogRotationTest, ended_containers_keep_theirs) {
  machine_.containers["c"].status.state = ContainerState::exited;
  write("0123456789");
  rotate(1);
  EXPECT_THAT(files(), ElementsAre("0.log"));
}

TEST(LogPolicy, says_which_flag_is_wrong) {
  EXPECT_EQ(parse_log_policy("10Mi", 5)->max_size, 10 << 20);
  EXPECT_THAT(parse_log_policy("much", 5).error().message(), HasSubstr("--container-log-max-size"));
  EXPECT_THAT(parse_log_policy("0", 5).error().message(), HasSubstr("--container-log-max-size"));
  EXPECT_THAT(parse_log_policy("1Mi", 1).error().message(), HasSubstr("--container-log-max-files"));
}

}  // namespace
}  // namespace dibs::node
