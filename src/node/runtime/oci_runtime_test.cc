#include "node/runtime/oci_runtime.h"

#include <signal.h>

#include "base/mutex.h"
#include "base/strings.h"
#include "node/runtime/oci_world_for_test.h"
#include "runtime/processes.h"

namespace dibs::node {
namespace {

INSTANTIATE_TEST_SUITE_P(Oci, RuntimeContract, testing::Values(make_oci_world));

INSTANTIATE_TEST_SUITE_P(Machine, OciRuntimeTest, testing::Values(make_oci_world));

TEST_P(OciRuntimeTest, a_command_that_is_not_there_is_a_start_error) {
  const std::string sandbox = run_sandbox();
  const std::string prefix =
      "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
      "runc create failed: unable to start container process: exec: ";
  for (const auto& [command, message] : std::vector<std::pair<std::string, std::string>>{
           {"nosuch", "\"nosuch\": executable file not found in $PATH"},
           {"/no/such", "\"/no/such\": stat /no/such: no such file or directory"}}) {
    auto id = containers().create_container(sandbox, sandbox_config(), container_config({command}));
    ASSERT_TRUE(id.ok());
    auto started = containers().start_container(*id);
    ASSERT_FALSE(started.ok());
    EXPECT_EQ(started.error().message(), prefix + message);
    const ContainerStatus status = ended(*id);
    EXPECT_EQ(status.reason, "StartError");
    EXPECT_EQ(status.exit_code, 128);
    EXPECT_EQ(status.started.nanoseconds, 0);
    EXPECT_EQ(status.message, prefix + message);
  }
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  auto missing = containers().exec_sync(id, {"nosuch"}, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_THAT(
      missing.error().message(),
      testing::MatchesRegex("failed to exec in container: failed to start exec "
                            "\"[0-9a-f]*\": OCI runtime exec failed: exec failed: unable to "
                            "start container process: exec: \"nosuch\": executable file not "
                            "found in .PATH"));
}

TEST_P(OciRuntimeTest, the_process_sees_its_world) {
  const std::string sandbox = run_sandbox();
  ContainerConfig config = container_config({"sleep", "9999"});
  std::filesystem::create_directories(world().root() + "/volume");
  std::ofstream(world().root() + "/volume/file") << "content";
  config.mounts = {{"/v", world().root() + "/volume", true}};
  config.working_dir = "/var";
  config.security.run_as_user = 1000;
  config.security.run_as_group = 3000;
  config.security.supplemental_groups = {2000, 4000};
  config.limits.memory_bytes = 24 << 20;
  const std::string id = start(sandbox, config);

  EXPECT_EQ(exec(id, "id -u; id -g; id -G; pwd; hostname"),
            "1000\n3000\n3000 2000 4000\n/var\npod\n");
  EXPECT_EQ(exec(id, "cat /v/file"), "content");
  EXPECT_THAT(exec(id, "echo x > /v/new"), testing::HasSubstr("Read-only file system"));
  EXPECT_THAT(exec(id, "touch /x"), testing::HasSubstr("Permission denied"));
  EXPECT_EQ(exec(id,
                 "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes "
                 "2>/dev/null"),
            "25165824\n");
  EXPECT_EQ(exec(id, "ls /proc | grep -c '^1$'"), "1\n");
  EXPECT_EQ(exec(id, "echo $HOSTNAME $COLOUR"), "pod blue\n");
  const std::string address = containers().sandbox_status(sandbox)->ips.at(0);
  EXPECT_THAT(exec(id, "ip -4 addr show eth0"), testing::HasSubstr(address));
  EXPECT_THAT(exec(id, "bash -c 'printenv HOME'"), testing::StrEq("/\n"));
}

TEST_P(OciRuntimeTest, a_pod_has_a_control_group_as_the_kubelet_names_it) {
  const Cgroups groups;
  const std::string above = own_group(world().root() + "/runtime") + "/kubepods/burstable";
  const std::string group = above + "/pod11111111-2222-3333-4444-555555555555";
  SandboxConfig config = sandbox_config();
  config.group = "burstable/pod11111111-2222-3333-4444-555555555555";
  config.limits.cpu_shares = 256;
  config.limits.cpu_period = 100'000;
  config.limits.cpu_quota = 50'000;
  config.limits.memory_bytes = 96 << 20;
  auto sandbox = containers().run_sandbox(config);
  ASSERT_TRUE(sandbox.ok()) << sandbox.error().message();
  ContainerConfig one = container_config({"sleep", "9999"});
  one.limits.memory_bytes = 48 << 20;
  const std::string id = start(*sandbox, one);

  EXPECT_EQ(groups.usage(group)->memory_limit, 96u << 20);
  EXPECT_EQ(groups.usage(group + "/" + id)->memory_limit, 48u << 20);
  EXPECT_EQ(groups.processes(group + "/" + id).size(), 1u);
  EXPECT_GT(containers().usage(*sandbox)->memory_bytes, 0u);
  EXPECT_GT(containers().usage(id)->cpu_nanos, 0u);
  EXPECT_EQ(containers().interfaces(*sandbox).at(0).name, "eth0");

  config.limits.memory_bytes = 128 << 20;
  one.limits.memory_bytes = 64 << 20;
  ASSERT_TRUE(containers().update_sandbox(*sandbox, config.limits, {{"a", "b"}}).ok());
  ASSERT_TRUE(containers().update_container(id, one.limits, {}).ok());
  EXPECT_EQ(groups.usage(group)->memory_limit, 128u << 20);
  EXPECT_EQ(exec(id,
                 "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes "
                 "2>/dev/null"),
            "67108864\n");
  // Nobody's processes are killed for a resize.
  one.limits.memory_bytes = 4096;
  EXPECT_FALSE(containers().update_container(id, one.limits, {}).ok());

  // The next agent knows it, and takes it down.
  ASSERT_TRUE(world().open().ok());
  EXPECT_EQ(containers().sandbox_status(*sandbox)->annotations["a"], "b");
  EXPECT_EQ(groups.usage(group)->memory_limit, 128u << 20);
  ASSERT_TRUE(containers().stop_sandbox(*sandbox).ok());
  EXPECT_FALSE(groups.usage(group));
}

TEST_P(OciRuntimeTest, control_groups_that_nobody_knows_are_taken_down_with_what_runs_there) {
  const Cgroups groups;
  const std::string pods = own_group(world().root() + "/runtime") + "/kubepods";
  ASSERT_TRUE(groups.make(pods + "/besteffort/podlost/c").ok());
  auto stray = runtime::Process::start({.argv = {"sleep", "9999"}});
  ASSERT_TRUE(stray.ok());
  const std::string file = groups.unified() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  std::ofstream(file + pods + "/besteffort/podlost/c/cgroup.procs")
      << (*stray)->pid() << std::flush;
  ASSERT_EQ(groups.processes(pods + "/besteffort/podlost/c").size(), 1u);

  ASSERT_TRUE(world().open().ok());

  EXPECT_TRUE((*stray)->wait(std::chrono::seconds(5)).has_value());
  EXPECT_THAT(groups.children(pods + "/besteffort"), testing::IsEmpty());
}

TEST_P(OciRuntimeTest, a_read_only_root_and_other_image_names) {
  const std::string sandbox = run_sandbox();
  ContainerConfig config = container_config({"bash", "-c", "exec 2>&1; echo x > /x"});
  config.image = "ubuntu:22.04";
  config.security.read_only_root = true;
  const ContainerStatus status = ended(start(sandbox, config));
  EXPECT_EQ(status.exit_code, 1);
  EXPECT_THAT(log_of(status), testing::HasSubstr("can't create /x: Read-only file system"));
  EXPECT_EQ(status.image, "docker.io/library/ubuntu:22.04");
}

TEST_P(OciRuntimeTest, an_image_stands_in_only_where_no_registry_answers_and_says_so) {
  const auto pulled = containers().pull_image("127.0.0.1:1/team/app", {});
  ASSERT_TRUE(pulled.ok()) << pulled.error().message();
  EXPECT_THAT(pulled->stands_in_because, testing::HasSubstr("connection refused"));
  ContainerConfig config = container_config({"true"});
  config.image = pulled->id;
  const ContainerStatus status = ended(start(run_sandbox(), config));
  EXPECT_EQ(status.image, "127.0.0.1:1/team/app:latest");
  EXPECT_EQ(status.image_id, "dibs.dev/built-in@" + pulled->id);

  EXPECT_EQ(containers().pull_image("127.0.0.1:1/team/other", {}).error().code(),
            Code::unavailable);
}

TEST_P(OciRuntimeTest, an_image_is_a_volume_that_is_only_read) {
  const std::string sandbox = run_sandbox();
  const auto image = containers().image_status("ubuntu:22.04");
  ASSERT_TRUE(image.ok() && image->has_value());
  ContainerConfig config = container_config({"sleep", "9999"});
  const auto mount = [&](const std::string& at, const std::string& path) {
    Mount one;
    one.container_path = at;
    one.read_only = true;
    one.image = (*image)->id;
    one.image_path = path;
    return one;
  };
  config.mounts = {mount("/v", ""), mount("/programs", "bin"), mount("/host", "../../../etc")};
  const std::string id = start(sandbox, config);

  EXPECT_EQ(exec(id, "ls /v/bin/busybox /programs/busybox"), "/programs/busybox\n/v/bin/busybox\n");
  EXPECT_THAT(exec(id, "touch /v/x"), testing::HasSubstr("Read-only file system"));
  EXPECT_THAT(exec(id, "/v/bin/busybox true"), testing::HasSubstr("Permission denied"));
  EXPECT_EQ(exec(id, "ls /v/etc"), exec(id, "ls /host")) << "no way out of the image";

  config.mounts = {mount("/v", "no/such")};
  const auto missing = containers().create_container(sandbox, sandbox_config(), config);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(), cat("failed to mount image volume \"", (*image)->id,
                                           "\": the image has no \"no/such\""));
  config.mounts = {mount("/v", "")};
  config.mounts[0].image = "sha256:" + std::string(64, '0');
  EXPECT_EQ(containers().create_container(sandbox, sandbox_config(), config).error().code(),
            Code::not_found);

  ASSERT_TRUE(containers().remove_sandbox(sandbox).ok());
  const auto mounts = runtime::run({.argv = {"cat", "/proc/self/mountinfo"}});
  EXPECT_THAT(mounts->out,
              testing::Not(testing::HasSubstr(world().root() + "/runtime/containers")));
}

TEST_P(OciRuntimeTest, memory_has_a_limit) {
  const std::string sandbox = run_sandbox();
  ContainerConfig config = container_config({"tail", "/dev/zero"});
  config.limits.memory_bytes = 20 << 20;
  const ContainerStatus status = ended(start(sandbox, config));
  EXPECT_EQ(status.exit_code, 137);
  EXPECT_EQ(status.reason, "OOMKilled");
}

TEST_P(OciRuntimeTest, input_reaches_the_process) {
  const std::string sandbox = run_sandbox();
  ContainerConfig config =
      container_config({"sh", "-c", "while read x; do echo got $x; done; echo over"});
  config.stdin_open = config.stdin_once = true;
  const std::string id = start(sandbox, config);
  Collected process;
  auto input = containers().attach(id, collect(process));
  ASSERT_TRUE(input.ok()) << input.error().message();
  (*input)->write("x\ny\n");
  (*input)->close();
  ASSERT_TRUE(finished(process));
  EXPECT_EQ(process.code, 0);
  EXPECT_EQ(process.out, "got x\ngot y\nover\n");
}

TEST_P(OciRuntimeTest, exec_with_input_and_with_a_terminal) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  for (const bool tty : {false, true}) {
    Collected process;
    auto input = containers().exec(
        id,
        {.command = {"sh", "-c", tty ? "stty size; read x; echo got $x; exit 4" : "wc -l; exit 4"},
         .tty = tty,
         .stdin_open = true},
        collect(process));
    ASSERT_TRUE(input.ok()) << input.error().message();
    (*input)->resize({77, 11});
    (*input)->write("one\ntwo\n");
    if (!tty) (*input)->close();
    ASSERT_TRUE(finished(process));
    EXPECT_EQ(process.code, 4);
    if (tty) {
      EXPECT_THAT(process.out, testing::HasSubstr("got one\r\n"));
    } else {
      EXPECT_EQ(process.out, "2\n");
    }
  }
}

TEST_P(OciRuntimeTest, nobody_waits_for_one_that_does_not_hear_its_signal) {
  const std::string sandbox = run_sandbox();
  const std::string id =
      start(sandbox, container_config({"sh", "-c", "trap '' TERM; echo deaf; sleep 9999 & wait"}));
  for (int i = 0;
       i < 200 && exec(id, "cat /proc/1/status | grep SigIgn").find("4000") == std::string::npos;
       ++i) {
  }
  std::promise<Result<>> ended;
  auto future = ended.get_future();
  containers().stop_container(id, std::chrono::seconds(1),
                              [&](Result<> outcome) { ended.set_value(std::move(outcome)); });
  EXPECT_EQ(future.wait_for(Duration::zero()), std::future_status::timeout);
  EXPECT_EQ(containers().container_status(id)->state, ContainerState::running);
  EXPECT_TRUE(future.get().ok());
  EXPECT_EQ(containers().container_status(id)->exit_code, 137);
}

TEST_P(OciRuntimeTest, ports_are_reached) {
  const std::string sandbox = run_sandbox();
  const std::string id =
      start(sandbox, container_config({"sh", "-c", "echo welcome | nc -l -p 8080; sleep 9999"}));
  for (int i = 0; i < 200 && exec(id, "netstat -ltn | grep -c :8080") == "0\n"; ++i) {
  }
  std::string got;
  bool over = false;
  auto stream = containers().connect_port(sandbox, 8080,
                                          {.data =
                                               [&](std::string_view bytes) {
                                                 const MutexLock lock(mutex_);
                                                 got += bytes;
                                               },
                                           .ended =
                                               [&](const Result<>&) {
                                                 const MutexLock lock(mutex_);
                                                 over = true;
                                                 changed_.notify_all();
                                               }});
  ASSERT_TRUE(stream.ok()) << stream.error().message();
  (*stream)->close();
  MutexLock lock(mutex_);
  ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(20), [&] { return over; }));
  EXPECT_EQ(got, "welcome\n");
  lock.unlock();
  EXPECT_FALSE(containers().connect_port(sandbox, 9, {}).ok());
}

TEST_P(OciRuntimeTest, a_container_without_its_monitor_ends) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));
  int monitor = 0;
  std::ifstream(world().root() + "/runtime/containers/" + id + "/monitor") >> monitor;
  ASSERT_GT(monitor, 1);
  ASSERT_EQ(::kill(monitor, SIGKILL), 0);
  const ContainerStatus status = ended(id);
  EXPECT_EQ(status.exit_code, 137);
  EXPECT_EQ(status.message, "the container's monitor was lost");
}

TEST_P(OciRuntimeTest, cdi_devices_and_mounts_are_there) {
  const std::string sandbox = run_sandbox();
  std::filesystem::create_directories(world().root() + "/library");
  std::ofstream(world().root() + "/library/file") << "content";
  cdi::Spec spec{.version = "0.5.0", .kind = "vendor.com/gpu", .devices = {{.name = "0"}}};
  cdi::ContainerEdits& edits = spec.devices[0].edits;
  edits.device_nodes = {{.path = "/dev/gpu0", .host_path = "/dev/zero"}};
  edits.mounts = {{world().root() + "/library", "/usr/local/lib/gpu", {"ro", "rbind"}}};
  write_spec(spec);
  ContainerConfig config = container_config({"sleep", "9999"});
  config.cdi_devices = {"vendor.com/gpu=0"};
  const std::string id = start(sandbox, config);
  EXPECT_EQ(exec(id, "head -c 3 /dev/gpu0 | wc -c; cat /usr/local/lib/gpu/file"), "3\ncontent");
}

TEST_P(OciRuntimeTest, a_network_that_fails_says_why) {
  const std::string folder = world().root() + "/no-cni";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/10-x.conf") << R"({"cniVersion":"1.0.0","name":"x","type":"nosuch"})";
  auto id = containers().run_sandbox(sandbox_config());
  ASSERT_FALSE(id.ok());
  EXPECT_THAT(id.error().message(),
              testing::MatchesRegex("failed to setup network for sandbox \"[0-9a-f]+\": plugin "
                                    "type=\"nosuch\" failed .add.: failed to find plugin .*"));
  EXPECT_TRUE(containers().list_sandboxes()->empty());
  SandboxConfig host = sandbox_config();
  host.host_network = true;
  EXPECT_TRUE(containers().run_sandbox(host).ok());
  std::filesystem::remove_all(folder);
}

TEST_P(OciRuntimeTest, a_new_agent_finds_everything) {
  const std::string sandbox = run_sandbox();
  const std::string runs = start(sandbox, container_config({"sleep", "9999"}));
  const std::string ends =
      start(sandbox, container_config({"sh", "-c", "until [ -e /tmp/go ]; do sleep 0.1; done"}));
  auto created =
      containers().create_container(sandbox, sandbox_config(), container_config({"true"}));

  ASSERT_TRUE(world().open().ok());

  EXPECT_EQ(containers().sandbox_status(sandbox)->state, SandboxState::ready);
  EXPECT_EQ(containers().sandbox_status(sandbox)->annotations.at("note"), "kept");
  EXPECT_EQ(containers().container_status(runs)->state, ContainerState::running);
  EXPECT_EQ(containers().container_status(*created)->state, ContainerState::created);
  EXPECT_EQ(exec(runs, "echo on"), "on\n");
  EXPECT_TRUE(containers().start_container(*created).ok());
  containers().listen([this](const RuntimeEvent& event) {
    const MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.notify_all();
  });
  exec(ends, "touch /tmp/go");
  EXPECT_EQ(ended(ends).exit_code, 0);
  EXPECT_TRUE(stop(runs, Duration::zero()).ok());
  EXPECT_EQ(containers().container_status(runs)->exit_code, 137);
}

TEST_P(OciRuntimeTest, after_a_reboot_everything_has_ended) {
  const std::string sandbox = run_sandbox();
  const std::string id = start(sandbox, container_config({"sleep", "9999"}));

  ASSERT_TRUE(world().open("another boot").ok());

  EXPECT_EQ(containers().sandbox_status(sandbox)->state, SandboxState::not_ready);
  EXPECT_EQ(containers().container_status(id)->state, ContainerState::exited);
  EXPECT_EQ(containers().container_status(id)->exit_code, 255);
  EXPECT_TRUE(containers().remove_sandbox(sandbox).ok());
  EXPECT_TRUE(containers().list_containers()->empty());
}

TEST_P(OciRuntimeTest, an_agent_without_pods_leaves_no_folder) {
  const std::string run = oci_run_folder(world().root() + "/runtime");
  EXPECT_TRUE(std::filesystem::exists(run));
  world().close();
  EXPECT_FALSE(std::filesystem::exists(run));
  ASSERT_TRUE(world().open().ok());
}

TEST_P(OciRuntimeTest, nothing_is_left_behind) {
  SandboxConfig config = sandbox_config();
  config.share_pid = true;
  auto sandbox = containers().run_sandbox(config);
  ASSERT_TRUE(sandbox.ok()) << sandbox.error().message();
  auto id = containers().create_container(*sandbox, config, container_config({"sleep", "9999"}));
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(containers().start_container(*id).ok());
  EXPECT_THAT(exec(*id, "ps"), testing::HasSubstr("/pause"));
  ASSERT_TRUE(containers().remove_sandbox(*sandbox).ok());

  const auto mounts = runtime::run({.argv = {"cat", "/proc/self/mountinfo"}});
  EXPECT_THAT(mounts->out, testing::Not(testing::HasSubstr(world().root())));
  EXPECT_THAT(mounts->out,
              testing::Not(testing::HasSubstr(oci_run_folder(world().root() + "/runtime"))));
  for (const char* folder : {"/sandboxes", "/containers"}) {
    EXPECT_TRUE(std::filesystem::is_empty(world().root() + "/runtime" + folder));
  }
  for (const char* folder : {"/ns", "/exits", "/s", "/oci"}) {
    EXPECT_TRUE(std::filesystem::is_empty(oci_run_folder(world().root() + "/runtime") + folder))
        << folder;
  }
}

}  // namespace
}  // namespace dibs::node
