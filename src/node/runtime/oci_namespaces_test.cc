#include "node/runtime/oci_namespaces.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/strings.h"
#include "node/runtime/oci_runtime.h"
#include "node/runtime/sysctl.h"

namespace dibs::node {
namespace {

std::string setting(const char* name) {
  std::ifstream file(cat("/proc/sys/", name));
  std::string text;
  std::getline(file, text);
  return text;
}

std::string setting_inside(const std::string& space, const char* name) {
  std::string text;
  std::thread([&] {
    const runtime::Fd target(::open(space.c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(target.get(), 0) == 0) text = setting(name);
  }).join();
  return text;
}

class Namespaces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_for_oci("runc"); !missing.empty()) {
      GTEST_SKIP() << missing;
    }
    folder_ = std::filesystem::temp_directory_path() / cat("dibs-ns-", ::getpid());
  }
  void TearDown() override {
    if (folder_.empty()) return;
    remove_namespaces(folder_);
    std::filesystem::remove_all(folder_);
  }
  std::string folder_;
};

TEST_F(Namespaces, have_settings_of_their_own) {
  ASSERT_TRUE(make_namespaces(folder_, {}).ok());
  const std::string before = setting("kernel/msgmax");
  const std::string range = setting("net/ipv4/ip_local_port_range");
  const auto set = set_sysctls(
      folder_, {{"kernel.msgmax", "12345"}, {"net.ipv4.ip_local_port_range", "2000\t3000"}});
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(setting_inside(folder_ + "/ipc", "kernel/msgmax"), "12345");
  EXPECT_EQ(setting_inside(folder_ + "/net", "net/ipv4/ip_local_port_range"), "2000\t3000");
  EXPECT_EQ(setting("kernel/msgmax"), before);
  EXPECT_EQ(setting("net/ipv4/ip_local_port_range"), range);
}

TEST_F(Namespaces, keep_the_host_s_settings_as_they_are) {
  const std::string burst = setting("kernel/printk_ratelimit_burst");
  ASSERT_TRUE(make_namespaces(folder_, {}).ok());
  for (const char* name : {"kernel.printk_ratelimit_burst", "kernel.core_pattern",
                           "net.//.kernel.printk_ratelimit_burst"}) {
    EXPECT_FALSE(set_sysctls(folder_, {{"kernel.msgmax", "12345"}, {name, "77"}}).ok()) << name;
  }
  EXPECT_EQ(setting("kernel/printk_ratelimit_burst"), burst);
}

TEST_F(Namespaces, refuse_settings_of_a_namespace_that_is_the_host_s) {
  const std::string before = setting("kernel/msgmax");
  const std::string cookies = setting("net/ipv4/tcp_syncookies");
  ASSERT_TRUE(make_namespaces(folder_, {.network = false, .ipc = false}).ok());
  EXPECT_FALSE(set_sysctls(folder_, {{"kernel.msgmax", "12345"}}).ok());
  EXPECT_FALSE(set_sysctls(folder_, {{"net.ipv4.tcp_syncookies", "0"}}).ok());
  EXPECT_EQ(setting("kernel/msgmax"), before);
  EXPECT_EQ(setting("net/ipv4/tcp_syncookies"), cookies);
}

TEST(Sysctls, are_named_with_dots_or_slashes) {
  EXPECT_EQ(normalized_sysctl("net/ipv4/conf/eth0.100/forwarding"),
            "net.ipv4.conf.eth0/100.forwarding");
  EXPECT_EQ(normalized_sysctl("net.ipv4.conf.eth0/100.forwarding"),
            "net.ipv4.conf.eth0/100.forwarding");
  EXPECT_EQ(sysctl_path("net.ipv4.conf.eth0/100.forwarding"), "net/ipv4/conf/eth0.100/forwarding");
  EXPECT_EQ(normalized_sysctl("plain"), "plain");
}

}  // namespace
}  // namespace dibs::node
