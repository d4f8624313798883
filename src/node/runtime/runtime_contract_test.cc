#include "node/runtime/runtime_contract_test.h"
#include "base/mutex.h"

namespace dibs::node {

TEST_P(RuntimeContract, a_sandbox_lives_and_goes) {
  const std::string id = run_sandbox();

  auto status = containers().sandbox_status(id);
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->state, SandboxState::ready);
  EXPECT_EQ(status->name, "pod");
  EXPECT_EQ(status->annotations.at("note"), "kept");
  EXPECT_EQ(status->ips.size(), 1u);
  EXPECT_GT(status->created.nanoseconds, 0);
  EXPECT_EQ(containers().list_sandboxes()->size(), 1u);

  for (int i = 0; i < 2; ++i) EXPECT_TRUE(containers().stop_sandbox(id).ok());
  EXPECT_EQ(containers().sandbox_status(id)->state, SandboxState::not_ready);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(containers().remove_sandbox(id).ok());
  EXPECT_EQ(containers().sandbox_status(id).error().code(), Code::not_found);
  EXPECT_TRUE(containers().list_sandboxes()->empty());
}

TEST_P(RuntimeContract, a_container_runs_to_its_end) {
  const std::string sandbox = run_sandbox();
  auto id = containers().create_container(sandbox, sandbox_config(),
                                          container_config({"sh", "-c", "echo $COLOUR; exit 7"}));
  ASSERT_TRUE(id.ok()) << id.error().message();
  EXPECT_EQ(containers().container_status(*id)->state, ContainerState::created);

  ASSERT_TRUE(containers().start_container(*id).ok());
  const ContainerStatus status = ended(*id);

  EXPECT_EQ(status.state, ContainerState::exited);
  EXPECT_EQ(status.exit_code, 7);
  EXPECT_EQ(status.reason, "Error");
  EXPECT_GE(status.finished, status.started);
  EXPECT_GE(status.started, status.created);
  EXPECT_EQ(log_of(status), "blue\n");
  EXPECT_EQ(status.labels.at("io.kubernetes.container.name"), "c");
  EXPECT_EQ(status.image, "docker.io/library/busybox:1.36");
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(containers().remove_container(*id).ok());
  EXPECT_EQ(containers().container_status(*id).error().code(), Code::not_found);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, success_is_completed) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"true"}));
  const ContainerStatus status = ended(id);
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(status.reason, "Completed");
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
  EXPECT_TRUE(containers().list_containers()->empty());
}

// An agent that dies between the two leaves such a container to the next one.
TEST_P(RuntimeContract, one_that_was_never_started_can_be_stopped) {
  const std::string sandbox = run_sandbox();
  auto id = containers().create_container(sandbox, sandbox_config(), container_config({"true"}));
  ASSERT_TRUE(id.ok()) << id.error().message();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(stop(*id, std::chrono::seconds(1)).ok());
  }
  EXPECT_EQ(ended(*id).state, ContainerState::exited);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, stopping_gives_time_to_end) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(
      sandbox, container_config({"sh", "-c", "trap 'exit 0' TERM; echo up; sleep 9999 & wait"}));
  if (world_->real()) {
    // Until the trap is set.
    for (int i = 0; i < 2000 && log_of(*containers().container_status(id)).empty(); ++i) {
      (void)containers().exec_sync(id, {"true"}, {}).ok();
    }
  }
  EXPECT_EQ(containers().container_status(id)->state, ContainerState::running);

  EXPECT_TRUE(stop(id, std::chrono::seconds(20)).ok());

  EXPECT_EQ(containers().container_status(id)->state, ContainerState::exited);
  EXPECT_EQ(containers().container_status(id)->exit_code, 0);
  EXPECT_TRUE(stop(id, std::chrono::seconds(20)).ok());
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, what_does_not_end_is_killed) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  EXPECT_TRUE(stop(id, Duration::zero()).ok());
  EXPECT_EQ(containers().container_status(id)->exit_code, 137);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, exec_has_the_environment_and_an_exit_code) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));

  auto printed = containers().exec_sync(id, {"printenv", "COLOUR"}, std::chrono::seconds(20));
  ASSERT_TRUE(printed.ok()) << printed.error().message();
  EXPECT_EQ(printed->out, "blue\n");
  EXPECT_EQ(printed->exit_code, 0);
  auto failed = containers().exec_sync(id, {"sh", "-c", "echo err >&2; exit 3"}, {});
  ASSERT_TRUE(failed.ok()) << failed.error().message();
  EXPECT_EQ(failed->err, "err\n");
  EXPECT_EQ(failed->exit_code, 3);
  auto slow = containers().exec_sync(id, {"sleep", "9999"}, std::chrono::milliseconds(50));
  ASSERT_FALSE(slow.ok());
  EXPECT_EQ(slow.error().code(), Code::timeout);
  EXPECT_FALSE(containers().exec_sync("nosuch", {"true"}, {}).ok());

  EXPECT_TRUE(stop(id, Duration::zero()).ok());
  EXPECT_FALSE(containers().exec_sync(id, {"true"}, {}).ok());
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, exec_streams) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  Collected process;
  auto input = containers().exec(id, {.command = {"sh", "-c", "echo one; echo two >&2; exit 9"}},
                                 collect(process));
  ASSERT_TRUE(input.ok()) << input.error().message();
  ASSERT_TRUE(finished(process));
  EXPECT_EQ(process.out, "one\n");
  EXPECT_EQ(process.code, 9);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, cdi_devices_show_in_the_environment) {
  const std::string sandbox = run_sandbox();
  write_spec({.version = "0.3.0",
              .kind = "vendor.com/gpu",
              .devices = {{.name = "a", .edits = {.env = {"GPU=a", "COLOUR=red"}}}}});
  ContainerConfig config = container_config({"sleep", "9999"});
  config.cdi_devices = {"vendor.com/gpu=a", "vendor.com/gpu=a"};
  const std::string id = start(sandbox, config);
  EXPECT_EQ(containers().exec_sync(id, {"printenv", "GPU", "COLOUR"}, {})->out, "a\nred\n");

  config.cdi_devices = {"vendor.com/gpu=a", "vendor.com/gpu=nosuch"};
  auto unknown = containers().create_container(sandbox, sandbox_config(), config);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(),
              testing::HasSubstr("unresolvable CDI devices vendor.com/gpu=nosuch"));
  EXPECT_EQ(containers().list_containers()->size(), 1u);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, resources_change_while_it_runs) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  ContainerLimits limits;
  limits.cpu_shares = 512;
  limits.memory_bytes = 64 << 20;

  EXPECT_TRUE(containers().update_sandbox(sandbox, limits, {{"granted", "more"}}).ok());
  EXPECT_TRUE(containers().update_container(id, limits, {{"given", "more"}}).ok());

  EXPECT_EQ(containers().sandbox_status(sandbox)->annotations["granted"], "more");
  EXPECT_EQ(containers().sandbox_status(sandbox)->annotations["note"], "kept");
  EXPECT_EQ(containers().container_status(id)->annotations["given"], "more");
  EXPECT_TRUE(stop(id, {}).ok());
  EXPECT_FALSE(containers().update_container(id, limits, {}).ok());
  EXPECT_FALSE(containers().update_sandbox("nosuch", limits, {}).ok());
}

TEST_P(RuntimeContract, containers_need_a_sandbox_that_runs) {
  const ContainerConfig config = container_config({"true"});
  EXPECT_FALSE(containers().create_container("nosuch", sandbox_config(), config).ok());
  const std::string sandbox = run_sandbox();
  ASSERT_TRUE(containers().stop_sandbox(sandbox).ok());
  EXPECT_FALSE(containers().create_container(sandbox, sandbox_config(), config).ok());
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(RuntimeContract, images) {
  auto found = containers().image_status("ubuntu:22.04");
  ASSERT_TRUE(found.ok() && found->has_value());
  EXPECT_THAT((*found)->tags, testing::ElementsAre("docker.io/library/ubuntu:22.04"));
  EXPECT_EQ((*containers().image_status((*found)->id))->tags, (*found)->tags);

  auto invalid = containers().image_status("Not A Name");
  ASSERT_FALSE(invalid.ok());
  EXPECT_EQ(invalid.error().message(),
            "invalid reference format: repository name (library/Not A Name) must be lowercase");
  EXPECT_FALSE(containers().image_status("registry.invalid/team/app:1.0")->has_value());
}

TEST_P(RuntimeContract, attach_sees_the_end) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  std::optional<int> code;
  auto input = containers().attach(id, {.ended = [&](Result<int> result) {
                                     const MutexLock lock(mutex_);
                                     code = result.ok() ? *result : -1;
                                     changed_.notify_all();
                                   }});
  ASSERT_TRUE(input.ok()) << input.error().message();
  EXPECT_TRUE(stop(id, Duration::zero()).ok());
  MutexLock lock(mutex_);
  ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return code.has_value(); }));
  EXPECT_EQ(*code, 137);
  lock.unlock();
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

}  // namespace dibs::node
