#include "node/pods/sysctl_rules.h"

#include <gtest/gtest.h>

#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;

Value pod_with(std::string_view name, std::string_view more = "") {
  Value spec = more.empty() ? Value::object() : json::parse(more).value();
  spec.set("securityContext",
           Value::object(
               {{"sysctls", Value::array({Value::object({{"name", name}, {"value", "1"}})})}}));
  return Value::object({{"spec", spec}});
}

std::string verdict(const SysctlRules& rules, const Value& pod) {
  return rules.forbidden(pod).value_or("");
}

TEST(SysctlRules, allow_what_is_safe) {
  const SysctlRules rules;
  for (const char* name :
       {"kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies", "net/ipv4/ping_group_range"}) {
    EXPECT_EQ(verdict(rules, pod_with(name)), "") << name;
  }
  EXPECT_EQ(verdict(rules, Value::object()), "");
}

TEST(SysctlRules, forbid_the_machine_s_own) {
  const auto all = SysctlRules::make(
      {"net.*", "kernel.shm*", "kernel.msg*", "kernel.sem", "fs.mqueue.*"}, "6.1.0");
  ASSERT_TRUE(all.ok());
  for (const char* name : {"kernel.core_pattern", "kernel.printk_ratelimit_burst", "vm.swappiness",
                           "kernel/core_pattern", "net/../kernel/core_pattern", "fs.file-max",
                           "user.max_user_namespaces"}) {
    EXPECT_TRUE(SysctlRules().forbidden(pod_with(name))) << name;
    EXPECT_TRUE(all->forbidden(pod_with(name))) << name;
  }
  EXPECT_EQ(verdict(*all, pod_with("kernel/core_pattern")),
            "forbidden sysctl: \"kernel.core_pattern\" not allowlisted");
}

TEST(SysctlRules, allow_unsafe_ones_by_name_or_beginning) {
  const auto rules = SysctlRules::make({"kernel.msg*", "net/core/somaxconn"}, "6.1.0-13-amd64");
  ASSERT_TRUE(rules.ok());
  EXPECT_EQ(verdict(*rules, pod_with("kernel.msgmax")), "");
  EXPECT_EQ(verdict(*rules, pod_with("net.core.somaxconn")), "");
  EXPECT_EQ(verdict(*rules, pod_with("kernel.shmmax")),
            "forbidden sysctl: \"kernel.shmmax\" not allowlisted");
  EXPECT_EQ(verdict(*rules, pod_with("net.core.somaxconn2")),
            "forbidden sysctl: \"net.core.somaxconn2\" not allowlisted");
}

TEST(SysctlRules, forbid_what_would_reach_a_namespace_of_the_host) {
  const SysctlRules rules;
  EXPECT_EQ(verdict(rules, pod_with("net.ipv4.tcp_syncookies", R"({"hostNetwork": true})")),
            "forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host net enabled");
  EXPECT_EQ(verdict(rules, pod_with("kernel.shm_rmid_forced", R"({"hostIPC": true})")),
            "forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host ipc enabled");
  EXPECT_EQ(verdict(rules, pod_with("kernel.shm_rmid_forced", R"({"hostNetwork": true})")), "");
  EXPECT_EQ(verdict(rules, pod_with("net.ipv4.tcp_syncookies", R"({"hostIPC": true})")), "");
}

TEST(SysctlRules, count_as_safe_what_the_kernel_has_in_the_namespace) {
  const auto old = SysctlRules::make({}, "4.4.0");
  ASSERT_TRUE(old.ok());
  EXPECT_TRUE(old->forbidden(pod_with("net.ipv4.tcp_rmem")));
  EXPECT_FALSE(old->forbidden(pod_with("net.ipv4.ip_local_reserved_ports")));
  EXPECT_FALSE(SysctlRules::make({}, "6.1")->forbidden(pod_with("net.ipv4.tcp_rmem")));
}

TEST(SysctlRules, refuse_patterns_that_are_no_namespace_s) {
  for (const char* pattern : {"kernel.core_pattern", "vm.*", "*", "", "kernel.*", "net*", "net.*.x",
                              "kernel.shm*x", "Net.core", "net..x", "fs.mqueue"}) {
    const auto rules = SysctlRules::make({pattern}, "6.1");
    ASSERT_FALSE(rules.ok()) << pattern;
    EXPECT_NE(rules.error().message().find("--allowed-unsafe-sysctls"), std::string::npos);
  }
  for (const char* pattern : {"net.*", "kernel.shm_*", "kernel.sem", "fs.mqueue.*",
                              "net.ipv4.conf.eth0/100.forwarding"}) {
    EXPECT_TRUE(SysctlRules::make({pattern}, "6.1").ok()) << pattern;
  }
}

}  // namespace
}  // namespace dibs::node
