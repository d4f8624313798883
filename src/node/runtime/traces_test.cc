#include "node/runtime/traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/strings.h"
#include "node/runtime/mounts.h"
#include "node/runtime/oci_runtime.h"
#include "runtime/processes.h"
#include "runtime/real_runtime.h"

namespace dibs::node {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;

std::string new_folder() {
  std::string pattern = testing::TempDir() + "traces.XXXXXX";
  return ::mkdtemp(pattern.data());
}

TEST(Traces, one_is_abandoned_when_its_folder_is_deleted_and_nobody_has_it_open) {
  const std::string home = new_folder();
  const Trace trace = {home + "/1a2b", home + "/node/containers", ""};
  fs::create_directories(trace.run);
  fs::create_directories(trace.root);
  auto open = leave_trace(trace);
  ASSERT_TRUE(open.ok() && *open != nullptr);
  ASSERT_EQ(find_traces(home).size(), 1U);
  EXPECT_EQ(find_traces(home)[0].root, trace.root);
  EXPECT_FALSE(is_abandoned(trace));
  fs::remove_all(trace.root);
  EXPECT_FALSE(is_abandoned(trace)) << "somebody has it open";
  open->reset();
  EXPECT_TRUE(is_abandoned(trace));
  fs::create_directories(home + "/foreign");
  remove_abandoned(home);
  EXPECT_FALSE(fs::exists(trace.run));
  EXPECT_TRUE(fs::exists(home + "/foreign")) << "no mark of ours";
  fs::remove_all(home);
}

/// As the machine has it: processes and mounts that name one of the folders.
std::string found_on_machine(const std::string& root, const std::string& run) {
  std::string found;
  for (const std::string& folder : {root, run}) {
    for (const auto& point : mounts_below(folder)) append(found, point, '\n');
  }
  const auto monitors = runtime::run({.argv = {"pgrep", "-f", "--", "conmon.*" + run}});
  return found + monitors->out;
}

TEST(Traces, containers_of_a_deleted_folder_end_when_the_next_node_starts) {
  const std::string missing = missing_for_oci("runc");
  if (!missing.empty()) GTEST_SKIP() << missing;
  runtime::RealRuntime machine;
  const auto options_in = [](const std::string& folder) {
    OciOptions options;
    options.root = folder + "/containers";
    options.images = testing::TempDir() + "dibs-test-images";
    options.image_options.aliases = *builtin_aliases({"busybox"});
    options.program = "runc";
    options.network.name = folder;
    options.network.state = folder + "/net";
    options.network.config_folder = folder + "/no-cni";
    return options;
  };
  const std::string folder = new_folder();
  const std::string run = oci_run_folder(folder + "/containers");
  const NetworkOptions network = options_in(folder).network;
  std::string group;
  {
    auto containers = OciRuntime::open(options_in(folder), machine.runtime());
    ASSERT_TRUE(containers.ok()) << containers.error().message();
    SandboxConfig sandbox;
    sandbox.name = sandbox.uid = sandbox.hostname = "pod";
    sandbox.log_directory = folder + "/logs";
    auto id = (*containers)->run_sandbox(sandbox);
    ASSERT_TRUE(id.ok()) << id.error().message();
    ContainerConfig config;
    config.name = "c";
    config.image = "busybox:1.36";
    config.command = {"sleep", "9999"};
    config.log_path = "c.log";
    auto container = (*containers)->create_container(*id, sandbox, config);
    ASSERT_TRUE(container.ok()) << container.error().message();
    const auto started = (*containers)->start_container(*container);
    ASSERT_TRUE(started.ok()) << started.error().message();
    group = own_group(fs::canonical(folder + "/containers"));
  }
  EXPECT_NE(found_on_machine(folder, run), "");
  EXPECT_FALSE(Cgroups().children(group).empty());
  // As far as `rm -r` gets.
  std::error_code busy;
  fs::remove(folder + "/containers/run-in", busy);
  const std::string other = new_folder();
  {
    auto next = OciRuntime::open(options_in(other), machine.runtime());
    ASSERT_TRUE(next.ok()) << next.error().message();
    EXPECT_EQ(found_on_machine(folder, run), "");
    EXPECT_FALSE(fs::exists(run));
    EXPECT_THAT(Cgroups().children(group), IsEmpty());
  }
  remove_machine_network(network);
  remove_machine_network(options_in(other).network);
  fs::remove_all(folder);
  fs::remove_all(other);
}

}  // namespace
}  // namespace dibs::node
