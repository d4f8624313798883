// What containers see and reach of each other, of other users and of the machine.
#include "base/strings.h"
#include "node/runtime/oci_namespaces.h"
#include "node/runtime/oci_world_for_test.h"

namespace dibs::node {
namespace {

class OciIsolation : public OciRuntimeTest {};

INSTANTIATE_TEST_SUITE_P(Machine, OciIsolation, testing::Values(make_oci_world));

/// Folders and files there that others than root may look into, but for what containers have in
/// theirs.
std::vector<std::string> open_to_others(const std::string& folder) {
  std::vector<std::string> out;
  const auto look = [&](const std::filesystem::path& path) {
    const auto mode = std::filesystem::status(path).permissions();
    const auto others = std::filesystem::perms::group_all | std::filesystem::perms::others_all;
    if ((mode & others) != std::filesystem::perms::none) out.push_back(path.string());
  };
  look(folder);
  for (std::filesystem::recursive_directory_iterator at(folder), end; at != end; ++at) {
    const std::string name = at->path().filename();
    if (name == "merged" || name == "upper" || name == "work" || name == "oci" || name == "ns") {
      at.disable_recursion_pending();
    } else if (at->is_directory() || name.ends_with(".json")) {
      look(at->path());
    }
  }
  return out;
}

TEST_P(OciIsolation, what_it_knows_is_closed_to_other_users) {
  const std::string state = world().root() + "/runtime";
  const std::string run = oci_run_folder(state);
  ContainerConfig config = container_config({"sleep", "9999"});
  config.env = {{"PASSWORD", "secret"}};
  const std::string id = start(run_sandbox(), config);
  Collected command;
  auto input = containers().exec(id, {.command = {"cat"}, .stdin_open = true}, collect(command));
  ASSERT_TRUE(input.ok());
  EXPECT_THAT(open_to_others(state), testing::ElementsAre());
  EXPECT_THAT(open_to_others(run), testing::ElementsAre());
  (*input)->close();
  EXPECT_TRUE(finished(command));
  input->reset();

  // As an agent left them that was less careful.
  world().close();
  for (const auto& path : {state, state + "/containers", state + "/containers/" + id}) {
    std::filesystem::permissions(path, std::filesystem::perms(0755));
  }
  std::filesystem::permissions(state + "/containers/" + id + "/config.json",
                               std::filesystem::perms(0644));
  ASSERT_TRUE(world().open().ok());
  EXPECT_THAT(open_to_others(state), testing::ElementsAre());
}

TEST_P(OciIsolation, devices_that_a_container_makes_are_only_names) {
  const std::string id = start(run_sandbox(), container_config({"sleep", "9999"}));
  EXPECT_EQ(exec(id, "echo x > /dev/null && echo fine"), "fine\n");
  EXPECT_THAT(exec(id, "mknod /tmp/null c 1 3 && cat /tmp/null"),
              testing::HasSubstr("Permission denied"));
}

TEST_P(OciIsolation, the_default_profile_keeps_namespaces_away) {
  ContainerConfig config = container_config({"sleep", "9999"});
  config.security.seccomp = "RuntimeDefault";
  const std::string id = start(run_sandbox(), config);
  // Users may make user namespaces, and have all rights in them, unless a filter is in the way.
  EXPECT_THAT(exec(id, "unshare -U true"), testing::HasSubstr("Operation not permitted"));
  EXPECT_EQ(exec(id, "(echo a; sleep 0.01) | sort && ls / > /tmp/x && kill -0 $$ && echo fine"),
            "a\nfine\n");
}

TEST_P(OciIsolation, the_holder_of_a_shared_pid_namespace_is_no_way_out) {
  SandboxConfig config = sandbox_config();
  config.share_pid = true;
  auto sandbox = containers().run_sandbox(config);
  ASSERT_TRUE(sandbox.ok()) << sandbox.error().message();
  auto id = containers().create_container(*sandbox, config, container_config({"sleep", "9999"}));
  ASSERT_TRUE(id.ok() && containers().start_container(*id).ok());
  const char* path = "/proc/1/root/proc/sys/kernel/printk_ratelimit_burst";
  const std::string before = exec(*id, "cat /proc/sys/kernel/printk_ratelimit_burst");
  EXPECT_THAT(exec(*id, cat("echo 17 > ", path)), testing::Not(testing::HasSubstr("17")));
  EXPECT_EQ(exec(*id, "cat /proc/sys/kernel/printk_ratelimit_burst"), before);
}

TEST_P(OciIsolation, a_debugger_sees_the_processes_of_its_target) {
  const std::string sandbox = run_sandbox();
  const std::string target = start(sandbox, container_config({"sleep", "9999"}));
  ContainerConfig config = container_config({"sleep", "8888"});
  config.target_id = target;
  EXPECT_THAT(exec(start(sandbox, config), "ps"), testing::HasSubstr("sleep 9999"));
  ASSERT_TRUE(stop(target, Duration::zero()).ok());
  EXPECT_FALSE(containers().create_container(sandbox, sandbox_config(), config).ok());
}

TEST_P(OciIsolation, namespaces_that_somebody_unmounted_are_those_of_what_runs) {
  const std::string sandbox = run_sandbox();
  const std::string first = start(sandbox, container_config({"sleep", "9999"}));
  const std::string spaces =
      cat(oci_run_folder(world().root() + "/runtime"), "/ns/", sandbox.substr(0, 32));
  ASSERT_TRUE(is_namespace(spaces + "/net"));
  for (const char* kind : {"/net", "/ipc", "/uts"}) unmount(spaces + kind);

  ContainerConfig config = container_config({"sleep", "8888"});
  config.name = "second";
  const std::string second = start(sandbox, config);

  const char* show = "readlink /proc/1/ns/net";
  EXPECT_EQ(exec(second, show), exec(first, show));
  EXPECT_EQ(containers().container_status(first)->state, ContainerState::running);
}

TEST_P(OciIsolation, a_sandbox_without_its_namespaces_is_not_ready) {
  const std::string sandbox = run_sandbox();
  const std::string spaces =
      cat(oci_run_folder(world().root() + "/runtime"), "/ns/", sandbox.substr(0, 32));
  for (const char* kind : {"/net", "/ipc", "/uts"}) {
    unmount(spaces + kind);
    // Without a file a container would have what the machine has.
    if (std::string_view(kind) == "/net") std::filesystem::remove(spaces + kind);
  }

  const auto made =
      containers().create_container(sandbox, sandbox_config(), container_config({"sleep", "9"}));

  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().message(), testing::HasSubstr("has lost its namespaces"));
  EXPECT_EQ(containers().sandbox_status(sandbox)->state, SandboxState::not_ready);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
}

TEST_P(OciIsolation, a_sandbox_has_no_settings_of_the_machine) {
  SandboxConfig config = sandbox_config();
  config.sysctls = {{"kernel.printk_ratelimit_burst", "17"}};
  EXPECT_FALSE(containers().run_sandbox(config).ok());
  config.sysctls = {{"kernel.msgmax", "12345"}};
  auto sandbox = containers().run_sandbox(config);
  ASSERT_TRUE(sandbox.ok()) << sandbox.error().message();
  const std::string id = start(*sandbox, container_config({"sleep", "9999"}));
  EXPECT_EQ(exec(id, "cat /proc/sys/kernel/msgmax"), "12345\n");
}

}  // namespace
}  // namespace dibs::node
