#include "node/runtime/oci_seccomp.h"

namespace dibs::node {

json::Value default_seccomp() {
  using json::Value;
  constexpr const char* kRefused[] = {"acct",
                                      "add_key",
                                      "bpf",
                                      "clock_adjtime",
                                      "clock_settime",
                                      "create_module",
                                      "delete_module",
                                      "fanotify_init",
                                      "finit_module",
                                      "fsconfig",
                                      "fsmount",
                                      "fsopen",
                                      "fspick",
                                      "get_kernel_syms",
                                      "get_mempolicy",
                                      "init_module",
                                      "ioperm",
                                      "iopl",
                                      "io_uring_enter",
                                      "io_uring_register",
                                      "io_uring_setup",
                                      "kcmp",
                                      "kexec_file_load",
                                      "kexec_load",
                                      "keyctl",
                                      "lookup_dcookie",
                                      "mbind",
                                      "mount",
                                      "mount_setattr",
                                      "move_mount",
                                      "move_pages",
                                      "nfsservctl",
                                      "open_by_handle_at",
                                      "open_tree",
                                      "perf_event_open",
                                      "pivot_root",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "query_module",
                                      "quotactl",
                                      "quotactl_fd",
                                      "reboot",
                                      "request_key",
                                      "set_mempolicy",
                                      "setns",
                                      "settimeofday",
                                      "stime",
                                      "swapoff",
                                      "swapon",
                                      "_sysctl",
                                      "sysfs",
                                      "syslog",
                                      "umount",
                                      "umount2",
                                      "unshare",
                                      "uselib",
                                      "userfaultfd",
                                      "ustat",
                                      "vm86",
                                      "vm86old"};
  Value names = Value::array();
  for (const char* name : kRefused) names.push(name);
  return Value::object(
      {{"defaultAction", "SCMP_ACT_ALLOW"},
       {"syscalls", Value::array({Value::object(
                        {{"names", names}, {"action", "SCMP_ACT_ERRNO"}, {"errnoRet", 1}})})}});
}

}  // namespace dibs::node
