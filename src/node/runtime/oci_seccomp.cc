#include "node/runtime/oci_seccomp.h"

#include <cerrno>
#include <cstdint>

#include "base/strings.h"

namespace dibs::node {
namespace {

using json::Value;

/// Calls that act on the process, its files and what it was given. Those that can do more ask for a
/// capability themselves.
constexpr std::string_view kAlways =
    // Files and what is in them.
    "access chdir chmod chown chown32 close close_range copy_file_range creat dup dup2 dup3 "
    "faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown "
    "fchown32 fchownat fcntl fcntl64 fdatasync flock fstat fstat64 fstatat64 fstatfs fstatfs64 "
    "fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64 ioctl lchown lchown32 link "
    "linkat _llseek lseek lstat lstat64 mkdir mkdirat mknod mknodat name_to_handle_at newfstatat "
    "open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink "
    "readlinkat readv rename renameat renameat2 rmdir sendfile sendfile64 splice stat stat64 "
    "statfs "
    "statfs64 statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64 umask "
    "unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev "
    "fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr "
    "listxattrat llistxattr lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat "
    "inotify_add_watch inotify_init inotify_init1 inotify_rm_watch fanotify_mark "
    "io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit "
    "landlock_add_rule landlock_create_ruleset landlock_restrict_self "
    // Memory.
    "brk cachestat madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock "
    "mlock2 mlockall mmap mmap2 mprotect mremap mseal msync munlock munlockall munmap pkey_alloc "
    "pkey_free pkey_mprotect remap_file_pages "
    // Processes, threads, signals.
    "alarm capget capset execve execveat exit exit_group fork futex futex_requeue futex_time64 "
    "futex_wait futex_waitv futex_wake getcpu getegid getegid32 geteuid geteuid32 getgid getgid32 "
    "getgroups getgroups32 getpgid getpgrp getpid getppid getpriority getresgid getresgid32 "
    "getresuid getresuid32 getrlimit get_robust_list getrusage getsid get_thread_area gettid "
    "getuid "
    "getuid32 ioprio_get ioprio_set kill pause pidfd_open pidfd_send_signal prctl prlimit64 "
    "process_mrelease ptrace restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask "
    "rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 "
    "rt_tgsigqueueinfo sched_getaffinity sched_getattr sched_getparam sched_get_priority_max "
    "sched_get_priority_min sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 "
    "sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp "
    "setfsgid "
    "setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32 setpgid setpriority "
    "setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit "
    "set_robust_list setsid set_thread_area set_tid_address setuid setuid32 sigaltstack signalfd "
    "signalfd4 sigprocmask sigreturn sysinfo tgkill times tkill ugetrlimit uname uretprobe vfork "
    "wait4 waitid waitpid "
    // Waiting and time.
    "adjtimex clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime "
    "clock_gettime64 clock_nanosleep clock_nanosleep_time64 epoll_create epoll_create1 epoll_ctl "
    "epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 getitimer "
    "getrandom gettimeofday nanosleep _newselect poll ppoll ppoll_time64 pselect6 pselect6_time64 "
    "select setitimer time timer_create timer_delete timer_getoverrun timer_gettime "
    "timer_gettime64 "
    "timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 "
    "timerfd_settime "
    "timerfd_settime64 "
    // Talking to others.
    "accept accept4 bind connect getpeername getsockname getsockopt ipc listen mq_getsetattr "
    "mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 "
    "mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 recv recvfrom recvmmsg recvmmsg_time64 "
    "recvmsg semctl semget semop semtimedop semtimedop_time64 send sendmmsg sendmsg sendto "
    "setsockopt shmat shmctl shmdt shmget shutdown socketcall socketpair";

struct WithCapability {
  std::string_view capability;
  std::string_view calls;
};
constexpr WithCapability kWithCapability[] = {
    {"CAP_BPF", "bpf"},
    {"CAP_DAC_READ_SEARCH", "open_by_handle_at"},
    {"CAP_PERFMON", "perf_event_open"},
    {"CAP_SYS_ADMIN",
     "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick listmount lookup_dcookie "
     "mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname "
     "sethostname setns statmount syslog umount umount2 unshare"},
    {"CAP_SYS_BOOT", "reboot"},
    {"CAP_SYS_CHROOT", "chroot"},
    {"CAP_SYS_MODULE", "delete_module finit_module init_module query_module"},
    {"CAP_SYS_NICE", "get_mempolicy mbind set_mempolicy set_mempolicy_home_node"},
    {"CAP_SYS_PACCT", "acct"},
    {"CAP_SYS_PTRACE", "kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev"},
    {"CAP_SYS_RAWIO", "ioperm iopl"},
    {"CAP_SYS_TIME", "clock_settime clock_settime64 settimeofday stime"},
    {"CAP_SYS_TTY_CONFIG", "vhangup"},
    {"CAP_SYSLOG", "syslog"},
};

/// What a machine calls itself, the ABIs that its programs may use, the first its own, and the
/// calls that only it has. Without its other ABIs a filter could be walked around by them.
struct Machine {
  std::string_view name;
  std::string_view abis;
  std::string_view calls;
};
constexpr Machine kMachines[] = {
    {"x86_64", "SCMP_ARCH_X86_64 SCMP_ARCH_X86 SCMP_ARCH_X32", "arch_prctl modify_ldt"},
    {"i686", "SCMP_ARCH_X86", "modify_ldt"},
    {"aarch64", "SCMP_ARCH_AARCH64 SCMP_ARCH_ARM",
     "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2"},
    {"armv7l", "SCMP_ARCH_ARM",
     "arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2"},
    {"ppc64le", "SCMP_ARCH_PPC64LE", "swapcontext sync_file_range2"},
    {"s390x", "SCMP_ARCH_S390X SCMP_ARCH_S390",
     "s390_pci_mmio_read s390_pci_mmio_write s390_runtime_instr"},
    {"riscv64", "SCMP_ARCH_RISCV64", "riscv_flush_icache"},
};

/// CLONE_NEW… of mount, uts, ipc, user, pid, network and cgroup.
constexpr std::int64_t kNewNamespaces = 0x7e020000;
constexpr std::int64_t kVsock = 40;  // AF_VSOCK: to the hypervisor, past every network policy
/// Linux, and the old programs of 32 bits; the last asks what it is.
constexpr std::int64_t kPersonalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

Value words(std::string_view text) {
  Value list = Value::array();
  for (const auto word : split(text, ' ')) list.push(word);
  return list;
}

Value argument(int index, std::int64_t value, std::string_view op) {
  return Value::object({{"index", index}, {"value", value}, {"op", op}});
}

class Profile {
 public:
  void allow(std::string_view calls) { add(calls, "SCMP_ACT_ALLOW"); }
  void allow_if(std::string_view call, Value argument) {
    add(call, "SCMP_ACT_ALLOW").set("args", Value::array({std::move(argument)}));
  }
  void refuse(std::string_view call, int error) {
    add(call, "SCMP_ACT_ERRNO").set("errnoRet", error);
  }
  Value take() { return std::move(rules_); }

 private:
  Value& add(std::string_view calls, std::string_view action) {
    rules_.push(Value::object({{"names", words(calls)}, {"action", action}}));
    return rules_.mut(rules_.size() - 1);
  }
  Value rules_ = Value::array();
};

}  // namespace

Value default_seccomp(const std::set<std::string>& capabilities, std::string_view machine) {
  Profile profile;
  profile.allow(kAlways);
  profile.allow_if("socket", argument(0, kVsock, "SCMP_CMP_NE"));
  for (const auto personality : kPersonalities) {
    profile.allow_if("personality", argument(0, personality, "SCMP_CMP_EQ"));
  }
  for (const auto& [capability, calls] : kWithCapability) {
    if (capabilities.contains(std::string(capability))) profile.allow(calls);
  }
  if (!capabilities.contains("CAP_SYS_ADMIN")) {
    // s390 has the arguments the other way round.
    Value flags = argument(machine == "s390x" ? 1 : 0, kNewNamespaces, "SCMP_CMP_MASKED_EQ");
    flags.set("valueTwo", 0);
    profile.allow_if("clone", std::move(flags));
    // Its flags are in memory, where no filter sees them; without it programs use clone.
    profile.refuse("clone3", ENOSYS);
  }
  Value abis;
  for (const auto& known : kMachines) {
    if (known.name != machine) continue;
    abis = words(known.abis);
    profile.allow(known.calls);
  }
  Value out = Value::object({{"defaultAction", "SCMP_ACT_ERRNO"}, {"defaultErrnoRet", EPERM}});
  // Of a machine that is not in the table only the runtime knows the ABI, and takes its own alone.
  if (!abis.is_null()) out.set("architectures", std::move(abis));
  out.set("syscalls", profile.take());
  return out;
}

}  // namespace dibs::node
