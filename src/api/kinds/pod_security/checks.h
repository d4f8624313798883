#pragma once
// The checks of the Pod Security Standards, one function each, and what they share. Only for this
// folder; the table of them is in checks.cc.

#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/kinds/pod_security/pod_security.h"
#include "json/value.h"

namespace dibs::api::pod_security {

using json::Value;
using Violation = SecurityVerdict::Violation;

/// What is judged: a pod or its template.
struct Pod {
  const Value& metadata;
  const Value& spec;
  const Value& context() const { return spec["securityContext"]; }
  bool is_windows() const { return spec["os"]["name"].as_string() == "windows"; }
  /// Root in it is nobody outside.
  bool has_own_users() const {
    return spec["hostUsers"].is_boolean() && !spec["hostUsers"].as_bool();
  }
};

using Found = std::optional<Violation>;
using CheckFunction = Found (*)(const Pod& pod);

// Namespaces, ports and paths of the machine: host_checks.cc.
Found host_namespaces(const Pod& pod);
Found host_path_volumes(const Pod& pod);
Found host_ports(const Pod& pod);
Found host_probes(const Pod& pod);
Found windows_host_process(const Pod& pod);
Found restricted_volumes(const Pod& pod);

// What a process may do, and as whom: privilege_checks.cc.
Found privileged(const Pod& pod);
Found capabilities_baseline(const Pod& pod);
Found capabilities_restricted(const Pod& pod);
Found privilege_escalation(const Pod& pod);
Found run_as_non_root(const Pod& pod);
Found run_as_user(const Pod& pod);

// What the kernel keeps from a process: kernel_checks.cc.
Found app_armor(const Pod& pod);
Found proc_mount(const Pod& pod);
Found se_linux_1_0(const Pod& pod);
Found se_linux_1_31(const Pod& pod);
Found seccomp_baseline_1_0(const Pod& pod);
Found seccomp_baseline_1_19(const Pod& pod);
Found seccomp_restricted(const Pod& pod);
Found sysctls_1_0(const Pod& pod);
Found sysctls_1_27(const Pod& pod);
Found sysctls_1_29(const Pod& pod);
Found sysctls_1_32(const Pod& pod);

/// Of a pod that is for Windows, where it means nothing, or else as the check says.
template <CheckFunction check>
Found unless_windows(const Pod& pod) {
  return pod.is_windows() ? Found() : check(pod);
}
/// Of a pod whose users are its own, or else as the check says.
template <CheckFunction check>
Found unless_own_users(const Pod& pod) {
  return pod.has_own_users() ? Found() : check(pod);
}

/// Init containers, containers, ephemeral containers.
void for_each_container(const Pod& pod, const std::function<void(const Value&)>& visit);

using Names = std::vector<std::string>;
using SortedNames = std::set<std::string>;

/// `"a", "b"`
std::string joined(const Names& names);
std::string joined(const SortedNames& names);
/// `container "a"`, `containers "a", "b"`
std::string containers_text(const Names& names);
/// "pod and container "a"", of what is bad.
std::string setters_text(bool pod, const Names& containers);
inline std::string_view plural(std::size_t count, std::string_view one, std::string_view many) {
  return count == 1 ? one : many;
}

}  // namespace dibs::api::pod_security
