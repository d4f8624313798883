#include "node/runtime/oci_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "json/parse.h"
#include "node/runtime/oci_network.h"
#include "node/runtime/oci_records.h"

namespace dibs::node {
namespace {

using json::Value;
using testing::HasSubstr;

constexpr const char* kPasswd =
    "root:x:0:0:root:/root:/bin/sh\napp:x:1000:100:App:/home/app:/bin/sh\n";
constexpr const char* kGroup = "root:x:0:\nusers:x:100:\nvideo:x:44:app,other\n";

class OciConfig : public testing::Test {
 protected:
  Value build() {
    OciConfigInput input{.sandbox = sandbox_, .container = container_, .image = image_};
    input.root = "/root/fs";
    input.cgroup = "/dibs/pod1/c";
    input.network_namespace = "/ns/net";
    input.cgroup_v2 = true;
    auto built = build_oci_config(input, [](const std::string&) -> Result<cdi::HostNode> {
      return cdi::HostNode{'c', 10, 200, 0666};
    });
    EXPECT_TRUE(built.ok()) << built.error().message();
    return built.ok() ? *built : Value();
  }
  std::string args() { return json::write(build()["process"]["args"]); }
  std::string capabilities() { return json::write(build()["process"]["capabilities"]["bounding"]); }

  SandboxConfig sandbox_;
  ContainerConfig container_;
  Value image_ = *json::parse(R"({"config":{"Entrypoint":["/entry"],"Cmd":["a","b"],
      "Env":["PATH=/image","X=1"],"WorkingDir":"/work"}})");
};

TEST_F(OciConfig, command_and_arguments_replace_the_images) {
  EXPECT_EQ(args(), R"(["/entry","a","b"])");
  container_.args = {"c"};
  EXPECT_EQ(args(), R"(["/entry","c"])");
  container_.command = {"cmd"};
  EXPECT_EQ(args(), R"(["cmd","c"])");
  container_.args = {};
  EXPECT_EQ(args(), R"(["cmd"])");
}

TEST_F(OciConfig, the_environment_is_the_images_then_the_pods) {
  sandbox_.hostname = "host";
  container_.env = {{"X", "2"}, {"Y", "3"}};
  EXPECT_EQ(json::write(build()["process"]["env"]),
            R"(["PATH=/image","X=2","HOSTNAME=host","Y=3"])");
  EXPECT_EQ(build()["process"]["cwd"].str(), "/work");
}

TEST_F(OciConfig, home_follows_the_variables_of_devices) {
  const auto env_with = [&](const std::string& variable) {
    Value config = build();
    cdi::ContainerEdits edits;
    edits.env = {variable};
    EXPECT_TRUE(cdi::apply(edits, config).ok());
    finish_oci_config(config, "/root", {});
    return json::write(config["process"]["env"]);
  };
  EXPECT_EQ(env_with("DEVICE=1"), R"(["PATH=/image","X=1","DEVICE=1","HOME=/root"])");
  EXPECT_EQ(env_with("HOME=/device"), R"(["PATH=/image","X=1","HOME=/device"])");
  container_.env = {{"HOME", "/pod"}, {"Y", "3"}};
  EXPECT_EQ(env_with("DEVICE=1"), R"(["PATH=/image","X=1","HOME=/pod","Y=3","DEVICE=1"])");
}

TEST_F(OciConfig, what_devices_mount_lies_where_the_node_has_it) {
  Value config = build();
  cdi::ContainerEdits edits;
  edits.mounts = {{.host_path = "/kubelet/x", .container_path = "/x"},
                  {.host_path = "/other", .container_path = "/y"}};
  edits.hooks = {{.hook_name = "createContainer", .path = "/kubelet/hook"}};
  ASSERT_TRUE(cdi::apply(edits, config).ok());
  finish_oci_config(config, "", [](const std::string& path) {
    return path.starts_with("/kubelet/") ? "/node" + path.substr(8) : path;
  });
  std::map<std::string, std::string> sources;
  for (const auto& mount : config["mounts"].items()) {
    sources[mount["destination"].str()] = mount["source"].str();
  }
  EXPECT_EQ(sources["/x"], "/node/x");
  EXPECT_EQ(sources["/y"], "/other");
  EXPECT_EQ(sources["/proc"], "proc");
  EXPECT_EQ(config["hooks"]["createContainer"][0]["path"].str(), "/node/hook");
}

TEST_F(OciConfig, capabilities_are_added_and_dropped) {
  EXPECT_THAT(capabilities(), HasSubstr("CAP_NET_RAW"));
  container_.security.add_capabilities = {"sys_admin"};
  container_.security.drop_capabilities = {"NET_RAW"};
  EXPECT_THAT(capabilities(), HasSubstr("CAP_SYS_ADMIN"));
  EXPECT_THAT(capabilities(), testing::Not(HasSubstr("CAP_NET_RAW")));
  container_.security.add_capabilities = {"CAP_KILL"};
  container_.security.drop_capabilities = {"ALL"};
  EXPECT_EQ(capabilities(), R"(["CAP_KILL"])");
}

TEST_F(OciConfig, mounts_replace_defaults_and_follow_their_depth) {
  container_.mounts = {{"/a/b", "/h1", true},
                       {"/dev/shm", "/h2", false, Propagation::host_to_container},
                       {"/a", "/h3"}};
  const Value config = build();
  std::vector<std::string> places;
  for (const auto& mount : config["mounts"].items()) places.push_back(mount["destination"].str());
  EXPECT_EQ(std::count(places.begin(), places.end(), "/dev/shm"), 1);
  EXPECT_LT(std::find(places.begin(), places.end(), "/a"),
            std::find(places.begin(), places.end(), "/a/b"));
  EXPECT_EQ(config["linux"]["rootfsPropagation"].str(), "rslave");
}

TEST_F(OciConfig, privileged_means_everything) {
  container_.security.privileged = true;
  container_.security.seccomp = "RuntimeDefault";
  const Value config = build();
  EXPECT_FALSE(config["linux"].contains("maskedPaths"));
  EXPECT_FALSE(config["linux"].contains("seccomp"));
  EXPECT_TRUE(config["linux"]["resources"]["devices"][0]["allow"].as_bool());
  EXPECT_EQ(config["process"]["capabilities"]["bounding"].size(), 41u);
}

TEST_F(OciConfig, devices_limits_and_profiles) {
  container_.devices = {{"/dev/a", "/dev/b", "rw"}};
  container_.limits.memory_bytes = 1 << 20;
  container_.limits.cpu_shares = 102;
  container_.security.seccomp = "RuntimeDefault";
  const Value config = build();
  EXPECT_EQ(json::write(config["linux"]["devices"]),
            R"([{"path":"/dev/a","type":"c","major":10,"minor":200,"fileMode":438}])");
  EXPECT_EQ(json::write(config["linux"]["resources"]),
            R"({"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":10,)"
            R"("minor":200,"access":"rw"}],"memory":{"limit":1048576},"cpu":{"shares":102}})");
  EXPECT_EQ(config["linux"]["seccomp"]["defaultAction"].str(), "SCMP_ACT_ERRNO");
}

TEST_F(OciConfig, capabilities_that_no_kernel_has_are_refused) {
  container_.security.drop_capabilities = {"all"};
  container_.security.add_capabilities = {"NET_ADMINN"};
  const OciConfigInput input{.sandbox = sandbox_, .container = container_, .image = image_};
  const auto built = build_oci_config(input);
  ASSERT_FALSE(built.ok());
  EXPECT_EQ(built.error().message(), "unknown capability \"NET_ADMINN\"");
}

TEST_F(OciConfig, profiles_of_the_node_are_taken_or_refused) {
  const auto with = [&](const std::string& profile) {
    container_.security.seccomp = "/profiles/p.json";
    OciConfigInput input{.sandbox = sandbox_, .container = container_, .image = image_};
    input.seccomp_profile = profile;
    return build_oci_config(input);
  };
  const auto taken = with(R"({"defaultAction": "SCMP_ACT_LOG"})");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ((*taken)["linux"]["seccomp"]["defaultAction"].str(), "SCMP_ACT_LOG");
  for (const char* profile : {"", "[]", "no", R"({"defaultAction": "SCMP_ACT_ERRNO",
      "syscalls": [{"names": ["mount"], "includes": {"caps": ["CAP_SYS_ADMIN"]}}]})"}) {
    const auto refused = with(profile);
    ASSERT_FALSE(refused.ok()) << profile;
    EXPECT_THAT(refused.error().message(),
                HasSubstr("cannot load seccomp profile \"/profiles/p.json\""));
  }
}

TEST_F(OciConfig, what_the_machine_tells_of_others_is_masked) {
  const OciConfigInput input{.sandbox = sandbox_,
                             .container = container_,
                             .image = image_,
                             .masked = {"/sys/devices/system/cpu/cpu0/thermal_throttle"}};
  const auto built = build_oci_config(input);
  ASSERT_TRUE(built.ok());
  const std::string masked = json::write((*built)["linux"]["maskedPaths"]);
  for (const char* path : {"/proc/kcore", "/proc/interrupts", "/sys/firmware",
                           "/sys/devices/virtual/powercap", "thermal_throttle"}) {
    EXPECT_THAT(masked, HasSubstr(path));
  }
}

TEST(PauseConfig, shows_nothing_that_containers_may_not_see) {
  const Value config = build_pause_config("/root", "/dibs/pod1/p");
  EXPECT_TRUE(config["process"]["capabilities"]["bounding"].empty());
  EXPECT_TRUE(config["process"]["noNewPrivileges"].as_bool());
  EXPECT_THAT(json::write(config["linux"]["readonlyPaths"]), HasSubstr("/proc/sys"));
  EXPECT_THAT(json::write(config["linux"]["maskedPaths"]), HasSubstr("/proc/kcore"));
  EXPECT_THAT(json::write(config["linux"]["namespaces"]), HasSubstr("network"));
}

TEST_F(OciConfig, exec_is_the_same_process_with_another_command) {
  const Value process = build_exec_process(build(), {"ls", "-l"}, true);
  EXPECT_EQ(json::write(process["args"]), R"(["ls","-l"])");
  EXPECT_TRUE(process["terminal"].as_bool());
  EXPECT_EQ(process["cwd"].str(), "/work");
  EXPECT_THAT(json::write(process["env"]), HasSubstr("TERM=xterm"));
}

struct UserCase {
  std::optional<std::int64_t> run_as_user;
  std::optional<std::int64_t> run_as_group;
  std::string image_user;
  std::int64_t uid;
  std::int64_t gid;
  std::vector<std::int64_t> groups;
};

TEST(OciUser, comes_from_the_pod_or_the_image) {
  for (const auto& one : std::vector<UserCase>{
           {{}, {}, "", 0, 0, {0}},
           {{}, {}, "app", 1000, 100, {100, 44}},
           {{}, {}, "1000", 1000, 100, {100, 44}},
           {{}, {}, "app:video", 1000, 44, {44}},
           {{}, {}, "77:88", 77, 88, {88}},
           {1000, {}, "root", 1000, 100, {100, 44}},
           {5, 6, "app", 5, 6, {6}},
       }) {
    ContainerSecurity security;
    security.run_as_user = one.run_as_user;
    security.run_as_group = one.run_as_group;
    const auto user = resolve_user(security, one.image_user, kPasswd, kGroup);
    ASSERT_TRUE(user.ok()) << user.error().message();
    EXPECT_EQ(user->uid, one.uid) << one.image_user;
    EXPECT_EQ(user->gid, one.gid) << one.image_user;
    EXPECT_EQ(user->groups, one.groups) << one.image_user;
  }
  EXPECT_FALSE(resolve_user({}, "nobody", kPasswd, kGroup).ok());
  ContainerSecurity strict;
  strict.strict_groups = true;
  strict.supplemental_groups = {7};
  EXPECT_EQ(resolve_user(strict, "app", kPasswd, kGroup)->groups,
            (std::vector<std::int64_t>{100, 7}));
  EXPECT_FALSE(resolve_user({}, "app:nogroup", kPasswd, kGroup).ok());
}

TEST(Signals, have_names_and_numbers) {
  EXPECT_EQ(signal_number("SIGTERM"), SIGTERM);
  EXPECT_EQ(signal_number("int"), SIGINT);
  EXPECT_EQ(signal_number("9"), 9);
  EXPECT_EQ(signal_number("SIGRTMIN+3"), SIGRTMIN + 3);
  for (const char* bad : {"", "SIGNONE", "0", "999", "SIGRTMIN+x"}) {
    EXPECT_EQ(signal_number(bad), 0) << bad;
  }
}

TEST(OciRecords, read_back) {
  SandboxRecord sandbox;
  sandbox.phase = SandboxPhase::ready;
  sandbox.status.id = "s";
  sandbox.status.ips = {"10.0.0.1"};
  sandbox.config.uid = "uid";
  sandbox.config.ports = {{"UDP", 53, 5353, "127.0.0.1"}};
  sandbox.config.labels = {{"a", "b"}};
  sandbox.pause = {12, 34};
  EXPECT_EQ(SandboxRecord::read(json::write(sandbox.to_value()), sandbox.status.id)->to_value(),
            sandbox.to_value());
  ContainerRecord container;
  container.phase = ContainerPhase::exited;
  container.status.id = "c";
  container.status.exit_code = 3;
  container.status.finished = Time::from_seconds(5);
  container.status.annotations = {{"x", "y"}};
  container.process = {1, 2};
  EXPECT_EQ(
      ContainerRecord::read(json::write(container.to_value()), container.status.id)->to_value(),
      container.to_value());
  EXPECT_TRUE(ProcessMark::of(::getpid()).alive());
  EXPECT_FALSE((ProcessMark{::getpid(), 1}).alive());
}

// Else the folder of all of them would be removed for one that is damaged.
TEST(OciRecords, count_only_where_they_lie) {
  for (const char* text : {"", "{}", "null", "[]", R"({"id": ""})", R"({"id": "../.."})",
                           R"({"id": "other", "phase": "running"})"}) {
    EXPECT_FALSE(SandboxRecord::read(text, "s").ok()) << text;
    EXPECT_FALSE(ContainerRecord::read(text, "s").ok()) << text;
    EXPECT_FALSE(ContainerRecord::read(text, "").ok()) << text;
  }
}

}  // namespace
}  // namespace dibs::node
