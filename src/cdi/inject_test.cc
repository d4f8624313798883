#include "cdi/inject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::cdi {
namespace {

json::Value config(std::string_view text) { return *json::parse(text); }

Result<HostNode> fake_node(const std::string& path) {
  if (path == "/dev/char") return HostNode{'c', 195, 3, 0666};
  if (path == "/dev/block") return HostNode{'b', 8, 0, 0660};
  return Error::internal("no such file or directory");
}

std::string after(const ContainerEdits& edits, std::string_view before) {
  json::Value value = config(before);
  const auto result = apply(edits, value, fake_node);
  return result.ok() ? json::write(value) : result.error().message();
}

TEST(CdiInject, env_replaces_in_place_and_later_wins) {
  EXPECT_EQ(after({.env = {"B=2", "C=3", "C=4"}}, R"({"process":{"env":["B=1","BB=9"]}})"),
            R"({"process":{"env":["B=2","BB=9","C=4"]}})");
}

TEST(CdiInject, fills_device_nodes_from_the_host) {
  EXPECT_EQ(after({.device_nodes = {{.path = "/dev/a", .host_path = "/dev/char"}}},
                  R"({"process":{"user":{"uid":1000,"gid":0}},
                      "linux":{"devices":[{"path":"/dev/a"},{"path":"/dev/b"}]}})"),
            R"({"process":{"user":{"uid":1000,"gid":0}},"linux":{"devices":[{"path":"/dev/b"},)"
            R"({"path":"/dev/a","type":"c","major":195,"minor":3,"fileMode":438,"uid":1000}],)"
            R"("resources":{"devices":[{"allow":true,"type":"c","major":195,"minor":3,)"
            R"("access":"rwm"}]}}})");
}

TEST(CdiInject, a_specified_node_need_not_exist) {
  EXPECT_EQ(after({.device_nodes = {{.path = "/dev/n",
                                     .type = "c",
                                     .major = 1,
                                     .minor = 2,
                                     .permissions = "none",
                                     .gid = 7}}},
                  "{}"),
            R"({"linux":{"devices":[{"path":"/dev/n","type":"c","major":1,"minor":2,"gid":7}],)"
            R"("resources":{"devices":[{"allow":true,"type":"c","major":1,"minor":2,)"
            R"("access":""}]}}})");
}

TEST(CdiInject, device_errors) {
  EXPECT_EQ(after({.device_nodes = {{.path = "/dev/gone"}}}, "{}"),
            "failed to stat CDI host device \"/dev/gone\": no such file or directory");
  EXPECT_EQ(after({.device_nodes = {{.path = "/dev/block", .type = "c"}}}, "{}"),
            "CDI device (\"/dev/block\", \"/dev/block\"), host type mismatch (c, b)");
}

TEST(CdiInject, mounts_replace_and_are_sorted_by_depth) {
  EXPECT_EQ(after({.mounts = {{"/h", "/a/b/c", {"ro"}, "bind"}, {"/i", "/x", {}, ""}}},
                  R"({"mounts":[{"destination":"/a/b/c"},{"destination":"/p/q"},
                                {"destination":"/proc"}]})"),
            R"({"mounts":[{"destination":"/proc"},{"destination":"/x","source":"/i"},)"
            R"({"destination":"/p/q"},)"
            R"({"destination":"/a/b/c","type":"bind","source":"/h","options":["ro"]}]})");
}

TEST(CdiInject, bind_mounts_are_mapped_in_a_user_namespace) {
  EXPECT_EQ(after({.mounts = {{"/h", "/a", {"rbind"}, ""}}},
                  R"({"linux":{"namespaces":[{"type":"user"}]}})"),
            R"({"linux":{"namespaces":[{"type":"user"}]},"mounts":[)"
            R"({"destination":"/a","source":"/h","options":["rbind","ridmap"]}]})");
}

TEST(CdiInject, hooks_groups_rdt_and_interfaces) {
  EXPECT_EQ(after({.net_devices = {{"eth1", "net0"}},
                   .hooks = {{"createContainer", "/bin/h", {"h", "-x"}, {"A=1"}, 3}},
                   .intel_rdt = IntelRdt{.clos_id = "x"},
                   .additional_gids = {0, 44, 44, 5}},
                  R"({"process":{"user":{"additionalGids":[5]}}})"),
            R"({"process":{"user":{"additionalGids":[5,44]}},)"
            R"("linux":{"netDevices":{"eth1":{"name":"net0"}},"intelRdt":{"closID":"x"}},)"
            R"("hooks":{"createContainer":[{"path":"/bin/h","args":["h","-x"],"env":["A=1"],)"
            R"("timeout":3}]}})");
}

TEST(CdiInject, an_error_leaves_the_configuration_alone) {
  json::Value value = config(R"({"process":{"env":["A=1"]}})");
  EXPECT_FALSE(apply({.env = {"A=2"}, .device_nodes = {{.path = "/gone"}}}, value, fake_node).ok());
  EXPECT_EQ(json::write(value), R"({"process":{"env":["A=1"]}})");
}

TEST(CdiInject, the_machine_has_a_null_device) {
  const auto node = host_node("/dev/null");
  ASSERT_TRUE(node.ok());
  EXPECT_EQ(node->type, 'c');
  EXPECT_EQ(node->major, 1);
  EXPECT_EQ(node->minor, 3);
  EXPECT_FALSE(host_node("/").ok());
}

}  // namespace
}  // namespace dibs::cdi
