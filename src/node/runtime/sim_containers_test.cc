#include "node/runtime/sim_containers.h"

#include "node/runtime/runtime_contract_test.h"
#include "node/runtime/sim_script.h"
#include "runtime/sim_runtime.h"

namespace dibs::node {
namespace {

class SimWorld : public RuntimeContractWorld {
 public:
  explicit SimWorld(runtime::Runtime& machine) {
    std::string pattern = testing::TempDir() + "sim.XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    containers_ = make_sim_containers({.cdi_directories = {cdi_directory()}}, machine);
  }
  ~SimWorld() override { std::filesystem::remove_all(root_); }
  ContainerRuntime& containers() override { return *containers_; }
  std::string cdi_directory() override { return root_ + "/cdi"; }
  std::string log_directory() override { return root_ + "/logs"; }
  bool real() override { return false; }

 private:
  std::string root_;
  std::unique_ptr<ContainerRuntime> containers_;
};

INSTANTIATE_TEST_SUITE_P(Sim, RuntimeContract,
                         testing::Values([](runtime::Runtime& machine,
                                            std::string&) -> std::unique_ptr<RuntimeContractWorld> {
                           return std::make_unique<SimWorld>(machine);
                         }));

class SimTime : public testing::Test {
 protected:
  std::string start(std::vector<std::string> command, Labels annotations) {
    SandboxConfig sandbox;
    sandbox.uid = "uid";
    sandbox.annotations = std::move(annotations);
    const std::string sandbox_id = *containers_->run_sandbox(sandbox);
    ContainerConfig config;
    config.name = "c";
    config.command = std::move(command);
    const std::string id = *containers_->create_container(sandbox_id, sandbox, config);
    started_ = containers_->start_container(id);
    return id;
  }
  ContainerStatus status(const std::string& id) { return *containers_->container_status(id); }

  runtime::SimRuntime machine_;
  std::unique_ptr<ContainerRuntime> containers_ =
      make_sim_containers({.cdi_directories = {"/nonexistent"}}, machine_.runtime());
  Result<> started_ = success();
};

TEST_F(SimTime, passes_only_when_it_is_moved) {
  const std::string id = start({"sleep", "60"}, {});
  machine_.advance(std::chrono::seconds(59));
  EXPECT_EQ(status(id).state, ContainerState::running);
  machine_.advance(std::chrono::seconds(2));
  EXPECT_EQ(status(id).state, ContainerState::exited);
  EXPECT_EQ(status(id).finished - status(id).started, std::chrono::seconds(60));
}

TEST_F(SimTime, annotations_decide) {
  const std::string id =
      start({"server"}, {{"dibs.dev/sim-run", "5s"}, {"dibs.dev/sim-exit.c", "3"}});
  machine_.advance(std::chrono::seconds(4));
  EXPECT_EQ(status(id).state, ContainerState::running);
  machine_.advance(std::chrono::seconds(1));
  EXPECT_EQ(status(id).exit_code, 3);

  const std::string forever = start({"true"}, {{"dibs.dev/sim-run", "forever"}});
  machine_.advance(std::chrono::hours(1000));
  EXPECT_EQ(status(forever).state, ContainerState::running);

  const std::string broken = start({"true"}, {{"dibs.dev/sim-start-error", "no such device"}});
  EXPECT_FALSE(started_.ok());
  EXPECT_EQ(status(broken).reason, "StartError");
  EXPECT_EQ(status(broken).exit_code, 128);
  EXPECT_EQ(status(broken).message, "no such device");
}

TEST_F(SimTime, gives_the_deaf_their_grace) {
  const std::string id = start({"sh", "-c", "trap '' TERM; sleep 9999 & wait"}, {});
  int stopped = 0;
  const auto done = [&](const Result<>&) { ++stopped; };
  containers_->stop_container(id, std::chrono::seconds(30), done);
  containers_->stop_container(id, std::chrono::seconds(60), done);
  machine_.advance(std::chrono::seconds(29));
  EXPECT_EQ(status(id).state, ContainerState::running);
  EXPECT_EQ(stopped, 0);
  machine_.advance(std::chrono::seconds(1));
  EXPECT_EQ(status(id).exit_code, 137);
  EXPECT_EQ(stopped, 2);

  const std::string hurried = start({"sh", "-c", "trap '' TERM; sleep 9999 & wait"}, {});
  containers_->stop_container(hurried, std::chrono::seconds(30), done);
  containers_->stop_container(hurried, Duration::zero(), done);
  machine_.run_until_idle();
  EXPECT_EQ(status(hurried).exit_code, 137);
  EXPECT_EQ(stopped, 4);
}

struct ScriptCase {
  std::vector<std::string> words;
  std::string out;
  int exit_code;
  bool endless;
};

TEST(SimScript, reads_what_examples_are_made_of) {
  const SimEnv env = {{"A", "1"}, {"B", "x y"}};
  for (const auto& [words, out, exit_code, endless] : std::vector<ScriptCase>{
           {{}, "", 0, true},
           {{"/usr/bin/server", "--port", "1"}, "", 0, true},
           {{"echo", "hello", "you"}, "hello you\n", 0, false},
           {{"sh", "-c", "echo \"a $B\" 'b $B' ${A}"}, "a x y b $B 1\n", 0, false},
           {{"bash", "-c", "export; trap 'exit 0' TERM; sleep 9999 & wait"},
            "export A='1'\nexport B='x y'\n",
            0,
            true},
           {{"sh", "-c", "false"}, "", 1, false},
           {{"sh", "-c", "exit 4; echo no"}, "", 4, false},
           {{"printenv", "A", "NONE"}, "1\n", 1, false},
           {{"sh", "-c", "while true; do sleep 1; done"}, "", 0, true},
           {{"sh", "-c", "cat /v/log && echo over"}, "over\n", 0, false},
       }) {
    const SimScript script = read_script(words, env, false);
    EXPECT_EQ(script.out, out);
    EXPECT_EQ(script.exit_code, exit_code);
    EXPECT_EQ(script.endless, endless);
  }
  EXPECT_EQ(read_script({"sleep", "1.5"}, env, false).run, std::chrono::milliseconds(1500));
  EXPECT_FALSE(read_script({"/bin/grpc_health_probe"}, env, true).endless);
}

}  // namespace
}  // namespace dibs::node
