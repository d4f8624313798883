#pragma once
// Namespaces that live without a process: each is held by a bind mount of its file.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "runtime/processes.h"

namespace dibs::node {

struct NamespaceOptions {
  bool network = true;
  bool ipc = true;
  bool uts = true;
  std::string hostname = {};
};

/// Makes <folder>/net, ipc and uts; the network's loopback is up. On an error nothing is left.
Result<> make_namespaces(const std::string& folder, const NamespaceOptions& options);
/// Holds a namespace of a process ("pid") by a file, so that it outlives it.
Result<> hold_namespace(std::int64_t pid, const char* kind, const std::string& path);
/// A namespace is held there, rather than a file being left over without its mount.
bool is_namespace(const std::string& path);
/// All that are held there. Success too when there is nothing.
void remove_namespaces(const std::string& folder);

/// Writes kernel settings inside of the namespaces that are held there. One that belongs to none of
/// them is an error, and nothing is written: it would be the host's.
Result<> set_sysctls(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& sysctls);

/// A small file system in memory for the pod's /dev/shm.
Result<> mount_shm(const std::string& folder);

/// Unmounts, lazily where it is busy. Success too when nothing is mounted.
void unmount(const std::string& path);
bool is_mount_point(const std::string& path);

/// A connection to localhost inside a network namespace ("": the host's), IPv4 first. Where no
/// answer comes at once it is not waited for: the socket does not block, and reading tells.
Result<runtime::Fd> connect_inside(const std::string& network_namespace, int port);

}  // namespace dibs::node
