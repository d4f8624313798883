#include "node/runtime/cni_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> addresses(std::string_view result) {
  auto read = cni_addresses(*json::parse(result));
  return read.ok() ? *read : std::vector<std::string>{"error: " + read.error().message()};
}

TEST(CniAddresses, are_those_of_the_result_without_masks) {
  EXPECT_THAT(addresses(R"({"ips": [{"address": "10.0.0.7/16"}, {"address": "FD00::7/64"}]})"),
              ElementsAre("10.0.0.7", "fd00::7"));
}

TEST(CniAddresses, of_old_plugins_are_read_too) {
  EXPECT_THAT(addresses(R"({"ip4": {"ip": "10.0.0.7/16"}, "ip6": {"ip": "fd00::7/64"}})"),
              ElementsAre("10.0.0.7", "fd00::7"));
}

TEST(CniAddresses, that_are_none_are_refused) {
  for (const char* bad :
       {R"({"ips": [{"address": "10.0.0.7"}]})", R"({"ips": [{"address": "10.0.0.7/33"}]})",
        R"({"ips": [{"address": "10.0.0/8"}]})", R"({"ips": [{"address": "10.0.0.7/8x"}]})",
        R"({"ips": [{"address": "10.0.0.7\u0000;rm/8"}]})", R"({"ips": [{"address": 7}]})",
        R"({"ips": [{}]})", R"({"ips": ["10.0.0.7/8"]})"}) {
    EXPECT_THAT(addresses(bad), ElementsAre(HasSubstr("error: "))) << bad;
  }
}

TEST(CniAddresses, must_be_there) {
  EXPECT_THAT(addresses("{}"), ElementsAre(HasSubstr("no address")));
  EXPECT_THAT(addresses(R"({"ips": []})"), ElementsAre(HasSubstr("no address")));
}

TEST(CniOutput, of_an_addition_must_be_an_object) {
  EXPECT_TRUE(read_cni_output("ADD", {0, " {\"ips\": []}\n", ""}).ok());
  EXPECT_FALSE(read_cni_output("ADD", {0, "", ""}).ok());
  EXPECT_FALSE(read_cni_output("ADD", {0, "done", ""}).ok());
  EXPECT_FALSE(read_cni_output("ADD", {0, "[]", ""}).ok());
  EXPECT_TRUE(read_cni_output("DEL", {0, "", ""}).ok());
}

TEST(CniOutput, of_a_failure_is_told) {
  const auto message = [](const CniOutput& output) {
    return read_cni_output("ADD", output).error().message();
  };
  EXPECT_EQ(message({1, R"({"msg": "no more", "details": "of 16"})", ""}), "no more; of 16");
  EXPECT_EQ(message({1, "", "panic\n"}), "panic");
  EXPECT_EQ(message({1, "what", ""}), "what");
}

TEST(CniConfiguration, names_plugins_and_no_paths) {
  EXPECT_TRUE(parse_cni_configuration(R"({"name": "n", "type": "bridge"})").ok());
  EXPECT_TRUE(parse_cni_configuration(R"({"name": "n", "plugins": [{"type": "bridge"}]})").ok());
  for (const char* bad : {"", "[]", "{}", R"({"name": "n"})", R"({"name": "n", "plugins": []})",
                          R"({"name": "n", "plugins": ["bridge"]})",
                          R"({"name": "n", "plugins": {"type": "bridge"}})",
                          R"({"name": "n", "plugins": [{"type": "../../bin/sh"}]})"}) {
    EXPECT_FALSE(parse_cni_configuration(bad).ok()) << bad;
  }
}

TEST(CniInput, has_the_ports_where_a_plugin_maps_them) {
  const auto list = parse_cni_configuration(
      R"({"name": "n", "cniVersion": "1.0.0",
          "plugins": [{"type": "portmap", "capabilities": {"portMappings": true}}]})");
  ASSERT_TRUE(list.ok());
  SandboxConfig sandbox;
  sandbox.ports = {{"TCP", 80, 8080, ""}, {"TCP", 81, 0, ""}};
  SandboxNetwork eth0;
  eth0.interface = "eth0";

  const auto input =
      cni_input(cni_attachment(eth0, *list), (*list)["plugins"][0], sandbox, json::Value::object());

  EXPECT_EQ(json::write(input),
            R"({"type":"portmap","name":"n","cniVersion":"1.0.0","runtimeConfig":{"portMappings":)"
            R"([{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]},"prevResult":{}})");
}

}  // namespace
}  // namespace dibs::node
