#include "node/runtime/oci_namespaces.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/strings.h"
#include "node/runtime/sysctl.h"

namespace dibs::node {
namespace {

Error system_error(std::string_view what) {
  const int number = errno;
  return Error::internal(cat(what, ": ", std::strerror(number)));
}

Result<> raise_loopback() {
  const runtime::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.ok()) return system_error("open a socket");
  struct ifreq request = {};
  std::strncpy(request.ifr_name, "lo", IFNAMSIZ - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return system_error("read lo's flags");
  request.ifr_flags |= IFF_UP;
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return system_error("raise lo");
  return success();
}

// Which settings /proc/sys shows is decided by the thread that opens them.
Result<> write_sysctl(const std::string& name, const std::string& value) {
  const runtime::Fd folder(::open("/proc/sys", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.ok()) return system_error("open /proc/sys");
  struct open_how how = {};
  how.flags = O_WRONLY | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  const std::string path = sysctl_path(name);
  const runtime::Fd file(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (!file.ok() ||
      ::write(file.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
    return system_error(cat("set sysctl ", name));
  }
  return success();
}

Result<> enter(const std::string& folder, const char* kind, int type) {
  const std::string path = cat(folder, '/', kind);
  const runtime::Fd target(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!target.ok()) return system_error(cat("open ", path));
  if (::setns(target.get(), type) != 0) return system_error(cat("enter ", path));
  return success();
}

Result<> hold(const char* kind, const std::string& folder) {
  const std::string target = cat(folder, '/', kind);
  const runtime::Fd file(::open(target.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
  if (!file.ok()) return system_error(cat("create ", target));
  const std::string source = cat("/proc/thread-self/ns/", kind);
  if (::mount(source.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return system_error(cat("mount ", target));
  }
  return success();
}

// Runs in a thread that ends afterwards: its namespaces are not the process's any more.
Result<> enter_and_hold(const std::string& folder, const NamespaceOptions& options) {
  int flags = 0;
  if (options.network) flags |= CLONE_NEWNET;
  if (options.ipc) flags |= CLONE_NEWIPC;
  if (options.uts) flags |= CLONE_NEWUTS;
  if (::unshare(flags) != 0) return system_error("make namespaces");
  if (options.network) DIBS_CHECK(raise_loopback());
  if (options.uts && !options.hostname.empty() &&
      ::sethostname(options.hostname.data(), options.hostname.size()) != 0) {
    return system_error("set the host name");
  }
  if (options.network) DIBS_CHECK(hold("net", folder));
  if (options.ipc) DIBS_CHECK(hold("ipc", folder));
  if (options.uts) DIBS_CHECK(hold("uts", folder));
  return success();
}

Result<runtime::Fd> connect_to(const sockaddr* address, socklen_t size) {
  runtime::Fd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.ok()) return system_error("open a socket");
  int error = ::connect(socket.get(), address, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    // On this machine an answer comes at once, but for a listener with a full queue.
    constexpr int kAtOnce = 50;  // milliseconds
    pollfd entry{socket.get(), POLLOUT, 0};
    socklen_t length = sizeof error;
    error = 0;
    if (::poll(&entry, 1, kAtOnce) > 0) {
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
  }
  if (error != 0) return Error::unavailable(cat("connect: ", to_lower(std::strerror(error))));
  return socket;
}

Result<runtime::Fd> connect_to_localhost(int port) {
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(static_cast<std::uint16_t>(port));
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto first = connect_to(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  if (first.ok()) return first;
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  v6.sin6_addr = in6addr_loopback;
  auto second = connect_to(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  if (second.ok()) return second;
  return Error::unavailable(cat("IPv4: dial tcp4 127.0.0.1:", port, ": ", first.error().message(),
                                " IPv6: dial tcp6 [::1]:", port, ": ", second.error().message()));
}

}  // namespace

Result<> make_namespaces(const std::string& folder, const NamespaceOptions& options) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  Result<> outcome = success();
  std::thread([&] { outcome = enter_and_hold(folder, options); }).join();
  if (!outcome.ok()) remove_namespaces(folder);
  return outcome;
}

void remove_namespaces(const std::string& folder) {
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.is_directory(failed)) continue;
    unmount(entry.path().string());
    std::filesystem::remove(entry.path(), failed);
  }
}

Result<> hold_namespace(std::int64_t pid, const char* kind, const std::string& path) {
  const runtime::Fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0444));
  if (!file.ok()) return system_error(cat("create ", path));
  if (::mount(cat("/proc/", pid, "/ns/", kind).c_str(), path.c_str(), nullptr, MS_BIND, nullptr) !=
      0) {
    return system_error(cat("mount ", path));
  }
  return success();
}

bool is_namespace(const std::string& path) {
  struct statfs info = {};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == NSFS_MAGIC;
}

Result<> set_sysctls(const std::string& folder,
                     const std::vector<std::pair<std::string, std::string>>& sysctls) {
  bool network = false;
  bool ipc = false;
  for (const auto& [name, value] : sysctls) {
    const SysctlSpace space = sysctl_space(name);
    if (space == SysctlSpace::none) {
      return Error::invalid(cat("sysctl ", quoted(name), " is not in a namespace of the pod"));
    }
    (space == SysctlSpace::network ? network : ipc) = true;
  }
  if (!network && !ipc) return success();
  Result<> outcome = success();
  const auto write_all = [&]() -> Result<> {
    // Without the pod's own namespace there is no file of it, and the write would be the host's.
    if (network) DIBS_CHECK(enter(folder, "net", CLONE_NEWNET));
    if (ipc) DIBS_CHECK(enter(folder, "ipc", CLONE_NEWIPC));
    for (const auto& [name, value] : sysctls) DIBS_CHECK(write_sysctl(name, value));
    return success();
  };
  std::thread([&] { outcome = write_all(); }).join();
  return outcome;
}

Result<> mount_shm(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (::mount("shm", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=1777,size=65536k") != 0) {
    return system_error(cat("mount ", folder));
  }
  return success();
}

void unmount(const std::string& path) {
  // More than once where something was mounted over it.
  for (int i = 0; i < 8 && ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0; ++i) {
  }
}

bool is_mount_point(const std::string& path) {
  struct stat here = {}, above = {};
  if (::stat(path.c_str(), &here) != 0) return false;
  const std::string parent = path.substr(0, path.rfind('/'));
  return ::stat(parent.c_str(), &above) == 0 && here.st_dev != above.st_dev;
}

Result<runtime::Fd> connect_inside(const std::string& network_namespace, int port) {
  if (network_namespace.empty()) return connect_to_localhost(port);
  const runtime::Fd target(::open(network_namespace.c_str(), O_RDONLY | O_CLOEXEC));
  if (!target.ok()) return system_error(cat("open ", network_namespace));
  Result<runtime::Fd> outcome = Error::internal("");
  std::thread([&] {
    outcome = ::setns(target.get(), CLONE_NEWNET) != 0
                  ? Result<runtime::Fd>(system_error("enter the network namespace"))
                  : connect_to_localhost(port);
  }).join();
  return outcome;
}

}  // namespace dibs::node
