#pragma once
// Tells when log files change, by inotify: one thread for all, started with the first.

#include <functional>
#include <memory>
#include <string>

namespace dibs::node {

class FileWatch {
 public:
  FileWatch();
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  /// Ends its calls when dropped; one may still be under way then.
  using Subscription = std::shared_ptr<void>;
  /// `changed` is called, on a thread that must not be blocked, when the file was written, made or
  /// replaced. A file that cannot be watched gives null.
  Subscription watch(const std::string& path, std::function<void()> changed);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace dibs::node
