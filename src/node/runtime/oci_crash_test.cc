// An agent that is killed at any moment leaves nothing that the next one cannot use or remove.
#include <signal.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "node/runtime/oci_runtime.h"
#include "runtime/processes.h"
#include "runtime/real_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;

OciOptions options_in(const std::string& root) {
  OciOptions options;
  options.root = root + "/runtime";
  options.images = testing::TempDir() + "dibs-test-images";
  options.image_options.aliases = *builtin_aliases({"busybox"});
  options.program = missing_for_oci("crun").empty() ? "crun" : "runc";
  options.network.name = root;
  options.network.state = root + "/net";
  options.network.config_folder = root + "/no-cni";
  options.cdi_directories = {root + "/cdi"};
  return options;
}

/// Of the pod's second network; the end of the folder's name is by chance.
std::string second_bridge(const std::string& root) {
  return cat("c-", root.substr(root.size() - 6));
}

SandboxNetwork second_network(const std::string& root) {
  SandboxNetwork network;
  network.name = "team/second";
  network.interface = "net1";
  network.config = cat(R"({"cniVersion": "1.0.0", "plugins": [{"type": "bridge", "bridge": ")",
                       second_bridge(root), R"(", "ipam": {"type": "host-local", "dataDir": ")",
                       root, R"(/second", "ranges": [[{"subnet": "10.63.0.0/24"}]]}}]})");
  return network;
}

Result<> make_pod(OciRuntime& containers, const std::string& root) {
  SandboxConfig sandbox;
  sandbox.name = "pod";
  sandbox.uid = "crash";
  sandbox.hostname = "pod";
  sandbox.log_directory = root + "/logs";
  sandbox.networks = {second_network(root)};
  DIBS_TRY(const std::string id, containers.run_sandbox(sandbox));
  ContainerConfig config;
  config.name = "c";
  config.image = "busybox:1.36";
  config.command = {"sleep", "9999"};
  config.log_path = "c.log";
  DIBS_TRY(const std::string container, containers.create_container(id, sandbox, config));
  DIBS_CHECK(containers.start_container(container));
  DIBS_CHECK(containers.exec_sync(container, {"true"}, {}));
  return containers.remove_sandbox(id);
}

/// What the host-local plugin has given out.
std::vector<std::string> addresses_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (const auto& network : fs::directory_iterator(folder, failed)) {
    for (const auto& file : fs::directory_iterator(network.path(), failed)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("10.")) out.push_back(name);
    }
  }
  return out;
}

// The victim: not a test of its own.
TEST(OciCrash, DISABLED_victim) {
  const char* root = std::getenv("DIBS_CRASH_ROOT");
  if (root == nullptr) GTEST_SKIP() << "run by the test below";
  runtime::RealRuntime machine;
  auto containers = OciRuntime::open(options_in(root), machine.runtime());
  ASSERT_TRUE(containers.ok());
  for (;;) {
    const auto made = make_pod(**containers, root);
    ASSERT_TRUE(made.ok()) << made.error().message();
  }
}

TEST(OciCrash, the_next_agent_copes) {
  const std::string missing = missing_for_oci("runc");
  if (!missing.empty()) GTEST_SKIP() << missing;
  std::string pattern = testing::TempDir() + "oci.XXXXXX";
  const std::string root = ::mkdtemp(pattern.data());
  const std::string run = oci_run_folder(root + "/runtime");
  runtime::RealRuntime machine;
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    {
      auto victim = runtime::Process::start(
          {.argv = {"/proc/self/exe", "--gtest_filter=OciCrash.DISABLED_victim",
                    "--gtest_also_run_disabled_tests"},
           .env = std::vector<std::string>{"DIBS_CRASH_ROOT=" + root, "PATH=/usr/sbin:/usr/bin",
                                           "TMPDIR=" + testing::TempDir()}});
      ASSERT_TRUE(victim.ok());
      // Another moment of its work each time.
      EXPECT_FALSE((*victim)->wait(std::chrono::milliseconds(60 + round * 29)).has_value());
    }
    auto containers = OciRuntime::open(options_in(root), machine.runtime());
    ASSERT_TRUE(containers.ok()) << containers.error().message();
    const auto all = (*containers)->list_containers();
    for (const auto& status : *all) {
      if (status.state != ContainerState::running) continue;
      const auto answer = (*containers)->exec_sync(status.id, {"echo", "on"}, {});
      EXPECT_TRUE(answer.ok()) << answer.error().message();
    }
    const auto sandboxes = (*containers)->list_sandboxes();
    for (const auto& status : *sandboxes) {
      const auto removed = (*containers)->remove_sandbox(status.id);
      EXPECT_TRUE(removed.ok()) << removed.error().message();
    }
    const auto mounts = runtime::run({.argv = {"cat", "/proc/self/mountinfo"}});
    EXPECT_THAT(mounts->out, testing::Not(testing::HasSubstr(root + "/")));
    EXPECT_THAT(mounts->out, testing::Not(testing::HasSubstr(run + "/")));
    for (const std::string& folder : {root + "/runtime/sandboxes", root + "/runtime/containers",
                                      run + "/ns", run + "/exits", run + "/s", run + "/oci"}) {
      EXPECT_TRUE(fs::is_empty(folder)) << folder;
    }
    EXPECT_THAT(Cgroups().children(own_group(root + "/runtime") + "/kubepods"), testing::IsEmpty());
    EXPECT_THAT(addresses_in(root + "/net/ipam"), testing::IsEmpty());
    EXPECT_THAT(addresses_in(root + "/second"), testing::IsEmpty());
    // No process of it either.
    const auto processes = runtime::run({.argv = {"pgrep", "-f", "--", "conmon.*" + root}});
    EXPECT_EQ(processes->out, "");
  }
  remove_machine_network(options_in(root).network);
  (void)runtime::run({.argv = {"ip", "link", "delete", second_bridge(root)}}).ok();
  fs::remove_all(run);
  fs::remove_all(root);
}

}  // namespace
}  // namespace dibs::node
