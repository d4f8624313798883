#include "drivers/net/cni/network_namespace.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"

namespace dibs::drivers::net {

Result<NetworkNamespace> NetworkNamespace::open(const std::string& path) {
  runtime::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.ok()) {
    return Error::not_found(cat("network namespace ", path, ": ", std::strerror(errno)));
  }
  return NetworkNamespace(std::move(fd));
}

Result<> NetworkNamespace::inside(const std::function<Result<>()>& work) const {
  const runtime::Fd own(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own.ok()) return Error::internal(cat("own network namespace: ", std::strerror(errno)));
  if (::setns(fd_.get(), CLONE_NEWNET) != 0) {
    return Error::internal(cat("cannot enter the pod's network namespace: ", std::strerror(errno)));
  }
  Result<> done = work();
  if (::setns(own.get(), CLONE_NEWNET) != 0) std::abort();
  return done;
}

}  // namespace dibs::drivers::net
