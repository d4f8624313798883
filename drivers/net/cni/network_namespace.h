#pragma once
// Work inside of another network namespace. For processes with one thread: the way back must not
// fail, or the process ends.

#include <functional>
#include <string>

#include "base/result.h"
#include "runtime/processes.h"

namespace dibs::drivers::net {

class NetworkNamespace {
 public:
  /// By the path of a file that stands for it. Errors name the path.
  static Result<NetworkNamespace> open(const std::string& path);

  int fd() const { return fd_.get(); }
  Result<> inside(const std::function<Result<>()>& work) const;

 private:
  explicit NetworkNamespace(runtime::Fd fd) : fd_(std::move(fd)) {}
  runtime::Fd fd_;
};

}  // namespace dibs::drivers::net
