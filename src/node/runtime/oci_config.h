#pragma once
// A container as an OCI runtime is told of it: config.json. A pure function, so that every default
// is in one place and tested as text; CDI devices are injected into the result (cdi/cache.h).

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/inject.h"
#include "json/value.h"
#include "node/runtime/container_runtime.h"
#include "node/runtime/oci_user.h"

namespace dibs::node {

struct OciConfigInput {
  const SandboxConfig& sandbox;
  const ContainerConfig& container;
  const json::Value& image;  // OCI image configuration
  OciUser user = {};
  std::string root = {};  // folder that is to be "/"
  std::string cgroup = {};
  /// Paths of namespaces to join; empty: the host's, or for pid one of its own.
  std::string network_namespace = {};
  std::string ipc_namespace = {};
  std::string uts_namespace = {};
  std::string pid_namespace = {};
  /// Files and the shared memory of the sandbox.
  std::string resolv_conf = {};
  std::string hostname_file = {};
  std::string shm = {};
  bool cgroup_v2 = false;
  /// What "all capabilities" are: those that this process may hand on, a bit each.
  std::uint64_t all_capabilities = 0x1ffffffffff;
  /// As uname(2) names it.
  std::string machine = "x86_64";
  /// Paths that this machine has and containers do not see, besides those that every machine has.
  std::vector<std::string> masked = {};
  /// Paths of all device nodes of the host, for privileged containers.
  std::vector<std::string> host_devices = {};
  std::string seccomp_profile = {};  // content of the file that security.seccomp names
};

/// Errors are those of a container that cannot be created.
Result<json::Value> build_oci_config(const OciConfigInput& input,
                                     const cdi::HostNodes& nodes = cdi::host_node);

/// Where a path of the host lies on this machine; empty: there.
using HostPaths = std::function<std::string(const std::string& path)>;
/// What comes after the CDI devices: HOME behind their variables, where neither they nor anybody
/// else set it, as runc appends it; and the places of what they mount.
void finish_oci_config(json::Value& config, const std::string& home, const HostPaths& host_path);

/// Of the process that holds a shared pid namespace. Containers see it, and through /proc/1/root
/// what it sees: so that is nothing that they may not.
json::Value build_pause_config(const std::string& root, const std::string& cgroup);

/// What a further process of a container gets: as the first one, with another command.
json::Value build_exec_process(const json::Value& config, const std::vector<std::string>& command,
                               bool tty);

/// The number of a signal's name: "SIGTERM", "TERM", "15"; 0 when there is none.
int signal_number(std::string_view name);

}  // namespace dibs::node
