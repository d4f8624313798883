#include "node/runtime/oci_seccomp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "json/parse.h"

namespace dibs::node {
namespace {

using json::Value;
using testing::ElementsAre;

/// What becomes of a call: "" when no rule names it.
std::string verdict(const Value& profile, std::string_view call) {
  std::string out;
  for (const auto& rule : profile["syscalls"].items()) {
    for (const auto& name : rule["names"].items()) {
      if (name.as_string() != call) continue;
      if (rule["action"].as_string() == "SCMP_ACT_ALLOW" && !rule.contains("args"))
        return "allowed";
      out = rule.contains("args") ? "conditional" : "refused";
    }
  }
  return out;
}

TEST(DefaultSeccomp, refuses_what_it_does_not_name) {
  const Value profile = default_seccomp({}, "x86_64");
  EXPECT_EQ(profile["defaultAction"].str(), "SCMP_ACT_ERRNO");
  EXPECT_EQ(profile["defaultErrnoRet"].as_int(), EPERM);
  for (const char* call :
       {"mount", "unshare", "setns", "bpf", "keyctl", "add_key", "request_key", "io_uring_setup",
        "userfaultfd", "kexec_load", "init_module", "open_by_handle_at", "perf_event_open",
        "pivot_root", "chroot", "process_vm_writev", "swapon", "quotactl", "a_call_of_tomorrow"}) {
    EXPECT_EQ(verdict(profile, call), "") << call;
  }
  for (const char* call : {"read", "openat", "execve", "futex", "mmap", "clock_gettime", "ptrace",
                           "statx", "rseq", "arch_prctl"}) {
    EXPECT_EQ(verdict(profile, call), "allowed") << call;
  }
}

TEST(DefaultSeccomp, allows_more_with_capabilities) {
  EXPECT_EQ(verdict(default_seccomp({"CAP_SYS_CHROOT"}, "x86_64"), "chroot"), "allowed");
  EXPECT_EQ(verdict(default_seccomp({"CAP_SYS_PTRACE"}, "x86_64"), "process_vm_readv"), "allowed");
  const Value admin = default_seccomp({"CAP_SYS_ADMIN"}, "x86_64");
  for (const char* call : {"mount", "unshare", "setns", "clone", "clone3"}) {
    EXPECT_EQ(verdict(admin, call), "allowed") << call;
  }
  EXPECT_EQ(verdict(admin, "kexec_load"), "");
}

TEST(DefaultSeccomp, looks_at_arguments) {
  const Value profile = default_seccomp({}, "x86_64");
  EXPECT_EQ(verdict(profile, "clone"), "conditional");
  EXPECT_EQ(verdict(profile, "socket"), "conditional");
  std::vector<std::int64_t> personalities;
  for (const auto& rule : profile["syscalls"].items()) {
    const auto name = rule["names"][0].as_string();
    const Value& argument = rule["args"][0];
    if (name == "personality") personalities.push_back(argument["value"].as_int());
    if (name == "clone") {
      EXPECT_EQ(json::write(argument),
                R"({"index":0,"value":2114060288,"op":"SCMP_CMP_MASKED_EQ","valueTwo":0})");
    }
    if (name == "clone3") {
      EXPECT_EQ(rule["errnoRet"].as_int(), ENOSYS);
    }
  }
  EXPECT_THAT(personalities, ElementsAre(0, 8, 0x20000, 0x20008, 0xffffffff));
}

TEST(DefaultSeccomp, covers_all_that_a_machine_runs) {
  EXPECT_EQ(json::write(default_seccomp({}, "x86_64")["architectures"]),
            R"(["SCMP_ARCH_X86_64","SCMP_ARCH_X86","SCMP_ARCH_X32"])");
  EXPECT_EQ(json::write(default_seccomp({}, "aarch64")["architectures"]),
            R"(["SCMP_ARCH_AARCH64","SCMP_ARCH_ARM"])");
  EXPECT_FALSE(default_seccomp({}, "mips").contains("architectures"));
  EXPECT_EQ(verdict(default_seccomp({}, "aarch64"), "modify_ldt"), "");
}

}  // namespace
}  // namespace dibs::node
